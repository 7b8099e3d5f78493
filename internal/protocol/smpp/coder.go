package smpp

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// coder reads fields from octets or writes them, so that each body lists its fields only once.
type coder struct {
	b       []byte // octets left to read, or written so far
	reading bool
	lenient bool // a text may end with the PDU instead of NUL, as in the responses of some SMSCs
	err     error
}

func (c *coder) fail(field string, s Status) {
	if c.err == nil {
		c.err = &Malformed{field, s}
	}
}

// text codes a C-Octet String of at most size octets including its NUL.
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
	case c.lenient && len(c.b) < size:
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

// octets codes a length of one octet and the octets after it.
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
		*v, c.b = takeOctets(c.b, int(n))
	}
}

// takeOctets copies the first n octets; nil for none.
func takeOctets(b []byte, n int) (first, rest []byte) {
	if n == 0 {
		return nil, b
	}
	return slices.Clone(b[:n]), b[n:]
}

// tlvs codes the optional parameters up to the end of the PDU (§5.3).
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
		t.Value, c.b = takeOctets(c.b[4:], int(binary.BigEndian.Uint16(c.b[2:])))
		*v = append(*v, t)
	}
}
