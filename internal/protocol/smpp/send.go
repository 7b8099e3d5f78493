package smpp

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Outgoing is a message to be sent.
type Outgoing struct {
	From, To Address
	Text     string
	Receipt  bool          // a receipt is requested for delivery and failure
	Validity time.Duration // validity period; 0: the SMSC's default
	// ServiceType is for SMSCs that require one; up to five characters.
	ServiceType string
	// UserReference is sent as user_message_reference unless it is zero.
	UserReference uint16
	// Reference is the reference of a concatenated message; zero takes the next one. A retry must use that of the
	// Result, so that the recipient's telephone joins the parts.
	Reference uint16
	// Sent has the identifiers of the first parts that an earlier attempt has sent; they are not sent again.
	Sent []string
}

// Result has the accepted parts of a message, also if not all were accepted.
type Result struct {
	Reference  uint16
	Parts      int      // number of all parts
	MessageIDs []string // of the accepted parts, from the first
}

// sender sends messages on a session.
type sender struct {
	session *session
	command Command
	text    TextSettings
	ids     IDs
	pacer   *pacer
}

// send sends the parts of a message one after the other, and stops at the first that is not accepted. The error is an
// *Error.
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
		id, err := s.sendPart(ctx, o.message(parts[i]))
		if err != nil {
			err.Part = i + 1
			return r, err
		}
		r.MessageIDs = append(r.MessageIDs, id)
	}
	return r, nil
}

// nextReference returns the given reference, or the next of a counter that fits into the header; never zero.
func nextReference(had uint16, counter *atomic.Uint32, l LongMode) uint16 {
	for had == 0 {
		had = uint16(counter.Add(1))
		if l == UDH8 {
			had &= 0xff
		}
	}
	return had
}

func (s sender) sendPart(ctx context.Context, m *Message) (string, *Error) {
	if err := s.pacer.wait(ctx); err != nil {
		return "", &Error{Outcome: Retryable, Err: err}
	}
	a, err := s.session.request(ctx, PDU{Command: s.command, Body: m})
	if err != nil {
		if err.Err == nil {
			err.Wait = s.pacer.update(err.Status)
		}
		return "", err
	}
	s.pacer.update(OK)
	answer, _ := a.Body.(*MessageResponse)
	return s.ids.Response.normalize(answer.MessageID), nil
}

func (o Outgoing) message(p Part) *Message {
	m := &Message{ServiceType: o.ServiceType, Source: o.From, Destination: o.To, ESMClass: p.ESMClass, DataCoding: p.DataCoding,
		ShortMessage: p.ShortMessage, TLVs: p.TLVs, ValidityPeriod: relativeTime(o.Validity)}
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
		return fmt.Errorf("smpp: the recipient is missing")
	}
	return nil
}

// relativeTime formats a relative time (§7.1.1.2), of at most 63 weeks; longer ones are cut to that.
func relativeTime(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	s := int(min(max(d, time.Second), 63*7*24*time.Hour) / time.Second)
	days := s / 86400
	return fmt.Sprintf("%02d%02d%02d%02d%02d%02d000R", days/365, days%365/30, days%365%30, s/3600%24, s/60%60, s%60)
}
