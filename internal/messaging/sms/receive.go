package sms

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
)

// Incoming is a received message.
type Incoming struct {
	Org, From, To, Body string
	Media               []Media
	Carrier, Reference  string // a message with the same reference is stored once; "": each is a new one
	Sandbox             bool
	UserID              string // sender, if it is a user of the organisation
	// Internal marks a message between telephones of the organisation. To may then be an extension, and keywords have
	// no effect.
	Internal bool
}

// Receive stores a message for a number of the organisation, applies a keyword in it, and enqueues its delivery to
// the telephones of the number. If the message is stored already, it is returned unchanged.
func (s *Service) Receive(ctx context.Context, in Incoming) (m Message, err error) {
	// Both stand before the transaction, which must be short because others wait for its lock.
	who := s.cfg.Contacts.LookupContact(ctx, in.Org, in.From)
	policy, err := s.messageRedaction(ctx, in.Org)
	if err != nil {
		return m, err
	}
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if m, err = s.findDuplicate(ctx, tx, in); err == nil || !db.IsNone(err) {
			return err
		}
		n, ok, err := s.cfg.Numbers.OwnNumber(ctx, tx, in.Org, in.To)
		if err != nil {
			return err
		}
		if !ok && !in.Internal {
			return op.Invalid(op.Field("to", "number_not_owned", "not a number of your organisation"))
		}
		if ok {
			in.To = n.Number
		}
		m = s.newIncoming(in)
		m.Contact, m.Body = who, policy.Text(in.Body)
		return s.storeIncoming(ctx, tx, in, n, &m)
	})
	return m, err
}

// findDuplicate returns a message that was stored already, or db.ErrNone.
func (s *Service) findDuplicate(ctx context.Context, tx db.Querier, in Incoming) (Message, error) {
	if in.Reference == "" {
		return Message{}, db.ErrNone
	}
	const q = `SELECT ` + columns + ` FROM messages WHERE org_id = $1 AND carrier = $2 AND reference = $3`
	return scan(tx.QueryRow(ctx, q, in.Org, in.Carrier, in.Reference).Scan)
}

func (s *Service) newIncoming(in Incoming) Message {
	m := Message{ID: db.NewID("sms"), Direction: inbound, Status: received, FromNumber: in.From, ToNumber: in.To, Body: in.Body,
		Media: append([]Media{}, in.Media...), UserID: db.Null(in.UserID).Ptr(), Source: "inbound", CreatedAt: db.At(s.cfg.Clock.Now()),
		Metadata: map[string]string{}, Sandbox: in.Sandbox, org: in.Org, carrier: in.Carrier, reference: in.Reference}
	m.Encoding, m.Segments = Segments(in.Body)
	return m
}

func (s *Service) storeIncoming(ctx context.Context, tx db.Querier, in Incoming, n OwnNumber, m *Message) error {
	if err := s.addToConversation(ctx, tx, m, n.ID); err != nil {
		return err
	}
	if err := insert(ctx, tx, *m); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	media := make([]event.Media, len(m.Media))
	for i, a := range m.Media {
		media[i] = event.Media(a)
	}
	err := s.cfg.Outbox.Publish(ctx, tx, m.org, event.SMSReceived{MessageID: m.ID, ConversationID: m.ConversationID,
		FromNumber: m.FromNumber, ToNumber: m.ToNumber, Body: m.Body, Segments: m.Segments, Media: media, ReceivedAt: m.CreatedAt,
		Contact: m.Contact})
	if err == nil {
		err = s.notifyStored(ctx, tx, *m)
	}
	if err == nil && !in.Internal {
		err = s.applyKeyword(ctx, tx, *m, n)
	}
	if err == nil {
		err = s.notifyReceived(ctx, tx, n, *m)
	}
	if err != nil || !in.Internal && n.UserID == "" {
		return err
	}
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: m.org, Queue: Queue, Kind: forwardJob, Args: messageArgs{m.ID},
		UniqueKey: forwardJob + " " + m.ID})
}

// applyKeyword performs the action of a keyword and replies to it.
func (s *Service) applyKeyword(ctx context.Context, tx db.Querier, m Message, n OwnNumber) error {
	word := parseKeyword(m.Body)
	switch word.action {
	case "":
		return nil
	case actionStop:
		o := OptOut{NumberID: db.Null(n.ID).Ptr(), Source: "keyword", Keyword: &m.Body, MessageID: &m.ID}
		if fresh, err := s.addOptOut(ctx, tx, m.org, m.FromNumber, &o); err != nil || !fresh {
			return err
		}
	case actionStart:
		if gone, err := s.removeOptOut(ctx, tx, m.org, m.FromNumber, n.ID); err != nil || gone == 0 {
			return err
		}
	}
	return s.replyToKeyword(ctx, tx, m, n, word.reply)
}

// replyToKeyword sends a reply, if messages can be sent from the number.
func (s *Service) replyToKeyword(ctx context.Context, tx db.Querier, to Message, n OwnNumber, body string) error {
	if !n.SMS {
		return nil
	}
	carrier, number, err := s.cfg.Router.RouteMessage(ctx, to.org, n, to.FromNumber)
	if err != nil {
		s.cfg.Log.Info("no reply sent to keyword", "message", to.ID, "org", to.org, "err", err)
		return nil
	}
	m := Message{ID: db.NewID("sms"), Direction: outbound, Status: queued, FromNumber: n.Number, ToNumber: number, Body: body,
		Media:  []Media{},
		Source: "flow", CreatedAt: db.At(s.cfg.Clock.Now()), Metadata: map[string]string{}, Sandbox: to.Sandbox, org: to.org,
		carrier:   carrier,
		automatic: true}
	m.Encoding, m.Segments = Segments(body)
	return s.storeAndEnqueue(ctx, tx, &m, n.ID)
}
