// Package disposition sets the disposition of calls: the code of the outcome that a person chose, such as "sale". The queue of the call may
// declare the codes.
package disposition

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/op"
	"soniq/internal/platform/wiring"
	"soniq/internal/telephony/call"
)

// MaxCode is the maximum number of characters of a code.
const MaxCode = 64

// Outcome is a disposition that a queue declares.
type Outcome struct{ Code, Label string }

// Queues returns the dispositions that a queue declares, also of a removed queue. None are declared: every code is accepted.
type Queues interface {
	Outcomes(ctx context.Context, q db.Querier, org, queue string) ([]Outcome, error)
}

// Observer is notified in the transaction that sets the disposition of a call, or removes it.
type Observer interface {
	// DispositionChanged has the code "" if the disposition was removed. ended reports whether the call has ended.
	DispositionChanged(ctx context.Context, tx db.Querier, org, callID, code string, ended bool) error
}

// Config has the dependencies of a Service. Clock may be nil.
type Config struct {
	DB     *db.DB
	Queues Queues
	Clock  clock.Clock
}

// Service sets dispositions. It is safe for concurrent use.
type Service struct {
	cfg       Config
	observers []Observer
}

// New returns a service. It panics if a dependency is missing.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	return &Service{cfg: c}
}

// Observe adds an observer. Call it before the first request.
func (s *Service) Observe(o Observer) { s.observers = append(s.observers, o) }

// Operations returns the API operation on dispositions.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("calls.disposition", "PUT /calls/{id}/disposition", access.CallsWrite, "Set the disposition of a call", s.Set).
			About("During the call, in wrap-up or later. If the call was in a queue that declares dispositions, code is one of these; " +
				"the last queue counts. Else it is any text of up to 64 characters. A queue may require it: then the agent's " +
				"wrap-up lasts until it is set, at most an hour longer."),
	}
}

// SetIn holds the input of Set.
type SetIn struct {
	ID   string `path:"id" maxLength:"40"`
	Body struct {
		Code *string `json:"code" nullable:"true" doc:"null removes it" example:"resolved"`
	}
}

// CallDisposition is the disposition of a call.
type CallDisposition struct {
	CallID string  `json:"call_id"`
	Code   *string `json:"code" example:"resolved"`
	Label  *string `json:"label" doc:"As the queue names the code; the code itself if no queue declares it" example:"Resolved"`
}

// Set stores the disposition of a call in any state. It writes nothing if the call has the code already.
func (s *Service) Set(ctx context.Context, in *SetIn) (*op.Out[CallDisposition], error) {
	org, code := access.Org(ctx), ""
	if in.Body.Code != nil {
		code = *in.Body.Code
		if message := WrongCode(code); message != "" {
			return nil, op.Invalid(op.Field("code", "invalid_value", message))
		}
	}
	out := CallDisposition{CallID: in.ID, Code: in.Body.Code}
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		now, err := lockCall(ctx, tx, org, in.ID)
		if err != nil {
			return err
		}
		label, err := s.labelOf(ctx, tx, org, now.queue, code)
		if err != nil {
			return err
		}
		out.Label = db.Null(label).Ptr()
		if now.code == code {
			return nil
		}
		if err := s.store(ctx, tx, org, in.ID, code, label); err != nil {
			return err
		}
		return observe.Each(s.observers, func(o Observer) error { return o.DispositionChanged(ctx, tx, org, in.ID, code, now.ended) })
	})
	if err != nil {
		return nil, err
	}
	return op.OK(out)
}

// WrongCode returns the fault of a code, or "".
func WrongCode(code string) string {
	n := utf8.RuneCountInString(code)
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if n < 1 || n > MaxCode || strings.TrimSpace(code) != code || strings.ContainsFunc(code, unprintable) {
		return fmt.Sprintf("must have 1 to %d printable characters, with no space at the ends", MaxCode)
	}
	return ""
}

// state is what Set needs to know about a call.
type state struct {
	queue, code string
	ended       bool
}

// lockCall returns the state of a call. It locks the call's row, so that changes of the same disposition are serialised.
func lockCall(ctx context.Context, tx db.Querier, org, id string) (x state, err error) {
	const q = `UPDATE calls SET disposition = disposition WHERE org_id = $1 AND id = $2
		RETURNING COALESCE(queue_id, ''), COALESCE(disposition, ''), ended_at IS NOT NULL`
	err = tx.QueryRow(ctx, q, org, id).Scan(&x.queue, &x.code, &x.ended)
	if db.IsNone(err) {
		return x, op.NotFound("call")
	}
	return x, err
}

// labelOf returns the label of a code. It refuses a code that the queue of the call does not declare.
func (s *Service) labelOf(ctx context.Context, tx db.Querier, org, queue, code string) (string, error) {
	if code == "" || queue == "" {
		return code, nil
	}
	all, err := s.cfg.Queues.Outcomes(ctx, tx, org, queue)
	if err != nil || len(all) == 0 {
		return code, err
	}
	if i := slices.IndexFunc(all, func(o Outcome) bool { return o.Code == code }); i >= 0 {
		return all[i].Label, nil
	}
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = o.Code
	}
	return "", op.Invalid(op.Field("code", "not_declared", "the queue of the call does not declare this code; its codes are "+
		strings.Join(names, ", ")))
}

func (s *Service) store(ctx context.Context, tx db.Querier, org, id, code, label string) error {
	const q = `UPDATE calls SET disposition = $3, disposition_label = $4, disposition_by = $5, disposition_at = $6
		WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, q, org, id, db.Null(code), db.Null(label), db.AsJSON(call.AuthorOf(ctx)), db.At(s.cfg.Clock.Now()))
	if err != nil {
		return fmt.Errorf("set disposition of call %s: %w", id, err)
	}
	return nil
}
