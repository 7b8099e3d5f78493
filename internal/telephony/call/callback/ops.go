package callback

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
	"soniq/internal/telephony/call"
)

// Operations lists the API operations on callbacks.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("callbacks.list", "GET /callbacks", access.CallsRead, "List callbacks", s.Callbacks),
		op.New("callbacks.create", "POST /callbacks", access.CallsWrite, "Have a call placed later", s.CreateCallback).Status(201),
		op.New("callbacks.get", "GET /callbacks/{id}", access.CallsRead, "Get one callback", s.GetCallback),
		op.Delete("callbacks.cancel", "DELETE /callbacks/{id}", access.CallsWrite, "Cancel a callback", s.CancelCallback).WithSideEffects(),
	}
}

// CallbackIn holds the input of CreateCallback.
type CallbackIn struct{ Body CallbackCreate }

// CallbackCreate describes a callback to create.
type CallbackCreate struct {
	To           string `json:"to" doc:"A number in E.164 or as dialled in the organisation's country" example:"+12025550143"`
	ScheduledAt  string `json:"scheduled_at,omitempty" doc:"RFC 3339, up to 90 days ahead; now unless given" example:"2026-01-31T09:30:00Z"`
	WindowEnd    string `json:"window_end,omitempty" doc:"RFC 3339; no attempt is begun after it; 24 hours after scheduled_at unless given"`
	UserID       string `json:"user_id,omitempty" doc:"Whose phones ring first; the credential's user unless given"`
	QueueID      string `json:"queue_id,omitempty" doc:"In place of a user: the number is called, and who answers waits in the queue"`
	FlowID       string `json:"flow_id,omitempty" doc:"In place of a user: who answers is led through the flow"`
	From         string `json:"from,omitempty" doc:"A number of the organisation to show"`
	Reason       string `json:"reason,omitempty" doc:"At most 200 characters; the first note of the call"`
	MaxAttempts  *int   `json:"max_attempts,omitempty" doc:"1 to 10; 3 unless given"`
	OriginCallID string `json:"origin_call_id,omitempty" doc:"The call that asked for it"`
}

// maxScheduleAhead is how far in the future a callback may be scheduled.
const maxScheduleAhead = 90 * 24 * time.Hour

// clockSkew is how far in the past scheduled_at may be, because the client's clock can differ from the server's.
const clockSkew = time.Minute

// CreateCallback stores a callback and enqueues the job that dials it at its time, or at once.
func (s *Service) CreateCallback(ctx context.Context, in *CallbackIn) (*op.Out[Callback], error) {
	c, err := s.newCallback(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	org := access.Org(ctx)
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if err := insertCallback(ctx, tx, org, c); err != nil {
			return err
		}
		return s.enqueueDial(ctx, tx, org, c, c.ScheduledAt.Time)
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Callback]{Body: c, Location: op.Prefix + "/callbacks/" + c.ID}, nil
}

// newCallback builds the callback of a request, or returns every violation at once.
func (s *Service) newCallback(ctx context.Context, b CallbackCreate) (Callback, error) {
	who, _ := access.From(ctx)
	now := s.cfg.Clock.Now()
	c := Callback{ID: db.NewID("cbk"), ScheduledAt: db.At(now), Status: callbackScheduled, Attempts: []CallbackAttempt{}, MaxAttempts: 3,
		Origin: "api", Reason: db.Null(b.Reason).Ptr(), OriginCallID: db.Null(b.OriginCallID).Ptr(), CreatedAt: db.At(now),
		sandbox: who.Environment == access.Sandbox}
	wrong := c.parseTimes(b, now)
	if b.MaxAttempts != nil {
		c.MaxAttempts = *b.MaxAttempts
	}
	if c.MaxAttempts < 1 || c.MaxAttempts > 10 {
		wrong = append(wrong, op.Field("max_attempts", "out_of_range", "must be 1 to 10"))
	}
	if utf8.RuneCountInString(b.Reason) > 200 {
		wrong = append(wrong, op.Field("reason", "too_long", "at most 200 characters"))
	}
	if b.OriginCallID != "" {
		if _, err := s.cfg.Calls.Find(ctx, access.Org(ctx), b.OriginCallID); err != nil {
			wrong = append(wrong, op.Field("origin_call_id", "not_found", "no such call"))
		}
	}
	return s.resolveCallbackParties(ctx, c, b, wrong)
}

// resolveCallbackParties resolves the user, queue or flow, the number to dial and the number to show.
func (s *Service) resolveCallbackParties(ctx context.Context, c Callback, b CallbackCreate, wrong []op.Violation) (Callback, error) {
	who, _ := access.From(ctx)
	p := call.Placement{Org: who.OrgID, UserID: b.UserID}
	err := s.cfg.Calls.ResolveParties(ctx, &p, &call.CallCreate{To: b.To, From: b.From, FlowID: b.FlowID, QueueID: b.QueueID,
		UserID: b.UserID}, wrong, "must be a number")
	c.QueueID, c.FlowID = db.Null(b.QueueID).Ptr(), db.Null(b.FlowID).Ptr()
	c.UserID, c.from, c.ToNumber = db.Null(p.UserID).Ptr(), p.From, p.To
	return c, err
}

