package transport

import (
	"bytes"
	"encoding/binary"
)

// STUN binding requests on the SIP port (RFC 5389). Phones keep UDP flows open with them (RFC 5626 §8).

const (
	stunHeader  = 20
	stunRequest = 0x0001
	stunSuccess = 0x0101
	stunMapped  = 0x0020 // XOR-MAPPED-ADDRESS
)

var stunCookie = []byte{0x21, 0x12, 0xa4, 0x42}

// isSTUN reports whether a datagram is STUN. SIP never starts with two zero bits (RFC 5389 §6).
func isSTUN(b []byte) bool {
	return len(b) >= stunHeader && b[0] < 0x40 && bytes.Equal(b[4:8], stunCookie) &&
		int(binary.BigEndian.Uint16(b[2:])) == len(b)-stunHeader
}

// answerSTUN answers a binding request with its source address (RFC 5389 §10.1). Other STUN messages are dropped.
func (s *Layer) answerSTUN(f Flow, b []byte) {
	s.Stats.Received.Add(1)
	if binary.BigEndian.Uint16(b) != stunRequest || !s.config.Guard.AllowRequest(f.Addr.Addr(), s.config.Host.Elapsed()) {
		s.Stats.Dropped.Add(1)
		return
	}
	s.Stats.Sent.Add(1)
	f.sock.conn.WriteToUDPAddrPort(stunBindingResponse(b[4:stunHeader], f), f.Addr)
}

// stunBindingResponse returns the response to a transaction. id is its magic cookie and transaction id (RFC 5389
// §15.2).
func stunBindingResponse(id []byte, f Flow) []byte {
	ip := f.Addr.Addr().AsSlice()
	family := byte(1)
	if len(ip) == 16 {
		family = 2
	}
	out := make([]byte, 0, 44)
	out = binary.BigEndian.AppendUint16(out, stunSuccess)
	out = binary.BigEndian.AppendUint16(out, uint16(8+len(ip)))
	out = append(out, id...)
	out = binary.BigEndian.AppendUint16(out, stunMapped)
	out = binary.BigEndian.AppendUint16(out, uint16(4+len(ip)))
	out = append(out, 0, family)
	out = binary.BigEndian.AppendUint16(out, f.Addr.Port()^binary.BigEndian.Uint16(stunCookie))
	for i, x := range ip {
		out = append(out, x^id[i])
	}
	return out
}
