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

// Queue is the job queue of messages. Start its workers after the carriers are set.
const Queue = "sms"

const (
	dueJob     = "sms.due"
	sendJob    = "sms.send"
	receiptJob = "sms.receipt"
	forwardJob = "sms.forward"
)

// messageArgs is the argument of jobs. It has only the id, so that no job contains texts or numbers.
type messageArgs struct {
	ID string `json:"id"`
}

// sendArgs is the argument of the job that sends a message: the carrier to use, and the carriers that failed.
type sendArgs struct {
	ID      string   `json:"id"`
	Carrier string   `json:"carrier,omitempty"`
	Tried   []string `json:"tried,omitempty"`
}

// receiptArgs is the argument of the job that applies the later results of a simulated carrier.
type receiptArgs struct {
	ID    string  `json:"id"`
	Later *Result `json:"later,omitempty"`
	Reply bool    `json:"reply,omitempty"` // the recipient answers with the same text
}

// Handle registers the job handlers.
func (s *Service) Handle(r *job.Runner) {
	r.Handle(dueJob, s.queueDue)
	r.Handle(sendJob, s.send)
	r.Handle(receiptJob, s.applySimulated)
	r.Handle(forwardJob, s.forward)
}

// maxAttempts limits the attempts if a carrier cannot be reached. The growing pauses add up to more than an hour and
// a quarter.
const maxAttempts = 12

// enqueue creates the job that sends a message. Jobs of one conversation run in order.
func (s *Service) enqueue(ctx context.Context, tx db.Querier, m Message, tried ...string) error {
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: m.org, Queue: Queue, Lane: s.cfg.Carriers.Lane(m.carrier), Kind: sendJob,
		Args:      sendArgs{m.ID, m.carrier, tried},
		UniqueKey: sendJob + " " + m.ID + " " + m.carrier, MaxAttempts: maxAttempts, OrderKey: "sms " + m.org + " " + m.ConversationID +
			" " + m.carrier})
}

// loadMessage reads the message of a job; ok is false if it was deleted.
func (s *Service) loadMessage(ctx context.Context, j job.Job) (m Message, ok bool, err error) {
	var ref messageArgs
	if err := j.Bind(&ref); err != nil {
		return m, false, errors.Join(err, job.ErrDead)
	}
	m, err = get(ctx, s.cfg.DB.Read(ctx), j.Org, ref.ID)
	if db.IsNone(err) {
		return m, false, nil
	}
	return m, err == nil, err
}

// queueDue queues a scheduled message at its time.
func (s *Service) queueDue(ctx context.Context, j job.Job) error {
	m, ok, err := s.loadMessage(ctx, j)
	if err != nil || !ok || m.Status != scheduled {
		return err
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		m.Status = queued
		moved, err := s.changeStatus(ctx, tx, &m, scheduled)
		if err != nil || !moved {
			return err
		}
		return s.enqueue(ctx, tx, m)
	})
}

// send submits a message to its carrier. It may run again after a crash at any point. A message that may have been
// sent is never sent again; its status is queried instead.
func (s *Service) send(ctx context.Context, j job.Job) error {
	m, ok, err := s.loadMessage(ctx, j)
	if err != nil || !ok {
		return err
	}
	t := sendAttempt{job: j}
	if err := j.Bind(&t.args); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	if t.args.Carrier != "" && t.args.Carrier != m.carrier { // the message was reassigned to another carrier
		return nil
	}
	if t.carrier, err = s.carrierOf(ctx, m); err != nil {
		return err
	}
	switch {
	case m.Status == queued && t.carrier == nil:
		return s.handleCarrierGone(ctx, t, m)
	case m.Status == queued:
		return s.sendQueued(ctx, t, m)
	case m.Status == sending && t.carrier == nil:
		return s.handleOutcome(ctx, t, m, Result{}, ErrOutcomeUnknown)
	case m.Status == sending:
		r, err := t.carrier.QueryStatus(ctx, m.outgoing())
		return s.handleOutcome(ctx, t, m, r, err)
	}
	return nil
}

