package smppserver

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/protocol/smpp"
)

// Queue is the job queue of deliveries to applications: receipts and messages.
const Queue = "esme"

const (
	receiptJob = "esme.receipt"
	messageJob = "esme.message"
)

// deliveryRetention is the time for which deliveries to an absent application are retried.
const deliveryRetention = 7 * 24 * time.Hour

// receiptArgs is the argument of the job that delivers a receipt.
type receiptArgs struct {
	ID string `json:"id"`
}

// messageArgs is the argument of the job that delivers a message to an application.
type messageArgs struct {
	Application string `json:"application"`
	Message     string `json:"message"`
}

// Handle registers the job handlers.
func (s *Service) Handle(r *job.Runner) {
	r.Handle(receiptJob, s.deliverReceipt)
	r.Handle(messageJob, s.deliverMessage)
}

// MessageFinal implements sms.FinalObserver: it enqueues the receipts of a message whose state has become final.
func (s *Service) MessageFinal(ctx context.Context, tx db.Querier, org string, m sms.Message) error {
	if !m.Final() {
		return nil
	}
	ids, err := s.requestedReceipts(ctx, tx, org, m)
	if err != nil || len(ids) == 0 {
		return err
	}
	for application, of := range ids {
		if err := s.enqueueReceipts(ctx, tx, org, application, of...); err != nil {
			return err
		}
	}
	return nil
}

// requestedReceipts returns, by application, the identifiers of a message for which receipts were requested.
func (s *Service) requestedReceipts(ctx context.Context, tx db.Querier, org string, m sms.Message) (map[string][]string, error) {
	const q = `SELECT id, application_id, receipt FROM sms_submissions WHERE org_id = $1 AND message_id = $2 AND receipt > 0 ORDER BY id`
	rows, err := tx.Query(ctx, q, org, m.ID)
	if err != nil {
		return nil, fmt.Errorf("find submissions: %w", err)
	}
	defer rows.Close()
	ids := map[string][]string{}
	for rows.Next() {
		var id, application string
		var receipt int
		if err := rows.Scan(&id, &application, &receipt); err != nil {
			return nil, err
		}
		if state, _ := stateOf(m); smpp.ReceiptRequest(receipt).Wants(state) {
			ids[application] = append(ids[application], id)
		}
	}
	return ids, rows.Err()
}

// receiptDelay keeps a receipt from arriving before the submit_sm_resp that has its identifier.
const receiptDelay = 300 * time.Millisecond

// enqueueReceipts creates the jobs that deliver receipts.
func (s *Service) enqueueReceipts(ctx context.Context, tx db.Querier, org, application string, ids ...string) error {
	for _, id := range ids {
		err := s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Lane: application, Kind: receiptJob, Args: receiptArgs{id},
			UniqueKey: receiptJob + " " + org + " " + id, RunAt: s.cfg.Clock.Now().Add(receiptDelay)})
		if err != nil {
			return err
		}
	}
	return nil
}

// MessageReceived implements sms.ReceiveObserver: it enqueues the delivery of a received message to the applications that
// use its number. Messages of one conversation are delivered in order.
func (s *Service) MessageReceived(ctx context.Context, tx db.Querier, org string, n sms.OwnNumber, m sms.Message) error {
	all, err := queryApplications(ctx, tx, db.Where(`SELECT `+columns+` FROM sms_applications WHERE org_id = $1`,
		org).And("enabled = TRUE"))
	if err != nil {
		return err
	}
	for _, a := range all {
		if !a.usesNumber(n.ID) {
			continue
		}
		err := s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Lane: a.ID, Kind: messageJob, Args: messageArgs{a.ID, m.ID},
			UniqueKey: messageJob + " " + a.ID + " " + m.ID, OrderKey: messageJob + " " + a.ID + " " + m.ConversationID})
		if err != nil {
			return err
		}
	}
	return nil
}

