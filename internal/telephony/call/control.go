package call

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// actionTime is the time limit for the other side to confirm an action.
const actionTime = 5 * time.Second

// ActionsAfterEnd lists the actions on a call that has ended.
var ActionsAfterEnd = []string{"note", "tag"}

// ActionIn holds the call id and the Prefer header of an action.
type ActionIn struct {
	ID     string `path:"id" maxLength:"40"`
	Prefer string `header:"Prefer" maxLength:"200" doc:"respond-async: answer 202 at once, the outcome follows on the event stream (RFC 7240)"`
}

// isAsync reports whether the client wants 202 before the action is confirmed.
func (l ActionIn) isAsync() bool { return prefersAsync(l.Prefer) }

// asyncActions counts the actions that continue after their request was answered.
type asyncActions struct {
	running sync.WaitGroup
	mu      sync.Mutex // guards closed
	closed  bool
}

// start runs f in a goroutine. It returns false after Close.
func (u *asyncActions) start(f func()) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.running.Go(f)
	return true
}

// Close waits for the asynchronous actions that are not confirmed yet, at most actionTime. Later ones are refused.
func (s *Service) Close() {
	s.asyncActions.mu.Lock()
	s.asyncActions.closed = true
	s.asyncActions.mu.Unlock()
	s.asyncActions.running.Wait()
}

// RunAction sends a command to the switch and returns the call as it is afterwards.
func (s *Service) RunAction(ctx context.Context, in ActionIn, c Command) (*op.Out[Call], error) {
	before, err := s.findInProgress(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if in.isAsync() {
		return s.runActionAsync(ctx, before, c)
	}
	if _, err := s.runCommand(ctx, in.ID, c); err != nil {
		return nil, err
	}
	return s.currentCall(ctx, in.ID)
}

// runActionAsync returns 202 before the command is confirmed.
func (s *Service) runActionAsync(ctx context.Context, before Call, c Command) (*op.Out[Call], error) {
	err := s.runAfterResponse(ctx, before.ID, func(ctx context.Context) error {
		_, err := s.runCommand(ctx, before.ID, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Call]{Status: 202, Body: before}, nil
}

func (s *Service) log() *slog.Logger {
	if s.cfg.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.cfg.Log
}

// runCommand is Do on a call of the credential's organisation.
func (s *Service) runCommand(ctx context.Context, id string, c Command) (Result, error) {
	return s.Do(ctx, access.Org(ctx), id, c)
}

// Do carries out a command on a call in progress. It sends it to the switch, with the time limit actionTime (5 s), and
// maps the switch's errors to API errors.
func (s *Service) Do(ctx context.Context, org, id string, c Command) (Result, error) {
	if s.Switch == nil {
		return Result{}, errNoSwitch()
	}
	limited, cancel := context.WithTimeout(ctx, actionTime)
	defer cancel()
	r, err := s.Switch.Do(limited, org, id, c)
	var e *op.Error
	switch {
	case err == nil:
		return r, nil
	case errors.As(err, &e) && e.Code == "not_found" && e.Detail == op.NotFound("call in progress").Detail:
		return r, s.notCarried(ctx, id)
	case errors.As(err, &e):
		return r, e
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return r, op.Fail("action_timeout", "the other side has not confirmed in 5 seconds; read the call to see what happened")
	}
	return r, err
}

// notCarried returns the error for a call that the switch does not have: it has ended, or no server carries it.
func (s *Service) notCarried(ctx context.Context, id string) error {
	if _, err := s.findInProgress(ctx, id); err != nil {
		return err
	}
	return op.State("no server carries this call at the moment", "unknown", ActionsAfterEnd...)
}

// findInProgress returns a call of the credential's organisation, or an error if it has ended.
func (s *Service) findInProgress(ctx context.Context, id string) (Call, error) {
	c, err := s.findCall(ctx, id)
	if err != nil {
		return c, err
	}
	if c.Status.Final() {
		return c, op.State("the call has ended", string(c.Status), ActionsAfterEnd...)
	}
	return c, nil
}

// findCall returns a call of the credential's organisation.
func (s *Service) findCall(ctx context.Context, id string) (Call, error) {
	c, err := getCall(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), id)
	if db.IsNone(err) {
		return c, op.NotFound("call")
	}
	s.setRecordingURL(&c)
	return c, err
}

// currentCall returns the call in its current state, with its legs.
func (s *Service) currentCall(ctx context.Context, id string) (*op.Out[Call], error) {
	c, err := s.findCall(ctx, id)
	if err != nil {
		return nil, err
	}
	one := []Call{c}
	if err := legsOf(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), one); err != nil {
		return nil, err
	}
	if err := s.addQueueWaits(ctx, access.Org(ctx), one); err != nil {
		return nil, err
	}
	return op.OK(one[0])
}
