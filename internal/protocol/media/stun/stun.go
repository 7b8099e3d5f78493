// Package stun parses and writes the STUN messages of ICE connectivity checks (RFC 8489, RFC 8445 §7). Messages come
// from untrusted sources. Nothing in a message may be used before Authenticates has returned true.
package stun

import (
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"net/netip"
)

// HeaderLen is the length of the header of a message.
const HeaderLen = 20

const (
	magic          = 0x2112A442
	fingerprintXOR = 0x5354554E // XOR mask of FINGERPRINT
	maxMessage     = 1280
	maxUfrag       = 256 // RFC 8839 §5.4
)

// Message types: Binding and its classes (RFC 8489 §5).
const (
	Request = 0x0001
	Success = 0x0101
	Error   = 0x0111
)

// Attribute types.
const (
	Username     = 0x0006
	Integrity    = 0x0008
	ErrorCode    = 0x0009
	XORMapped    = 0x0020
	Priority     = 0x0024
	UseCandidate = 0x0025
	Fingerprint  = 0x8028
	Controlled   = 0x8029
	Controlling  = 0x802A
)

// RoleConflict is the error code of RFC 8445 §7.3.1.1.
const RoleConflict = 487

// A TransactionID identifies a request and its response.
type TransactionID [12]byte

// A Message holds the fields of a message that ICE uses. username points into the packet.
type Message struct {
	Kind         uint16
	Tx           TransactionID
	Username     []byte
	Priority     uint32
	UseCandidate bool
	Controlling  bool
	Controlled   bool
	TieBreaker   uint64
	Code         int
	integrity    int // offset of MESSAGE-INTEGRITY; 0 if absent
}

// Parse parses a message. Attributes after MESSAGE-INTEGRITY are ignored (RFC 8489 §14.5), except FINGERPRINT,
// which must be correct.
func Parse(b []byte) (m Message, ok bool) {
	be := binary.BigEndian
	if len(b) < HeaderLen || len(b) > maxMessage || len(b)%4 != 0 || be.Uint32(b[4:]) != magic ||
		int(be.Uint16(b[2:])) != len(b)-HeaderLen {
		return m, false
	}
	m.Kind = be.Uint16(b)
	copy(m.Tx[:], b[8:])
	for at := HeaderLen; at < len(b); {
		if len(b)-at < 4 {
			return m, false
		}
		kind, size := be.Uint16(b[at:]), int(be.Uint16(b[at+2:]))
		if size > len(b)-at-4 || !m.parseAttribute(b, kind, at, size) {
			return m, false
		}
		at += 4 + (size+3)&^3
	}
	return m, true
}

// parseAttribute parses one attribute at b[at:] whose value has the given size.
func (m *Message) parseAttribute(b []byte, kind uint16, at, size int) bool {
	be, v := binary.BigEndian, b[at+4:at+4+size]
	if kind == Fingerprint {
		return size == 4 && crc32.ChecksumIEEE(b[:at])^fingerprintXOR == be.Uint32(v)
	}
	if m.integrity > 0 {
		return true
	}
	switch kind {
	case Username:
		m.Username = v
	case Integrity:
		m.integrity = at
		return size == 20
	case Priority:
		if size != 4 {
			return false
		}
		m.Priority = be.Uint32(v)
	case UseCandidate:
		m.UseCandidate = true
	case Controlled, Controlling:
		if size != 8 {
			return false
		}
		m.Controlled, m.Controlling, m.TieBreaker = kind == Controlled, kind == Controlling, be.Uint64(v)
	case ErrorCode:
		if size < 4 {
			return false
		}
		m.Code = int(v[2]&7)*100 + int(v[3])
	}
	return true
}

// Authenticates reports whether MESSAGE-INTEGRITY was made with the key of mac.
func (m *Message) Authenticates(b []byte, mac hash.Hash) bool {
	if m.integrity == 0 {
		return false
	}
	var sum [20]byte
	return subtle.ConstantTimeCompare(messageIntegrity(b, m.integrity, mac, sum[:0]), b[m.integrity+4:m.integrity+24]) == 1
}

// messageIntegrity returns the HMAC over the message as if it ended after the attribute at b[at:].
func messageIntegrity(b []byte, at int, mac hash.Hash, sum []byte) []byte {
	length := [2]byte{b[2], b[3]}
	binary.BigEndian.PutUint16(b[2:], uint16(at+24-HeaderLen))
	mac.Reset()
	mac.Write(b[:at])
	b[2], b[3] = length[0], length[1]
	return mac.Sum(sum)
}

// A Writer builds a message in a buffer that is large enough for all messages we send.
type Writer struct {
	buf [HeaderLen + 4 + 2*maxUfrag + 4 + 128]byte
	n   int
}

// Begin starts a message.
func (w *Writer) Begin(kind uint16, tx TransactionID) {
	binary.BigEndian.PutUint16(w.buf[0:], kind)
	binary.BigEndian.PutUint32(w.buf[4:], magic)
	copy(w.buf[8:], tx[:])
	w.n = HeaderLen
}

// Add appends an attribute and returns the slice for its value.
func (w *Writer) Add(kind uint16, size int) []byte {
	b := w.buf[w.n:]
	binary.BigEndian.PutUint16(b, kind)
	binary.BigEndian.PutUint16(b[2:], uint16(size))
	padded := (size + 3) &^ 3
	clear(b[4 : 4+padded])
	w.n += 4 + padded
	return b[4 : 4+size]
}

// AddXORMappedAddress appends the address that a request came from.
func (w *Writer) AddXORMappedAddress(a netip.AddrPort) {
	var ip [16]byte
	size := 4
	if a.Addr().Is4() {
		v4 := a.Addr().As4()
		copy(ip[:], v4[:])
	} else {
		ip, size = a.Addr().As16(), 16
	}
	v := w.Add(XORMapped, 4+size)
	v[1] = 1
	if size == 16 {
		v[1] = 2
	}
	binary.BigEndian.PutUint16(v[2:], a.Port()^magic>>16)
	for i := range size { // XOR with magic cookie and transaction ID: they are adjacent in the header
		v[4+i] = ip[i] ^ w.buf[4+i]
	}
}

// End adds MESSAGE-INTEGRITY and FINGERPRINT and returns the message, valid until the next begin.
func (w *Writer) End(mac hash.Hash) []byte {
	at := w.n
	v := w.Add(Integrity, 20)
	var sum [20]byte
	copy(v, messageIntegrity(w.buf[:w.n], at, mac, sum[:0]))
	at = w.n
	v = w.Add(Fingerprint, 4)
	binary.BigEndian.PutUint16(w.buf[2:], uint16(w.n-HeaderLen))
	binary.BigEndian.PutUint32(v, crc32.ChecksumIEEE(w.buf[:at])^fingerprintXOR)
	return w.buf[:w.n]
}
