package smpp

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Outgoing is a message to send.
type Outgoing struct {
	From, To Address
	Text     string
	Receipt  bool          // whether one is wanted, when the message has arrived or failed
	Validity time.Duration // how long the centre tries; 0: as it likes
	// ServiceType is for centres that want one; up to five characters.
	ServiceType string
	// UserReference is sent as user_message_reference unless it is zero.
	UserReference uint16
	// Reference joins the parts. Zero takes the next of ours. A message that is tried again has the Result's, so that the
	// recipient's telephone finds its parts together.
	Reference uint16
	// Sent are the identifiers of the first parts, which an earlier try has delivered: they are not sent again.
	Sent []string
}

// A Result is what was accepted of a message, whether all of it was or not.
type Result struct {
	Reference  uint16
	Parts      int      // how many there are
	MessageIDs []string // of those accepted, from the first
}

// sender sends messages on a session.
type sender struct {
	session *session
	command Command
	text    Text
	ids     IDs
	pacer   *pacer
}

// send sends the parts of a message one after the other, up to the first that is not accepted. The error is an *Error.
func (s sender) send(ctx context.Context, o Outgoing) (Result, error) {
	r := Result{Reference: o.Reference, MessageIDs: append([]string{}, o.Sent...)}
	parts, err := s.text.Parts(o.Text, o.Reference)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return r, &Error{Outcome: Permanent, Part: 1, Err: err}
	}
	r.Parts = len(parts)
	for i := len(o.Sent); i < len(parts); i++ {
		id, err := s.part(ctx, o.message(parts[i]))
		if err != nil {
			err.Part = i + 1
			return r, err
		}
		r.MessageIDs = append(r.MessageIDs, id)
	}
	return r, nil
}

// nextReference is the one a message has, or the next of a counter that the header has room for; never zero.
func nextReference(had uint16, counter *atomic.Uint32, l Long) uint16 {
	for had == 0 {
		had = uint16(counter.Add(1))
		if l == UDH8 {
			had &= 0xff
		}
	}
	return had
}

func (s sender) part(ctx context.Context, m *Message) (string, *Error) {
	if err := s.pacer.wait(ctx); err != nil {
		return "", &Error{Outcome: Retryable, Err: err}
	}
	a, err := s.session.request(ctx, PDU{Command: s.command, Body: m})
	if err != nil {
		if err.Err == nil {
			err.Wait = s.pacer.heed(err.Status)
		}
		return "", err
	}
	s.pacer.heed(OK)
	answer, _ := a.Body.(*MessageAnswer)
	return s.ids.Answer.read(answer.MessageID), nil
}

func (o Outgoing) message(p Part) *Message {
	m := &Message{ServiceType: o.ServiceType, Source: o.From, Destination: o.To, ESMClass: p.ESMClass, DataCoding: p.DataCoding,
		ShortMessage: p.ShortMessage, TLVs: p.TLVs, ValidityPeriod: relative(o.Validity)}
	if o.Receipt {
		m.RegisteredDelivery = 1
	}
	if o.UserReference != 0 {
		m.TLVs = append(m.TLVs, wordTLV(TagUserMessageReference, o.UserReference))
	}
	return m
}

func (o Outgoing) check() error {
	for _, a := range []Address{o.From, o.To} {
		if len(a.Digits) > 20 || strings.IndexByte(a.Digits, 0) >= 0 {
			return fmt.Errorf("smpp: %q is no address", a.Digits)
		}
	}
	if o.To.Digits == "" {
		return fmt.Errorf("smpp: there is no recipient")
	}
	return nil
}

// relative is a time from now (§7.1.1.2), up to 63 weeks; longer ones are that long.
func relative(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	s := int(min(max(d, time.Second), 63*7*24*time.Hour) / time.Second)
	days := s / 86400
	return fmt.Sprintf("%02d%02d%02d%02d%02d%02d000R", days/365, days%365/30, days%365%30, s/3600%24, s/60%60, s%60)
}
