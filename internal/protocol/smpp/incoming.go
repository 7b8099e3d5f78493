package smpp

import "time"

// Incoming is a message that came in, of one or several parts.
type Incoming struct {
	// Account is who is logged in where we are the centre; empty where we are the client.
	Account  string
	From, To Address
	Text     string
	// Binary is what a message carries that is no text; Text is empty then.
	Binary     []byte
	DataCoding uint8
	// Parts is how many it was sent in, Missing how many of them never came.
	Parts, Missing int
	// MessageIDs are those that the parts were answered with, where we are the centre.
	MessageIDs []string
	// Receipt says that the sender wants one. Receipts says of which parts, as they are in MessageIDs.
	Receipt  bool
	Receipts []Wish
	// Bind names the connection that the last part came on, where we are the centre; no two have the same name.
	Bind string
	// ServiceType, Schedule and Validity are as they were sent (§7.1.1 for times).
	ServiceType, Schedule, Validity string
	// Reference is the sender's own number of it, user_message_reference; zero where there is none.
	Reference uint16
	// Key and At tell long messages apart: whose parts they are, and when the first of them came. Key.Segment.Total is zero for others.
	Key Key
	At  time.Time
}

// A Wish is for which ends of a message a receipt is wanted (§5.2.17).
type Wish uint8

// Wishes. OnSuccess is of SMPP 5.0.
const (
	Never Wish = iota
	Always
	OnFailure
	OnSuccess
)

// Wants tells whether a receipt is wanted of a message that ends in a state.
func (w Wish) Wants(s State) bool {
	return w == Always || w == OnFailure && s != Delivered || w == OnSuccess && s == Delivered
}

// incoming joins the parts of a message, which are in order. Octets are joined before they are read, since some senders
// split characters; where parts are missing is an ellipsis.
func (t Text) incoming(parts []Fragment) Incoming {
	m := parts[0].Message
	in := Incoming{Key: parts[0].Key, At: parts[0].At, Account: parts[0].Key.Account, From: m.Source, To: m.Destination, DataCoding: m.DataCoding, Parts: len(parts),
		Receipt: m.RegisteredDelivery&3 != 0, ServiceType: m.ServiceType, Schedule: m.ScheduleDeliveryTime, Validity: m.ValidityPeriod}
	if reference, ok := m.TLVs.Number(TagUserMessageReference); ok {
		in.Reference = uint16(reference)
	}
	if total := int(parts[0].Key.Segment.Total); total > 0 {
		in.Parts, in.Missing = total, total-len(parts)
	}
	for _, p := range parts {
		if p.MessageID != "" {
			in.Bind = p.Bind
			in.MessageIDs, in.Receipts = append(in.MessageIDs, p.MessageID), append(in.Receipts, Wish(p.Message.RegisteredDelivery&3))
		}
	}
	for last := uint8(0); len(parts) > 0; {
		n := run(parts)
		var octets []byte
		for _, p := range parts[:n] {
			octets = append(octets, p.Octets...)
		}
		text, ok := t.unpacked(parts[0].Message.DataCoding).decode(octets)
		if !ok {
			in.Binary = append(in.Binary, octets...)
		}
		if in.Text != "" && parts[0].Sequence != last+1 {
			in.Text += "…"
		}
		in.Text += text
		last, parts = parts[n-1].Sequence, parts[n:]
	}
	return in
}

// run is how many parts from the first follow each other with the same coding.
func run(parts []Fragment) int {
	n := 1
	for n < len(parts) && parts[n].Sequence == parts[n-1].Sequence+1 && parts[n].Message.DataCoding == parts[0].Message.DataCoding {
		n++
	}
	return n
}

func (t Text) unpacked(coding uint8) kind {
	if k := t.kind(coding); k != gsmPacked {
		return k
	}
	return gsmOctets
}

// fragment takes a message apart. ok is false where its header is broken.
func (t Text) fragment(account string, m *Message) (f Fragment, ok bool) {
	s, header, octets, ok := m.segment()
	if !ok {
		return Fragment{}, false
	}
	if t.kind(m.DataCoding) == gsmPacked {
		octets = unpack(octets, fillBits(header))
	}
	f = Fragment{Sequence: s.Sequence, Octets: octets, Message: *m}
	s.Sequence = 0
	f.Key = Key{Account: account, From: m.Source.Digits, To: m.Destination.Digits, Segment: s}
	f.Message.ShortMessage, f.Message.TLVs = nil, nil
	if v, has := m.TLVs.Get(TagUserMessageReference); has {
		f.Message.TLVs = TLVs{{TagUserMessageReference, v}}
	}
	return f, true
}