// parseTimes sets the times of the callback and returns their violations.
func (c *Callback) parseTimes(b CallbackCreate, now time.Time) (wrong []op.Violation) {
	read := func(field, text string) (t time.Time) {
		if text == "" {
			return t
		}
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			wrong = append(wrong, op.Field(field, "invalid_time", "must be RFC 3339 such as 2026-01-31T09:30:00Z"))
		}
		return t
	}
	at, until := read("scheduled_at", b.ScheduledAt), read("window_end", b.WindowEnd)
	if at.After(now) {
		c.ScheduledAt = db.At(at)
	}
	if !at.IsZero() && now.Sub(at) > clockSkew {
		wrong = append(wrong, op.Field("scheduled_at", "out_of_range", "is in the past; leave it out to call at once"))
	}
	if at.Sub(now) > maxScheduleAhead {
		wrong = append(wrong, op.Field("scheduled_at", "out_of_range", "at most 90 days ahead"))
	}
	c.windowEnd = c.ScheduledAt.Add(defaultWindow)
	if !until.IsZero() {
		c.windowEnd, c.WindowEnd = until, db.At(until).Ptr()
		if !until.After(c.ScheduledAt.Time) {
			wrong = append(wrong, op.Field("window_end", "out_of_range", "must be after scheduled_at"))
		}
	}
	return wrong
}

// OneCallback holds the id of a callback.
type OneCallback struct {
	ID string `path:"id" maxLength:"40"`
}

// GetCallback returns one callback.
func (s *Service) GetCallback(ctx context.Context, in *OneCallback) (*op.Out[Callback], error) {
	c, err := getCallback(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return op.OK(c)
}

// CancelCallback cancels a callback, so that it is not dialled again. The call of a running attempt is hung up.
// Canceling twice is not an error.
func (s *Service) CancelCallback(ctx context.Context, in *OneCallback) error {
	org, running := access.Org(ctx), ""
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		c, err := getCallback(ctx, tx, org, in.ID)
		if err != nil || c.Status == callbackCanceled {
			return err
		}
		if c.Status == callbackCompleted || c.Status == callbackFailed {
			return op.State("the callback is over", c.Status)
		}
		from := c.Status
		running, c.Status = c.callID, callbackCanceled
		if n := len(c.Attempts); running != "" && n > 0 {
			c.Attempts[n-1].Result = callbackCanceled
		}
		moved, err := c.updateStatus(ctx, tx, org, from, s.cfg.Clock.Now())
		if err != nil {
			return err
		}
		if !moved {
			return op.State("the callback changed at this moment; try again", from)
		}
		return s.cancelQueueEntry(ctx, tx, org, c)
	})
	if err != nil || running == "" {
		return err
	}
	if _, err := s.cfg.Calls.Do(ctx, org, running, call.End{Reason: "callback canceled"}); !isStateOrNotFound(err) {
		return err
	}
	return nil // The call ended already, or it is not placed yet: hangUpIfCanceled ends it then.
}

func isStateOrNotFound(err error) bool {
	var e *op.Error
	return errors.As(err, &e) && (e.Code == "invalid_state" || e.Code == "not_found")
}

// CallbacksIn holds the filters of Callbacks.
type CallbacksIn struct {
	Status  []string `query:"status" enum:"scheduled,dialing,waiting_agent,completed,retry_wait,failed,canceled"`
	QueueID string   `query:"queue_id" maxLength:"40"`
	UserID  string   `query:"user_id" maxLength:"40"`
	op.Span
	op.Paging
}

// Callbacks lists callbacks by scheduled_at, earliest first.
func (s *Service) Callbacks(ctx context.Context, in *CallbacksIn) (*op.Out[op.Page[Callback]], error) {
	since, until, err := in.Times()
	if err != nil {
		return nil, err
	}
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	view, err := visibility.From(ctx, s.cfg.DB.Read(ctx))
	if err != nil {
		return nil, err
	}
	filter := func() *db.Filter {
		const text = `SELECT ` + callbackColumns + ` FROM callbacks WHERE org_id = $1`
		return view.NarrowCallbacks(db.Where(text, access.Org(ctx))).In("status", in.Status).
			Equal("user_id", in.UserID).Equal("queue_id", in.QueueID).Between("scheduled_at", since, until)
	}
	all, err := s.queryCallbacks(ctx, filter().Page("scheduled_at", false, after.Int, after.ID, in.Limit))
	if err != nil {
		return nil, err
	}
	out := op.Paged(ctx, in.Paging, all, func(c Callback) op.Position { return op.Position{Int: c.ScheduledAt.UnixMicro(), ID: c.ID} })
	return op.WithTotal(out, in.Paging, func() (int, error) { return filter().Count(ctx, s.cfg.DB.Read(ctx)) })
}

func (s *Service) queryCallbacks(ctx context.Context, f *db.Filter) ([]Callback, error) {
	text, args := f.SQL()
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list callbacks: %w", err)
	}
	defer rows.Close()
	all := []Callback{}
	for rows.Next() {
		c, err := scanCallback(rows)
		if err != nil {
			return nil, fmt.Errorf("list callbacks: %w", err)
		}
		all = append(all, c)
	}
	return all, rows.Err()
}
