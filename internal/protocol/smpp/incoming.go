package smpp

import "time"

// Incoming is a received message, of one or several parts.
type Incoming struct {
	// Account is the account of the client, if we are the server; else empty.
	Account  string
	From, To Address
	Text     string
	// Binary has the octets of a message that is not text, or whose text cannot be decoded; Text is then empty. It is nil
	// for a text.
	Binary     []byte
	DataCoding uint8
	// Parts is the number of parts that were sent, Missing the number of those that did not arrive.
	Parts, Missing int
	// MessageIDs has the identifiers of the parts, if we are the server.
	MessageIDs []string
	// Receipt reports whether the sender requests a receipt. Receipts has the request of each part, as in MessageIDs.
	Receipt  bool
	Receipts []ReceiptRequest
	// Bind is the unique name of the connection of the last part, if we are the server.
	Bind string
	// ServiceType, Schedule and Validity are as sent (times: §7.1.1).
	ServiceType, Schedule, Validity string
	// Reference is the user_message_reference of the sender; zero if there is none.
	Reference uint16
	// Key identifies a long message, and At is the time of its first part. Key.Segment.Total is zero for single
	// messages.
	Key Key
	At  time.Time
}

// ReceiptRequest states for which final states a receipt is requested (§5.2.17).
type ReceiptRequest uint8

// Receipt requests. ReceiptOnSuccess is from SMPP 5.0.
const (
	ReceiptNever ReceiptRequest = iota
	ReceiptAlways
	ReceiptOnFailure
	ReceiptOnSuccess
)

// Wants reports whether a receipt is requested for a final state.
func (w ReceiptRequest) Wants(s State) bool {
	return w == ReceiptAlways || w == ReceiptOnFailure && s != Delivered || w == ReceiptOnSuccess && s == Delivered
}

// incoming joins the parts of a message, which are in order. Octets are joined before they are decoded, because some
// senders split characters. An ellipsis replaces missing parts.
func (t TextSettings) incoming(parts []Fragment) Incoming {
	m := parts[0].Message
	in := Incoming{Key: parts[0].Key, At: parts[0].At, Account: parts[0].Key.Account, From: m.Source, To: m.Destination,
		DataCoding: m.DataCoding, Parts: len(parts),
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
			in.MessageIDs, in.Receipts = append(in.MessageIDs, p.MessageID),
				append(in.Receipts, ReceiptRequest(p.Message.RegisteredDelivery&3))
		}
	}
	in.Text, in.Binary = t.join(parts)
	return in
}

// join decodes the octets of parts. If a part cannot be decoded, it returns all octets instead.
func (t TextSettings) join(parts []Fragment) (joined string, binary []byte) {
	all, isText := []byte{}, true
	for last := uint8(0); len(parts) > 0; {
		n := contiguous(parts)
		var octets []byte
		for _, p := range parts[:n] {
			octets = append(octets, p.Octets...)
		}
		text, ok := t.unpackedEncoding(parts[0].Message.DataCoding).decode(octets)
		all, isText = append(all, octets...), isText && ok
		if joined != "" && parts[0].Sequence != last+1 {
			joined += "…"
		}
		joined += text
		last, parts = parts[n-1].Sequence, parts[n:]
	}
	if !isText {
		return "", all
	}
	return joined, nil
}

// contiguous returns the number of parts from the first that have consecutive numbers and the same coding.
func contiguous(parts []Fragment) int {
	n := 1
	for n < len(parts) && parts[n].Sequence == parts[n-1].Sequence+1 && parts[n].Message.DataCoding == parts[0].Message.DataCoding {
		n++
	}
	return n
}

func (t TextSettings) unpackedEncoding(coding uint8) textEncoding {
	if k := t.encodingOf(coding); k != gsmPacked {
		return k
	}
	return gsmOctets
}

// fragment returns a message as a part. ok is false if its header is malformed.
func (t TextSettings) fragment(account string, m *Message) (f Fragment, ok bool) {
	s, header, octets, ok := m.segment()
	if !ok {
		return Fragment{}, false
	}
	if t.encodingOf(m.DataCoding) == gsmPacked {
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
