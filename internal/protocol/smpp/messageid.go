package smpp

import (
	"math/big"
	"strings"
)

// An IDForm is how a centre writes a message's identifier.
type IDForm uint8

// Forms. Identifiers that are numbers are given to callers in decimal, whatever they are written in.
const (
	AsIs IDForm = iota
	Decimal
	Hex
)

// IDs is how a centre writes identifiers in its answers and in its receipts: many have hexadecimal in the one and decimal in
// the other, so that nothing fits together unless they are told apart here. Option is receipted_message_id, mostly as in
// answers.
type IDs struct {
	Answer, Receipt, Option IDForm
}

// read brings an identifier into the form in which identifiers are compared. What is no number stays as it is.
func (f IDForm) read(id string) string {
	id = strings.TrimSpace(id)
	base := map[IDForm]int{Decimal: 10, Hex: 16}[f]
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

// receipt reads the receipt that a message is; the optional parameters, where there are any, count more than the text.
func (m *Message) receipt(t Text, ids IDs) (Receipt, bool) {
	kind := m.ESMClass & 0x3c
	option := m.TLVs.Text(TagReceiptedMessageID)
	if kind != 0x04 && kind != 0x20 && option == "" {
		return Receipt{}, false
	}
	_, _, octets, _ := m.segment()
	text, ok := t.Decode(m.DataCoding, octets)
	if !ok { // some centres say that their receipts are binary
		text = latin(octets, 0xff)
	}
	r, _ := ParseReceipt(text)
	r.From, r.To = m.Source, m.Destination
	r.MessageID = ids.Receipt.read(r.MessageID)
	if option != "" {
		r.MessageID = ids.Option.read(option)
	}
	if state, ok := m.TLVs.Number(TagMessageState); ok && state <= uint32(Skipped) {
		r.State = State(state)
	}
	if code, ok := m.TLVs.Get(TagNetworkErrorCode); ok && len(code) == 3 && r.Error == "" {
		r.Error = big.NewInt(int64(code[1])<<8 | int64(code[2])).String()
	}
	return r, true
}
