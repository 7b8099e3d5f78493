package smpp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxPDU is the maximum size of a PDU in octets.
const MaxPDU = 64 << 10

const headerSize = 16

// PDU is one request or response (§3.2).
type PDU struct {
	Command  Command
	Status   Status // of responses
	Sequence uint32
	Body     Body // nil for commands without a body, and for error responses
}

// Body is the body of a PDU: one of the types in body.go.
type Body interface {
	fields(c *coder, of Command)
}

// Malformed is the error of a PDU with an invalid body. Its header is valid, so that a response with Status is
// possible.
type Malformed struct {
	Field  string
	Status Status
}

// Error returns the field and the status.
func (m *Malformed) Error() string { return fmt.Sprintf("smpp: %s: %s", m.Field, m.Status) }

// ErrFrame means that the peer does not speak SMPP, or that the PDU boundaries are lost.
var ErrFrame = errors.New("smpp: length of a PDU is not between 16 octets and 64 KiB")

// Encode returns the octets of a PDU. The error is a *Malformed if a field does not fit.
func (p PDU) Encode() ([]byte, error) {
	c := &coder{b: make([]byte, headerSize, 64)}
	if p.Body != nil {
		p.Body.fields(c, p.Command)
	}
	if c.err == nil && len(c.b) > MaxPDU {
		c.fail("command_length", BadCommandLength)
	}
	if c.err != nil {
		return nil, c.err
	}
	binary.BigEndian.PutUint32(c.b, uint32(len(c.b)))
	binary.BigEndian.PutUint32(c.b[4:], uint32(p.Command))
	binary.BigEndian.PutUint32(c.b[8:], uint32(p.Status))
	binary.BigEndian.PutUint32(c.b[12:], p.Sequence)
	return c.b, nil
}

// Decode decodes exactly one PDU. After a *Malformed error the header is valid nevertheless.
func Decode(b []byte) (PDU, error) {
	if len(b) < headerSize || len(b) > MaxPDU || binary.BigEndian.Uint32(b) != uint32(len(b)) {
		return PDU{}, ErrFrame
	}
	p := PDU{Command: Command(binary.BigEndian.Uint32(b[4:])), Status: Status(binary.BigEndian.Uint32(b[8:])),
		Sequence: binary.BigEndian.Uint32(b[12:])}
	body := newBody(p.Command)
	rest := b[headerSize:]
	if body == nil || (len(rest) == 0 && p.Command.IsResponse()) {
		p.Body = body
		return p, nil
	}
	c := &coder{b: rest, reading: true, lenient: p.Command.IsResponse()}
	body.fields(c, p.Command)
	if c.err != nil {
		return p, c.err
	}
	p.Body = body
	return p, nil
}

// read reads the next PDU of a stream. After any error except *Malformed the stream cannot be read any further.
func read(r io.Reader) (PDU, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return PDU{}, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < headerSize || n > MaxPDU {
		return PDU{}, ErrFrame
	}
	b := make([]byte, n)
	copy(b, head[:])
	if _, err := io.ReadFull(r, b[4:]); err != nil {
		return PDU{}, err
	}
	return Decode(b)
}
