package smpp

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// A coder reads fields from octets or writes them: bodies name their fields once for both.
type coder struct {
	b       []byte // what is left to read, or what was written
	reading bool
	loose   bool // the end of the PDU ends a text too, as with some centres' answers
	err     error
}

func (c *coder) fail(field string, s Status) {
	if c.err == nil {
		c.err = &Malformed{field, s}
	}
}

// text is a C-Octet String of at most size octets with its NUL.
func (c *coder) text(field string, v *string, size int) {
	if c.err != nil {
		return
	}
	if !c.reading {
		if len(*v) >= size || strings.IndexByte(*v, 0) >= 0 {
			c.fail(field, BadMessageLength)
			return
		}
		c.b = append(append(c.b, *v...), 0)
		return
	}
	end := bytes.IndexByte(c.b[:min(len(c.b), size)], 0)
	switch {
	case end >= 0:
		*v, c.b = string(c.b[:end]), c.b[end+1:]
	case c.loose && len(c.b) < size:
		*v, c.b = string(c.b), nil
	default:
		c.fail(field, BadMessageLength)
	}
}

func (c *coder) octet(field string, v *uint8) {
	switch {
	case c.err != nil:
	case !c.reading:
		c.b = append(c.b, *v)
	case len(c.b) == 0:
		c.fail(field, BadMessageLength)
	default:
		*v, c.b = c.b[0], c.b[1:]
	}
}

// octets is a length of one octet and so many octets.
func (c *coder) octets(field string, v *[]byte) {
	if !c.reading && len(*v) > 255 {
		c.fail(field, BadMessageLength)
	}
	n := uint8(len(*v))
	c.octet(field, &n)
	switch {
	case c.err != nil:
	case !c.reading:
		c.b = append(c.b, *v...)
	case len(c.b) < int(n):
		c.fail(field, BadMessageLength)
	default:
		*v, c.b = take(c.b, int(n))
	}
}

// take copies the first n octets; none is nil.
func take(b []byte, n int) (first, rest []byte) {
	if n == 0 {
		return nil, b
	}
	return slices.Clone(b[:n]), b[n:]
}

// tlvs are the optional parameters up to the end of the PDU (§5.3).
func (c *coder) tlvs(v *TLVs) {
	if !c.reading {
		for _, t := range *v {
			if len(t.Value) > MaxPDU-headerSize {
				c.fail("optional parameters", BadOptionalLength)
				return
			}
			c.b = binary.BigEndian.AppendUint16(c.b, uint16(t.Tag))
			c.b = append(binary.BigEndian.AppendUint16(c.b, uint16(len(t.Value))), t.Value...)
		}
		return
	}
	for c.err == nil && len(c.b) > 0 {
		if len(c.b) < 4 || len(c.b)-4 < int(binary.BigEndian.Uint16(c.b[2:])) || len(*v) == maxTLVs {
			c.fail("optional parameters", BadOptionalStream)
			return
		}
		t := TLV{Tag: Tag(binary.BigEndian.Uint16(c.b))}
		t.Value, c.b = take(c.b[4:], int(binary.BigEndian.Uint16(c.b[2:])))
		*v = append(*v, t)
	}
}
