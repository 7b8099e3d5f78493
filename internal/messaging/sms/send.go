package sms

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
)

// Queue is the job queue of this room. It is to be worked once its carriers are there.
const Queue = "sms"

const (
	dueKind     = "sms.due"
	sendKind    = "sms.send"
	receiptKind = "sms.receipt"
	forwardKind = "sms.forward"
)

// reference is the argument of jobs: what is said, and to whom, stands in no job.
type reference struct {
	ID string `json:"id"`
}

// errand is the argument of the job that sends a message: by which carrier, and which others could not.
type errand struct {
	ID      string   `json:"id"`
	Carrier string   `json:"carrier,omitempty"`
	Tried   []string `json:"tried,omitempty"`
}

// receipt is the argument of the job that writes what a simulated carrier reports later.
type receipt struct {
	ID    string  `json:"id"`
	Later *Result `json:"later,omitempty"`
	Reply bool    `json:"reply,omitempty"` // the recipient answers with the same text
}

// Handle registers what sends messages.
func (s *Service) Handle(r *job.Runner) {
	r.Handle(dueKind, s.due)
	r.Handle(sendKind, s.send)
	r.Handle(receiptKind, s.report)
	r.Handle(forwardKind, s.forward)
}

// attempts is how often a carrier that cannot be reached is tried, with growing pauses: over an hour and a quarter.
const attempts = 12

// enqueue has a message sent, after those of its conversation that were there before it.
func (s *Service) enqueue(ctx context.Context, tx db.Querier, m Message, tried ...string) error {
	lane := ""
	if s.Lane != nil {
		lane = s.Lane(m.carrier)
	}
	return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: m.org, Queue: Queue, Lane: lane, Kind: sendKind, Args: errand{m.ID, m.carrier, tried},
		UniqueKey: sendKind + " " + m.ID + " " + m.carrier, MaxAttempts: attempts, OrderKey: "sms " + m.org + " " + m.ConversationID + " " + m.carrier})
}

// bound reads the message a job is about; ok is false where it is gone.
func (s *Service) bound(ctx context.Context, j job.Job) (m Message, ok bool, err error) {
	var ref reference
	if err := j.Bind(&ref); err != nil {
		return m, false, errors.Join(err, job.ErrDead)
	}
	m, err = get(ctx, s.DB.Read(ctx), j.Org, ref.ID)
	if db.IsNone(err) {
		return m, false, nil
	}
	return m, err == nil, err
}

// due queues a message whose time has come.
func (s *Service) due(ctx context.Context, j job.Job) error {
	m, ok, err := s.bound(ctx, j)
	if err != nil || !ok || m.Status != scheduled {
		return err
	}
	return s.DB.Tx(ctx, func(tx db.Querier) error {
		m.Status = queued
		moved, err := move(ctx, tx, m, scheduled)
		if err != nil || !moved {
			return err
		}
		return s.enqueue(ctx, tx, m)
	})
}

// send hands a message to its carrier. It may be run again after a crash at any point: what may have been sent is never sent
// again, but asked about.
func (s *Service) send(ctx context.Context, j job.Job) error {
	m, ok, err := s.bound(ctx, j)
	if err != nil || !ok {
		return err
	}
	t := try{job: j}
	if err := j.Bind(&t.errand); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	if t.errand.Carrier != "" && t.errand.Carrier != m.carrier { // it goes another way now
		return nil
	}
	if t.carrier, err = s.carrier(ctx, m); err != nil {
		return err
	}
	switch {
	case m.Status == queued && t.carrier == nil:
		return s.astray(ctx, t, m)
	case m.Status == queued:
		return s.hand(ctx, t, m)
	case m.Status == sending && t.carrier == nil:
		return s.settle(ctx, t, m, Result{}, ErrUnknown)
	case m.Status == sending:
		r, err := t.carrier.Ask(ctx, m.outgoing())
		return s.settle(ctx, t, m, r, err)
	}
	return nil
}

