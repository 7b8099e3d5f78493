package smpp

import (
	"bytes"
	"encoding/binary"
)

// Tag is the tag of an optional parameter (§5.3.2).
type Tag uint16

// Tags that this package reads or writes.
const (
	TagReceiptedMessageID   Tag = 0x001e
	TagUserMessageReference Tag = 0x0204
	TagSARReference         Tag = 0x020c
	TagSARTotal             Tag = 0x020e
	TagSARSequence          Tag = 0x020f
	TagInterfaceVersion     Tag = 0x0210
	TagNetworkErrorCode     Tag = 0x0423
	TagMessagePayload       Tag = 0x0424
	TagMessageState         Tag = 0x0427
)

// maxTLVs limits the optional parameters of a PDU.
const maxTLVs = 128

// TLV is an optional parameter.
type TLV struct {
	Tag   Tag
	Value []byte
}

// TLVs are the optional parameters of a PDU, in order.
type TLVs []TLV

// Get returns the first value with a tag.
func (t TLVs) Get(tag Tag) (value []byte, ok bool) {
	for _, v := range t {
		if v.Tag == tag {
			return v.Value, true
		}
	}
	return nil, false
}

// Text returns a value as text without its NUL; empty if there is none.
func (t TLVs) Text(tag Tag) string {
	v, _ := t.Get(tag)
	v, _, _ = bytes.Cut(v, []byte{0})
	return string(v)
}

// Number returns a value of one to four octets as a number.
func (t TLVs) Number(tag Tag) (n uint32, ok bool) {
	v, ok := t.Get(tag)
	if !ok || len(v) == 0 || len(v) > 4 {
		return 0, false
	}
	for _, b := range v {
		n = n<<8 | uint32(b)
	}
	return n, true
}

func octetTLV(tag Tag, v uint8) TLV { return TLV{tag, []byte{v}} }

func wordTLV(tag Tag, v uint16) TLV { return TLV{tag, binary.BigEndian.AppendUint16(nil, v)} }

func receiptedID(id string) TLV { return TLV{TagReceiptedMessageID, append([]byte(id), 0)} }