// deliverReceipt sends the receipt of a message to an application.
func (s *Service) deliverReceipt(ctx context.Context, j job.Job) error {
	var arg receiptArgs
	if err := j.Bind(&arg); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	x, err := getSubmission(ctx, s.cfg.DB.Read(ctx), j.Org, arg.ID)
	if db.IsNone(err) || err == nil && x.receipt == smpp.ReceiptNever {
		return nil
	}
	if err != nil {
		return err
	}
	m := sms.Message{Status: sms.Failed, CreatedAt: x.at}
	if x.message != "" {
		if m, err = s.cfg.Messages.Find(ctx, s.cfg.DB.Read(ctx), j.Org, x.message); err != nil {
			return ignoreNotFound(err)
		}
	}
	a, err := get(ctx, s.cfg.DB.Read(ctx), j.Org, x.application)
	if err != nil || !a.Enabled {
		return ignoreNotFound(err)
	}
	state, code := stateOf(m)
	err = s.server.Receipt(ctx, a.account(), smpp.Receipt{MessageID: x.id, From: x.destination, To: x.source, State: state, Error: code,
		Submitted: x.at.Time, Done: s.cfg.Clock.Now(), Text: m.Body})
	return s.deliveryResult(a, m.CreatedAt.Time, err)
}

// deliverMessage sends a received message to an application.
func (s *Service) deliverMessage(ctx context.Context, j job.Job) error {
	var arg messageArgs
	if err := j.Bind(&arg); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	a, err := get(ctx, s.cfg.DB.Read(ctx), j.Org, arg.Application)
	if err != nil || !a.Enabled {
		return ignoreNotFound(err)
	}
	m, err := s.cfg.Messages.Find(ctx, s.cfg.DB.Read(ctx), j.Org, arg.Message)
	if err != nil {
		return ignoreNotFound(err)
	}
	text := sms.PlainText(m.Body, m.Media)
	if text == "" && len(m.Media) > 0 { // cannot be decoded
		return nil
	}
	o := smpp.Outgoing{From: smpp.ParseAddress(m.FromNumber), To: smpp.ParseAddress(m.ToNumber), Text: text,
		Reference: partReference(m.ID), Sent: s.deliveredParts(j.ID).MessageIDs}
	r, err := s.server.Deliver(ctx, a.account(), o)
	s.saveProgress(j.ID, r, err)
	return s.deliveryResult(a, m.CreatedAt.Time, err)
}

// partReference returns the reference number of a concatenated message. It is derived from the id and survives a
// crash, so that parts sent again belong to the same message.
func partReference(id string) uint16 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return uint16(h.Sum32()%255) + 1
}

// ignoreNotFound returns nil if the row of a job no longer exists, which ends the job.
func ignoreNotFound(err error) error {
	if db.IsNone(err) {
		return nil
	}
	return err
}

// deliveryResult returns the result of a delivery job. A permanent refusal ends the job; other errors are retried
// until deliveryRetention.
func (s *Service) deliveryResult(a Application, since time.Time, err error) error {
	var e *smpp.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && e.Outcome == smpp.Permanent:
		s.cfg.Log.Warn("smpp: an application refused a delivery permanently", "application", a.ID, "err", err)
		return nil
	case s.cfg.Clock.Now().Sub(since) > deliveryRetention:
		s.cfg.Log.Warn("smpp: a delivery to an application expired", "application", a.ID, "err", err)
		return nil
	case errors.Is(err, smpp.ErrNotBound):
		return &job.Retry{After: retryDelay(s.cfg.Clock.Now().Sub(since)), NotCounted: true, Cause: err}
	case errors.As(err, &e) && e.Wait > 0:
		return &job.Retry{After: e.Wait, NotCounted: true, Cause: err}
	}
	return &job.Retry{After: time.Second, NotCounted: true, Cause: err}
}

// retryDelay returns the delay until the next attempt: a tenth of the time waited, between 1 s and 10 min. A bind on
// this node hurries the jobs of the application, but a bind on another node does not.
func retryDelay(waited time.Duration) time.Duration {
	return min(max(waited/10, time.Second), 10*time.Minute)
}

// maxProgress limits the messages whose delivered parts are kept in memory.
const maxProgress = 10_000

func (s *Service) deliveredParts(id string) smpp.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress[id]
}

// saveProgress keeps in memory which parts of a message an application has accepted.
func (s *Service) saveProgress(id string, r smpp.Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.progress, id)
	if err != nil && len(r.MessageIDs) > 0 && len(s.progress) < maxProgress {
		s.progress[id] = r
	}
}
