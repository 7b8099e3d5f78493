package media

import (
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"net/netip"
)

// STUN for connectivity checks (RFC 8489, RFC 8445 §7). Messages come from untrusted sources. Nothing in a message
// is used before authenticates has returned true.

const (
	stunHeaderLen      = 20
	stunMagic          = 0x2112A442
	stunFingerprintXOR = 0x5354554E // XOR mask of FINGERPRINT
	maxSTUN            = 1280
)

// Message types: Binding and its classes (RFC 8489 §5).
const (
	stunRequest = 0x0001
	stunSuccess = 0x0101
	stunError   = 0x0111
)

// Attribute types.
const (
	stunUsername     = 0x0006
	stunIntegrity    = 0x0008
	stunErrorCode    = 0x0009
	stunXORMapped    = 0x0020
	stunPriority     = 0x0024
	stunUseCandidate = 0x0025
	stunFingerprint  = 0x8028
	stunControlled   = 0x8029
	stunControlling  = 0x802A
)

// roleConflict is the error code of RFC 8445 §7.3.1.1.
const roleConflict = 487

type stunTx [12]byte

// A stunMessage holds the fields of a message that ICE uses. username points into the packet.
type stunMessage struct {
	kind         uint16
	tx           stunTx
	username     []byte
	priority     uint32
	useCandidate bool
	controlling  bool
	controlled   bool
	tieBreaker   uint64
	code         int
	integrity    int // offset of MESSAGE-INTEGRITY; 0 if absent
}

// parseSTUN parses a message. Attributes after MESSAGE-INTEGRITY are ignored (RFC 8489 §14.5), except FINGERPRINT,
// which must be correct.
func parseSTUN(b []byte) (m stunMessage, ok bool) {
	be := binary.BigEndian
	if len(b) < stunHeaderLen || len(b) > maxSTUN || len(b)%4 != 0 || be.Uint32(b[4:]) != stunMagic || int(be.Uint16(b[2:])) != len(b)-stunHeaderLen {
		return m, false
	}
	m.kind = be.Uint16(b)
	copy(m.tx[:], b[8:])
	for at := stunHeaderLen; at < len(b); {
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
func (m *stunMessage) parseAttribute(b []byte, kind uint16, at, size int) bool {
	be, v := binary.BigEndian, b[at+4:at+4+size]
	if kind == stunFingerprint {
		return size == 4 && crc32.ChecksumIEEE(b[:at])^stunFingerprintXOR == be.Uint32(v)
	}
	if m.integrity > 0 {
		return true
	}
	switch kind {
	case stunUsername:
		m.username = v
	case stunIntegrity:
		m.integrity = at
		return size == 20
	case stunPriority:
		if size != 4 {
			return false
		}
		m.priority = be.Uint32(v)
	case stunUseCandidate:
		m.useCandidate = true
	case stunControlled, stunControlling:
		if size != 8 {
			return false
		}
		m.controlled, m.controlling, m.tieBreaker = kind == stunControlled, kind == stunControlling, be.Uint64(v)
	case stunErrorCode:
		if size < 4 {
			return false
		}
		m.code = int(v[2]&7)*100 + int(v[3])
	}
	return true
}

// authenticates reports whether MESSAGE-INTEGRITY was made with the key of mac.
func (m *stunMessage) authenticates(b []byte, mac hash.Hash) bool {
	if m.integrity == 0 {
		return false
	}
	var sum [20]byte
	return subtle.ConstantTimeCompare(messageIntegrity(b, m.integrity, mac, sum[:0]), b[m.integrity+4:m.integrity+24]) == 1
}

// messageIntegrity returns the HMAC over the message as if it ended after the attribute at b[at:].
func messageIntegrity(b []byte, at int, mac hash.Hash, sum []byte) []byte {
	length := [2]byte{b[2], b[3]}
	binary.BigEndian.PutUint16(b[2:], uint16(at+24-stunHeaderLen))
	mac.Reset()
	mac.Write(b[:at])
	b[2], b[3] = length[0], length[1]
	return mac.Sum(sum)
}

// A stunWriter builds a message in a buffer that is large enough for all messages we send.
type stunWriter struct {
	buf [stunHeaderLen + 4 + 2*maxICEString + 4 + 128]byte
	n   int
}

func (w *stunWriter) begin(kind uint16, tx stunTx) {
	binary.BigEndian.PutUint16(w.buf[0:], kind)
	binary.BigEndian.PutUint32(w.buf[4:], stunMagic)
	copy(w.buf[8:], tx[:])
	w.n = stunHeaderLen
}

// add appends an attribute and returns the slice for its value.
func (w *stunWriter) add(kind uint16, size int) []byte {
	b := w.buf[w.n:]
	binary.BigEndian.PutUint16(b, kind)
	binary.BigEndian.PutUint16(b[2:], uint16(size))
	padded := (size + 3) &^ 3
	clear(b[4 : 4+padded])
	w.n += 4 + padded
	return b[4 : 4+size]
}

func (w *stunWriter) addXORMappedAddress(a netip.AddrPort) {
	var ip [16]byte
	size := 4
	if a.Addr().Is4() {
		v4 := a.Addr().As4()
		copy(ip[:], v4[:])
	} else {
		ip, size = a.Addr().As16(), 16
	}
	v := w.add(stunXORMapped, 4+size)
	v[1] = 1
	if size == 16 {
		v[1] = 2
	}
	binary.BigEndian.PutUint16(v[2:], a.Port()^stunMagic>>16)
	for i := range size { // XOR with magic cookie and transaction ID: they are adjacent in the header
		v[4+i] = ip[i] ^ w.buf[4+i]
	}
}

// end adds MESSAGE-INTEGRITY and FINGERPRINT and returns the message, valid until the next begin.
func (w *stunWriter) end(mac hash.Hash) []byte {
	at := w.n
	v := w.add(stunIntegrity, 20)
	var sum [20]byte
	copy(v, messageIntegrity(w.buf[:w.n], at, mac, sum[:0]))
	at = w.n
	v = w.add(stunFingerprint, 4)
	binary.BigEndian.PutUint16(w.buf[2:], uint16(w.n-stunHeaderLen))
	binary.BigEndian.PutUint32(v, crc32.ChecksumIEEE(w.buf[:at])^stunFingerprintXOR)
	return w.buf[:w.n]
}
