package call

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
)

// CallbackQueue is the job queue of calls that are placed later. It is to be worked once the switch takes calls.
const CallbackQueue = "callback"

const dialKind = "callback.dial"

// dialling is the argument of the job that dials.
type dialling struct {
	ID string `json:"id"`
	N  int    `json:"n"` // attempts before this one
}

// HandleCallbacks registers what places calls that are due.
func (s *Service) HandleCallbacks(r *job.Runner) { r.Handle(dialKind, s.dialLater) }

// again is when another callback to the same number, or a server that takes no calls now, is looked at again.
const again = 15 * time.Second

func (s *Service) enqueueDial(ctx context.Context, tx db.Querier, org string, c Callback, at time.Time) error {
	return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: CallbackQueue, Lane: org, Kind: dialKind, Args: dialling{c.ID, len(c.Attempts)}, RunAt: at,
		UniqueKey: dialKind + " " + c.ID + " " + strconv.Itoa(len(c.Attempts))})
}

// dialLater dials a callback that is due. It may be run again after a crash at any point: a call is placed under the id that
// was written down before, and once.
func (s *Service) dialLater(ctx context.Context, j job.Job) error {
	var ref dialling
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	c, err := s.claim(ctx, j.Org, ref)
	if err != nil || c.Status != callbackDialing {
		return err
	}
	exists, err := s.placed(ctx, j.Org, c.callID)
	if err != nil || exists {
		return err
	}
	return s.dial(ctx, j.Org, c)
}

// claim makes a callback that is due dial, and returns it. One to a number that is being dialled already waits.
func (s *Service) claim(ctx context.Context, org string, ref dialling) (c Callback, err error) {
	err = s.DB.Tx(ctx, func(tx db.Querier) error {
		if c, err = getCallback(ctx, tx, org, ref.ID); err != nil {
			return err
		}
		from := c.Status
		if from != callbackScheduled && from != callbackRetry || len(c.Attempts) != ref.N {
			return nil
		}
		if now := s.Now(); now.After(c.windowEnd) {
			c.Status = callbackFailed
		} else {
			c.Status, c.callID = callbackDialing, db.NewID("call")
			c.Attempts = append(c.Attempts, CallbackAttempt{At: db.At(now), CallID: c.callID, Result: callbackDialing})
		}
		_, err := c.move(ctx, tx, org, from, s.Now())
		return err
	})
	var e *op.Error
	switch {
	case db.IsConflict(err):
		return c, &job.Retry{After: again, Free: true, Cause: errors.New("the number is being dialled by another callback")}
	case errors.As(err, &e): // the callback is gone
		return Callback{}, errors.Join(err, job.ErrDead)
	case err != nil:
		return c, fmt.Errorf("claim callback %s: %w", ref.ID, err)
	}
	return c, nil
}

func (s *Service) placed(ctx context.Context, org, callID string) (bool, error) {
	_, err := get(ctx, s.DB.Read(ctx), org, callID)
	if db.IsNone(err) {
		return false, nil
	}
	return true, err
}

// dial places the call of an attempt.
func (s *Service) dial(ctx context.Context, org string, c Callback) error {
	if s.Switch == nil {
		return &job.Retry{After: again, Free: true, Cause: errors.New("this server carries no calls")}
	}
	p := Placement{Org: org, ID: c.callID, Sandbox: c.sandbox, Source: "callback", UserID: text(c.UserID), To: c.ToNumber, From: c.from,
		RingTimeout: defaultRing * time.Second, MaxDuration: longestCall * time.Second, Record: "default", Machine: "off", Reason: text(c.Reason)}
	switch {
	case text(c.FlowID) != "":
		p.Lead = "flow:" + *c.FlowID
	case text(c.QueueID) != "":
		p.Lead = "queue:" + *c.QueueID
	}
	err := s.Switch.Place(ctx, p)
	var e *op.Error
	switch {
	case err == nil:
		return s.canceledMeanwhile(ctx, org, c)
	case errors.As(err, &e) && (e.Code == "draining" || e.Code == "overloaded"):
		return &job.Retry{After: again, Free: true, Cause: err}
	case !errors.As(err, &e):
		return err
	}
	exists, lost := s.placed(ctx, org, c.callID)
	if exists || lost != nil { // its end says what became of it
		return lost
	}
	return s.DB.Tx(ctx, func(tx db.Querier) error { return s.attempted(ctx, tx, org, c.callID, e.Code, false) })
}

// canceledMeanwhile hangs up where the callback was canceled just before its call was placed.
func (s *Service) canceledMeanwhile(ctx context.Context, org string, c Callback) error {
	now, err := getCallback(ctx, s.DB.Read(ctx), org, c.ID)
	if err != nil || now.Status != callbackCanceled {
		return err
	}
	if _, err = s.Switch.Do(ctx, org, c.callID, End{Reason: "callback canceled"}); isState(err) {
		return nil
	}
	return err
}

// attempted writes down how an attempt ended: the callback is completed, waits for the next attempt, or has failed.
func (s *Service) attempted(ctx context.Context, tx db.Querier, org, callID, result string, answered bool) error {
	const q = `SELECT ` + callbackColumns + ` FROM callbacks WHERE org_id = $1 AND call_id = $2 AND status = 'dialing'`
	c, err := scanCallback(tx.QueryRow(ctx, q, org, callID))
	if db.IsNone(err) {
		return nil
	}
	if err != nil || c.QueueID != nil { // the queue says what became of it
		return err
	}
	next := s.Now().Add(pauseAfter(len(c.Attempts)))
	switch c.Attempts[len(c.Attempts)-1].Result = result; {
	case answered:
		c.Status = callbackCompleted
	case len(c.Attempts) >= c.MaxAttempts || next.After(c.windowEnd):
		c.Status = callbackFailed
	default:
		c.Status = callbackRetry
	}
	c.callID = ""
	if moved, err := c.move(ctx, tx, org, callbackDialing, s.Now()); err != nil || !moved || c.Status != callbackRetry {
		return err
	}
	return s.enqueueDial(ctx, tx, org, c, next)
}