// sendAttempt is one attempt to send a message.
type sendAttempt struct {
	job     job.Job
	args    sendArgs
	carrier Carrier
}

// carrierOf returns the carrier of a message; nil if it no longer exists.
func (s *Service) carrierOf(ctx context.Context, m Message) (Carrier, error) {
	if c := s.BuiltIn[m.carrier]; c != nil {
		return c, nil
	}
	return s.cfg.Carriers.Connected(ctx, m.org, m.carrier)
}

// sendQueued sends a queued message when the rate limits allow it.
func (s *Service) sendQueued(ctx context.Context, t sendAttempt, m Message) error {
	if stopped, err := s.isStopped(ctx, m); err != nil || stopped {
		return s.waitStopped(ctx, m, err)
	}
	if wait := s.paceDelay(m, t.carrier); wait > 0 {
		return &job.Retry{After: wait, NotCounted: true, Cause: errors.New("rate limit reached")}
	}
	begun, err := s.markSending(ctx, &m)
	if err != nil || !begun {
		return err
	}
	o := m.outgoing()
	if m.Segments > 1 {
		if o.Sent, err = sentIDs(ctx, s.cfg.DB.Read(ctx), m); err != nil {
			return err
		}
	}
	r, err := t.carrier.Send(ctx, o)
	return s.handleOutcome(ctx, t, m, r, err)
}

// markSending sets a message to sending, or to failed if its recipient has opted out in the meantime.
func (s *Service) markSending(ctx context.Context, m *Message) (begun bool, err error) {
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		var numberID db.Null
		const q = `SELECT number_id FROM conversations WHERE org_id = $1 AND id = $2`
		if err := tx.QueryRow(ctx, q, m.org, m.ConversationID).Scan(&numberID); err != nil {
			return fmt.Errorf("find conversation: %w", err)
		}
		out, err := s.isOptedOut(ctx, tx, m.org, string(numberID), m.ToNumber)
		if err != nil {
			return err
		}
		m.Status, m.reference, m.sendingSince = sending, m.ID, db.At(s.cfg.Clock.Now())
		if out && !m.automatic {
			m.Status, m.Error = Failed, &Fault{Code: "opted_out", Message: "the recipient opted out before the message was sent"}
		}
		if begun, err = s.changeStatus(ctx, tx, m, queued); err == nil && begun {
			err = s.notifyFinal(ctx, tx, *m)
		}
		begun = begun && m.Status == sending
		return err
	})
	return begun, err
}

// handleOutcome stores the outcome of an attempt in the transaction that ends the job. A message that was certainly
// not sent is retried. A message with an unknown outcome is not.
func (s *Service) handleOutcome(ctx context.Context, t sendAttempt, m Message, r Result, err error) error {
	if err != nil && !errors.Is(err, ErrUnsent) && !errors.Is(err, ErrOutcomeUnknown) {
		s.cfg.Log.Error("outcome of sending a message unknown; querying the carrier", "message", m.ID, "org", m.org, "err", err)
		asked, lost := t.carrier.QueryStatus(ctx, m.outgoing())
		if r.IDs = append(r.IDs, asked.IDs...); lost == nil {
			r, err = asked, nil
		} else if errors.Is(lost, ErrUnsent) {
			err = errors.Join(ErrUnsent, err)
		}
	}
	switch {
	case err == nil:
		s.saveWithJob(ctx, m, sending, r)
		return nil
	case errors.Is(err, ErrUnsent):
		return s.handleUnsent(ctx, t, m, r, err)
	}
	s.saveWithJob(ctx, m, sending, failedResult("unknown", "the message may have been sent: what became of it is not known"))
	return nil
}

// saveWithJob stores a result in the transaction that ends the job.
func (s *Service) saveWithJob(ctx context.Context, m Message, from string, r Result) {
	job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error { return s.saveResult(ctx, tx, m, from, r) })
}

