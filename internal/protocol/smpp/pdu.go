package smpp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxPDU is the longest PDU that is read or written, in octets.
const MaxPDU = 64 << 10

const headerSize = 16

// A PDU is one request or answer (§3.2).
type PDU struct {
	Command  Command
	Status   Status // of answers
	Sequence uint32
	Body     Body // nil for commands that have none, and for answers that refuse
}

// A Body is what follows the header: one of the types of body.go.
type Body interface {
	fields(c *coder, of Command)
}

// A Malformed PDU has an error in its body; its header is sound, so that it can be answered with Status.
type Malformed struct {
	Field  string
	Status Status
}

// Error names the field.
func (m *Malformed) Error() string { return fmt.Sprintf("smpp: %s: %s", m.Field, m.Status) }

// ErrFrame says that the other side does not speak SMPP, or that we have lost where its PDUs begin.
var ErrFrame = errors.New("smpp: length of a PDU is not between 16 octets and 64 KiB")

// Encode writes a PDU. The error is a *Malformed where a field does not fit.
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

// Decode reads a PDU of exactly these octets. After a *Malformed error the header is filled in all the same.
func Decode(b []byte) (PDU, error) {
	if len(b) < headerSize || len(b) > MaxPDU || binary.BigEndian.Uint32(b) != uint32(len(b)) {
		return PDU{}, ErrFrame
	}
	p := PDU{Command: Command(binary.BigEndian.Uint32(b[4:])), Status: Status(binary.BigEndian.Uint32(b[8:])),
		Sequence: binary.BigEndian.Uint32(b[12:])}
	body := newBody(p.Command)
	rest := b[headerSize:]
	if body == nil || (len(rest) == 0 && p.Command.IsAnswer()) {
		p.Body = body
		return p, nil
	}
	c := &coder{b: rest, reading: true, loose: p.Command.IsAnswer()}
	body.fields(c, p.Command)
	if c.err != nil {
		return p, c.err
	}
	p.Body = body
	return p, nil
}

// read takes the next PDU of a stream. Errors but *Malformed are the end of it.
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
