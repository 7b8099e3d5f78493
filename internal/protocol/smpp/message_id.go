package smpp

import (
	"math/big"
	"strings"
)

// IDFormat is the format in which an SMSC writes message identifiers.
type IDFormat uint8

// Formats. Decimal and hexadecimal identifiers are always passed to callers in decimal.
const (
	AsIs IDFormat = iota
	Decimal
	Hex
)

// IDs configures the formats of identifiers. Many SMSCs use hexadecimal in responses and decimal in receipts, so that
// they match only after conversion. Option is that of receipted_message_id, mostly as in responses.
type IDs struct {
	Response, Receipt, Option IDFormat
}

// normalize converts an identifier to the form in which identifiers are compared. An identifier that is not a number
// stays as it is.
func (f IDFormat) normalize(id string) string {
	id = strings.TrimSpace(id)
	base := map[IDFormat]int{Decimal: 10, Hex: 16}[f]
	if base == 0 || id == "" || len(id) > 64 || strings.ContainsAny(id, "+-_") {
		return id
	}
	digits := id
	if base == 16 && len(id) > 2 && strings.EqualFold(id[:2], "0x") {
		digits = id[2:]
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return id
	}
	return n.String()
}

// receipt parses the receipt in a message. Optional parameters take precedence over the text.
func (m *Message) receipt(t TextSettings, ids IDs) (Receipt, bool) {
	kind := m.ESMClass & 0x3c
	option := m.TLVs.Text(TagReceiptedMessageID)
	if kind != 0x04 && kind != 0x20 && option == "" {
		return Receipt{}, false
	}
	_, _, octets, _ := m.segment()
	text, ok := t.Decode(m.DataCoding, octets)
	if !ok { // some SMSCs mark their receipts as binary
		text = decodeLatin1(octets)
	}
	r, _ := ParseReceipt(text)
	if t.encodingOf(m.DataCoding) == gsmOctets {
		r = r.withASCIIFields(octets)
	}
	r.From, r.To = m.Source, m.Destination
	r.MessageID = ids.Receipt.normalize(r.MessageID)
	if option != "" {
		r.MessageID = ids.Option.normalize(option)
	}
	if state, ok := m.TLVs.Number(TagMessageState); ok && state <= uint32(Skipped) {
		r.State = State(state)
	}
	if code, ok := m.TLVs.Get(TagNetworkErrorCode); ok && len(code) == 3 && r.Error == "" {
		r.Error = big.NewInt(int64(code[1])<<8 | int64(code[2])).String()
	}
	return r, true
}

// withASCIIFields reads all fields but the text as ASCII. Most SMSCs write them so, in whatever alphabet their texts are. An underscore may
// be that of GSM 7 bit.
func (r Receipt) withASCIIFields(octets []byte) Receipt {
	fields, _ := ParseReceipt(strings.ReplaceAll(decodeLatin1(octets), "\x11", "_"))
	fields.Text, fields.Raw = r.Text, r.Raw
	return fields
}