func failedResult(code, message string) Result {
	return Result{Status: Failed, Fault: &Fault{Code: code, Message: message}}
}

// saveResult stores a result, publishes it, and schedules later results of simulated carriers.
func (s *Service) saveResult(ctx context.Context, tx db.Querier, m Message, from string, r Result) error {
	if err := s.applyResult(ctx, tx, &m, from, r); err != nil { // first, because receipts also lock the message before its parts
		return err
	}
	if err := s.saveParts(ctx, tx, m, r.IDs); err != nil {
		return err
	}
	if len(r.IDs) > 0 {
		if err := s.updateFromParts(ctx, tx, m); err != nil {
			return err
		}
	}
	return s.enqueueSimulated(ctx, tx, m, r)
}

// applyResult stores the new state of a message. It does nothing if the message is no longer in the state from.
func (s *Service) applyResult(ctx context.Context, tx db.Querier, m *Message, from string, r Result) error {
	now := db.At(s.cfg.Clock.Now())
	first := m.SentAt.IsZero() && r.Status != Failed
	m.Status, m.Error = r.Status, r.Fault
	if first {
		m.SentAt = now
	}
	if r.Status == Delivered {
		m.DeliveredAt = now
	}
	moved, err := s.changeStatus(ctx, tx, m, from)
	if err == nil && moved {
		err = s.notifyFinal(ctx, tx, *m)
	}
	if err != nil || !moved || !first {
		return err
	}
	if err := s.notifyStored(ctx, tx, *m); err != nil {
		return err
	}
	return s.cfg.Outbox.Publish(ctx, tx, m.org, event.SMSSent{MessageID: m.ID, ConversationID: m.ConversationID, FromNumber: m.FromNumber,
		ToNumber: m.ToNumber, Body: m.Body, Segments: m.Segments, Status: Sent, SentAt: m.SentAt, UserID: m.UserID,
		Metadata: event.Metadata(m.Metadata)})
}

// enqueueSimulated schedules the later results of a simulated carrier.
func (s *Service) enqueueSimulated(ctx context.Context, tx db.Querier, m Message, r Result) error {
	if r.Later == nil && r.Reply == "" {
		return nil
	}
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: m.org, Queue: Queue, Kind: receiptJob, RunAt: s.cfg.Clock.Now().Add(r.After),
		Args: receiptArgs{m.ID, r.Later, r.Reply != ""}, UniqueKey: receiptJob + " " + m.ID})
}

// applySimulated applies the later results of a simulated carrier.
func (s *Service) applySimulated(ctx context.Context, j job.Job) error {
	var a receiptArgs
	if err := j.Bind(&a); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	m, ok, err := s.loadMessage(ctx, j)
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
	_, err = s.Receive(ctx, Incoming{Org: j.Org, From: m.ToNumber, To: m.FromNumber, Body: m.Body, Carrier: m.carrier,
		Reference: "reply " + m.ID, Sandbox: m.Sandbox})
	return err
}

func (m Message) outgoing() Outgoing {
	return Outgoing{Org: m.org, Reference: m.ID, From: m.FromNumber, To: m.ToNumber, Body: m.Body, Media: m.Media, UserID: deref(m.UserID)}
}

// forwardTimeout limits the time to deliver a message to telephones.
const forwardTimeout = 40 * time.Second

// forward delivers an inbound message to telephones, at most once: after a crash it is unknown which telephones have
// it.
func (s *Service) forward(ctx context.Context, j job.Job) error {
	m, ok, err := s.loadMessage(ctx, j)
	if err != nil || !ok {
		return err
	}
	fresh := false
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
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
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	if err := s.cfg.Phones.ForwardToPhones(ctx, j.Org, m); err != nil {
		s.cfg.Log.Info("message not delivered to telephones", "message", m.ID, "org", j.Org, "err", err)
	}
	return nil
}

// Wake makes the queue look for runnable messages at once, for example because a carrier is connected again.
func (s *Service) Wake() { s.cfg.Jobs.Wake(Queue) }