// a try is one attempt to send a message.
type try struct {
	job     job.Job
	errand  errand
	carrier Carrier
}

// carrier is who takes a message; nil where nobody does any more.
func (s *Service) carrier(ctx context.Context, m Message) (Carrier, error) {
	if c := s.Carriers[m.carrier]; c != nil || s.Connected == nil {
		return c, nil
	}
	return s.Connected(ctx, m.org, m.carrier)
}

// hand sends a message that was not sent, as soon as the limits allow.
func (s *Service) hand(ctx context.Context, t try, m Message) error {
	if wait := s.wait(m, t.carrier); wait > 0 {
		return &job.Retry{After: wait, NotCounted: true, Cause: errors.New("messages are sent at a limited pace")}
	}
	begun, err := s.begin(ctx, &m)
	if err != nil || !begun {
		return err
	}
	o := m.outgoing()
	if m.Segments > 1 {
		if o.Sent, err = sentIDs(ctx, s.DB.Read(ctx), m); err != nil {
			return err
		}
	}
	r, err := t.carrier.Send(ctx, o)
	return s.settle(ctx, t, m, r, err)
}

// begin writes down that a message is about to be sent, unless its recipient opted out meanwhile.
func (s *Service) begin(ctx context.Context, m *Message) (begun bool, err error) {
	err = s.DB.Tx(ctx, func(tx db.Querier) error {
		var numberID db.Null
		const q = `SELECT number_id FROM conversations WHERE org_id = $1 AND id = $2`
		if err := tx.QueryRow(ctx, q, m.org, m.ConversationID).Scan(&numberID); err != nil {
			return fmt.Errorf("find conversation: %w", err)
		}
		out, err := s.opted(ctx, tx, m.org, string(numberID), m.ToNumber)
		if err != nil {
			return err
		}
		m.Status, m.reference = sending, m.ID
		if out && !m.automatic {
			m.Status, m.Error = Failed, &Fault{Code: "opted_out", Message: "the recipient opted out before the message was sent"}
		}
		if begun, err = move(ctx, tx, *m, queued); err == nil && begun {
			err = s.ended(ctx, tx, *m)
		}
		begun = begun && m.Status == sending
		return err
	})
	return begun, err
}

// settle writes what became of a message, with the end of its job. What was surely not sent is tried again; what nobody knows about is not.
func (s *Service) settle(ctx context.Context, t try, m Message, r Result, err error) error {
	if err != nil && !errors.Is(err, ErrUnsent) && !errors.Is(err, ErrUnknown) {
		s.Log.Error("message not sent for certain", "message", m.ID, "org", m.org, "err", err)
		asked, lost := t.carrier.Ask(ctx, m.outgoing())
		if r.IDs = append(r.IDs, asked.IDs...); lost == nil {
			r, err = asked, nil
		} else if errors.Is(lost, ErrUnsent) {
			err = errors.Join(ErrUnsent, err)
		}
	}
	switch {
	case err == nil:
		s.atEnd(ctx, m, sending, r)
		return nil
	case errors.Is(err, ErrUnsent):
		return s.unsent(ctx, t, m, r, err)
	}
	s.atEnd(ctx, m, sending, failed("unknown", "the message may have been sent: what became of it is not known"))
	return nil
}

// atEnd writes a result in the transaction that ends the job.
func (s *Service) atEnd(ctx context.Context, m Message, from string, r Result) {
	job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error { return s.conclude(ctx, tx, m, from, r) })
}

func failed(code, message string) Result {
	return Result{Status: Failed, Fault: &Fault{Code: code, Message: message}}
}

