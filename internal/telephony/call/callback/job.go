package callback

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// JobQueue names the job queue of callbacks. Its worker must not start before the switch accepts calls.
const JobQueue = "callback"

const dialKind = "callback.dial"

// dialJobArgs holds the arguments of the job that dials a callback.
type dialJobArgs struct {
	ID string `json:"id"`
	N  int    `json:"n"` // number of attempts before this one
}

// Handle registers the job handler that places due callbacks.
func (s *Service) Handle(r *job.Runner) { r.Handle(dialKind, s.runDialJob) }

// requeueDelay is the delay before a dial job runs again. It applies if another callback dials the same number, or if this server accepts
// no calls at the moment.
const requeueDelay = 15 * time.Second

func (s *Service) enqueueDial(ctx context.Context, tx db.Querier, org string, c Callback, at time.Time) error {
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: JobQueue, Lane: org, Kind: dialKind,
		Args: dialJobArgs{c.ID, len(c.Attempts)}, RunAt: at, UniqueKey: dialKind + " " + c.ID + " " + strconv.Itoa(len(c.Attempts))})
}

// runDialJob dials a due callback. The job is idempotent after a crash at any point: the call's id is committed
// before the call is placed, and an id is placed once.
func (s *Service) runDialJob(ctx context.Context, j job.Job) error {
	var ref dialJobArgs
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	c, err := s.claim(ctx, j.Org, ref)
	if err != nil || c.Status != callbackDialing {
		return err
	}
	exists, err := s.callExists(ctx, j.Org, c.callID)
	if err != nil || exists {
		return err
	}
	return s.placeCallback(ctx, j.Org, c)
}

// claim sets a due callback to dialing with a new call id and returns it. If another callback dials the same number,
// it returns a job.Retry: the unique index callbacks_dialing allows one per number.
func (s *Service) claim(ctx context.Context, org string, ref dialJobArgs) (c Callback, err error) {
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if c, err = getCallback(ctx, tx, org, ref.ID); err != nil {
			return err
		}
		from := c.Status
		if from != callbackScheduled && from != callbackRetry || len(c.Attempts) != ref.N {
			return nil
		}
		if now := s.cfg.Clock.Now(); now.After(c.windowEnd) {
			c.Status = callbackFailed
		} else {
			c.Status, c.callID = callbackDialing, db.NewID("call")
			c.Attempts = append(c.Attempts, CallbackAttempt{At: db.At(now), CallID: c.callID, Result: callbackDialing})
		}
		_, err := c.updateStatus(ctx, tx, org, from, s.cfg.Clock.Now())
		return err
	})
	var e *op.Error
	switch {
	case db.IsConflict(err):
		return c, &job.Retry{After: requeueDelay, NotCounted: true, Cause: errors.New("the number is being dialled by another callback")}
	case errors.As(err, &e): // the callback was deleted
		return Callback{}, errors.Join(err, job.ErrDead)
	case err != nil:
		return c, fmt.Errorf("claim callback %s: %w", ref.ID, err)
	}
	return c, nil
}

func (s *Service) callExists(ctx context.Context, org, callID string) (bool, error) {
	_, err := s.cfg.Calls.Find(ctx, org, callID)
	if db.IsNone(err) {
		return false, nil
	}
	return true, err
}

// placeCallback places the call of an attempt.
func (s *Service) placeCallback(ctx context.Context, org string, c Callback) error {
	p := call.Placement{Org: org, ID: c.callID, Sandbox: c.sandbox, Source: "callback", UserID: textOf(c.UserID), To: c.ToNumber,
		From: c.from, RingTimeout: call.DefaultRingSeconds * time.Second, MaxDuration: call.MaxCallSeconds * time.Second, Record: "default",
		Machine: "off", Reason: textOf(c.Reason)}
	switch {
	case textOf(c.FlowID) != "":
		p.ScriptTarget = "flow:" + *c.FlowID
	case textOf(c.QueueID) != "":
		p.ScriptTarget = "queue:" + *c.QueueID
	}
	err := s.cfg.Calls.Place(ctx, p)
	var e *op.Error
	switch {
	case err == nil:
		return s.hangUpIfCanceled(ctx, org, c)
	case errors.As(err, &e) && (e.Code == "draining" || e.Code == "overloaded"):
		return &job.Retry{After: requeueDelay, NotCounted: true, Cause: err}
	case !errors.As(err, &e):
		return err
	}
	exists, lost := s.callExists(ctx, org, c.callID)
	if exists || lost != nil { // the call exists: End finishes the attempt
		return lost
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return s.finishAttempt(ctx, tx, org, c.callID, e.Code, false) })
}

// CallEnded stores the result of an attempt when its call ends. It implements EndObserver.
func (s *Service) CallEnded(ctx context.Context, tx db.Querier, e call.Ended, r call.CDR) error {
	if e.Source != "callback" {
		return nil
	}
	return s.finishAttempt(ctx, tx, e.Org, e.ID, string(r.Status), e.Answered())
}

// hangUpIfCanceled ends the call if the callback was canceled between the claim and the placing of its call.
func (s *Service) hangUpIfCanceled(ctx context.Context, org string, c Callback) error {
	now, err := getCallback(ctx, s.cfg.DB.Read(ctx), org, c.ID)
	if err != nil || now.Status != callbackCanceled {
		return err
	}
	if _, err = s.cfg.Calls.Do(ctx, org, c.callID, call.End{Reason: "callback canceled"}); isStateOrNotFound(err) {
		return nil
	}
	return err
}

// finishAttempt stores the result of an attempt in its callback. The callback then completes, waits for its next
// attempt (retry_wait) or fails. It does nothing if no callback is dialing with that call id.
func (s *Service) finishAttempt(ctx context.Context, tx db.Querier, org, callID, result string, answered bool) error {
	const q = `SELECT ` + callbackColumns + ` FROM callbacks WHERE org_id = $1 AND call_id = $2 AND status = 'dialing'`
	c, err := scanCallback(tx.QueryRow(ctx, q, org, callID))
	if db.IsNone(err) {
		return nil
	}
	if err != nil || c.Origin == "queue" { // package queue reports the result by WriteQueueCallback
		return err
	}
	next := s.cfg.Clock.Now().Add(retryDelay(len(c.Attempts)))
	switch c.Attempts[len(c.Attempts)-1].Result = result; {
	case answered:
		c.Status = callbackCompleted
	case len(c.Attempts) >= c.MaxAttempts || next.After(c.windowEnd):
		c.Status = callbackFailed
	default:
		c.Status = callbackRetry
	}
	c.callID = ""
	if moved, err := c.updateStatus(ctx, tx, org, callbackDialing, s.cfg.Clock.Now()); err != nil || !moved || c.Status != callbackRetry {
		return err
	}
	return s.enqueueDial(ctx, tx, org, c, next)
}