// conclude writes a result, tells who listens, and has later reports written.
func (s *Service) conclude(ctx context.Context, tx db.Querier, m Message, from string, r Result) error {
	if err := s.apply(ctx, tx, &m, from, r); err != nil { // first: receipts take the message before its parts, too
		return err
	}
	if err := s.keepParts(ctx, tx, m, r.IDs); err != nil {
		return err
	}
	if len(r.IDs) > 0 {
		if err := s.progress(ctx, tx, m); err != nil {
			return err
		}
	}
	return s.later(ctx, tx, m, r)
}

// apply moves a message on; it does nothing where the message has moved on already.
func (s *Service) apply(ctx context.Context, tx db.Querier, m *Message, from string, r Result) error {
	now := db.At(s.Now())
	first := m.SentAt.IsZero() && r.Status != Failed
	m.Status, m.Error = r.Status, r.Fault
	if first {
		m.SentAt = now
	}
	if r.Status == Delivered {
		m.DeliveredAt = now
	}
	moved, err := move(ctx, tx, *m, from)
	if err == nil && moved {
		err = s.ended(ctx, tx, *m)
	}
	if err != nil || !moved || !first {
		return err
	}
	if err := s.remember(ctx, tx, *m); err != nil {
		return err
	}
	return s.Outbox.Publish(ctx, tx, m.org, event.SMSSent{MessageID: m.ID, ConversationID: m.ConversationID, FromNumber: m.FromNumber,
		ToNumber: m.ToNumber, Body: m.Body, Segments: m.Segments, Status: Sent, SentAt: m.SentAt, UserID: m.UserID,
		Metadata: event.Metadata(m.Metadata)})
}

// later enqueues what a simulated carrier reports afterwards.
func (s *Service) later(ctx context.Context, tx db.Querier, m Message, r Result) error {
	if r.Later == nil && r.Reply == "" {
		return nil
	}
	return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: m.org, Queue: Queue, Kind: receiptKind, RunAt: s.Now().Add(r.After),
		Args: receipt{m.ID, r.Later, r.Reply != ""}, UniqueKey: receiptKind + " " + m.ID})
}

// report writes what a simulated carrier reports.
func (s *Service) report(ctx context.Context, j job.Job) error {
	var a receipt
	if err := j.Bind(&a); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	m, ok, err := s.bound(ctx, j)
	if err != nil || !ok {
		return err
	}
	if a.Later != nil {
		if err := s.Receipt(ctx, j.Org, m.carrier, m.reference, *a.Later); err != nil {
			return err
		}
	}
	if !a.Reply {
		return nil
	}
	_, err = s.Receive(ctx, Incoming{Org: j.Org, From: m.ToNumber, To: m.FromNumber, Body: m.Body, Carrier: m.carrier, Reference: "reply " + m.ID,
		Sandbox: m.Sandbox})
	return err
}

func (m Message) outgoing() Outgoing {
	return Outgoing{Org: m.org, Reference: m.ID, From: m.FromNumber, To: m.ToNumber, Body: m.Body, Media: m.Media, UserID: text(m.UserID)}
}

// forwardFor is how long a message may take to reach telephones.
const forwardFor = 40 * time.Second

// forward hands an inbound message to telephones, once: after a crash it is not known who has it.
func (s *Service) forward(ctx context.Context, j job.Job) error {
	m, ok, err := s.bound(ctx, j)
	if err != nil || !ok || s.Forward == nil {
		return err
	}
	fresh := false
	err = s.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `UPDATE messages SET forwarded = 'begun' WHERE org_id = $1 AND id = $2 AND forwarded IS NULL`
		r, err := tx.Exec(ctx, q, j.Org, m.ID)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		fresh = n == 1
		return err
	})
	if err != nil || !fresh {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, forwardFor)
	defer cancel()
	if err := s.Forward(ctx, j.Org, m); err != nil {
		s.Log.Info("message not handed to telephones", "message", m.ID, "org", j.Org, "err", err)
	}
	return nil
}

// Wake has messages looked for that can be sent: of a carrier that can take them again.
func (s *Service) Wake() { s.Jobs.Wake(Queue) }
