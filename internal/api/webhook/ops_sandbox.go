package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/platform/strictjson"
)

// Operations of the sandbox for testing a receiver: forced failures, and sample events.

// FailIn is the request of sandbox.webhooks.fail.
type FailIn struct{ Body FailBody }

// FailBody selects the webhook, the number of failures and their status.
type FailBody struct {
	WebhookID string `json:"webhook_id" maxLength:"40" example:"whk_01JB2M"`
	Times     int    `json:"times" minimum:"0" maximum:"1000" doc:"How many attempts; 0 ends it"`
	Status    int    `json:"status,omitempty" minimum:"300" maximum:"599" default:"500" doc:"The status the attempts are written down with"`
}

// forcedBody is the response body that a forced failure shows.
const forcedBody = "forced by POST /sandbox/webhooks/fail; nothing was sent"

// Fail makes the next attempts at a webhook fail without being sent.
func (s *Service) Fail(ctx context.Context, in *FailIn) (*op.Out[FailBody], error) {
	b := in.Body
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		e, err := s.findEndpoint(ctx, b.WebhookID)
		if err != nil {
			return err
		}
		const q = `UPDATE webhooks SET fail_times = $3, fail_status = $4 WHERE org_id = $1 AND id = $2`
		if _, err := tx.Exec(ctx, q, e.Org, e.ID, b.Times, b.Status); err != nil {
			return fmt.Errorf("set forced failures: %w", err)
		}
		return bumpVersion(ctx, tx, e.Org)
	})
	if err != nil {
		return nil, err
	}
	return op.OK(b)
}

// takeForcedFailure consumes one forced failure and returns its status; 0 if none is left.
func (s *Service) takeForcedFailure(ctx context.Context, e *endpoint) (status int, err error) {
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `UPDATE webhooks SET fail_times = fail_times - 1 WHERE org_id = $1 AND id = $2 AND fail_times > 0
			RETURNING fail_times, fail_status`
		left := 0
		err := tx.QueryRow(ctx, q, e.Org, e.ID).Scan(&left, &status)
		if db.IsNone(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("use a forced failure: %w", err)
		}
		if left > 0 {
			return nil
		}
		return bumpVersion(ctx, tx, e.Org)
	})
	return status, err
}

// TriggerIn is the request of sandbox.events.trigger.
type TriggerIn struct{ Body TriggerBody }

// TriggerBody selects the sample and changes it.
type TriggerBody struct {
	Event string     `json:"event" maxLength:"50" doc:"Kind of event" example:"call.ended"`
	Data  op.Members `json:"data,omitempty" doc:"Members of data that differ from the sample"`
}

// Triggered is a published sample event.
type Triggered struct {
	ID    string          `json:"id" doc:"The event; sent as webhook-id"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// Trigger publishes a sample. Webhooks, the list of events and the live stream receive it like any event.
func (s *Service) Trigger(ctx context.Context, in *TriggerIn) (*op.Out[Triggered], error) {
	sample, ok := sampleOf(in.Body.Event)
	if !ok {
		return nil, op.Invalid(op.Field("event", "unknown_event", "there is no such event; GET /webhooks/events lists them"))
	}
	p, err := customSample(sample, in.Body.Data)
	if err != nil {
		return nil, op.Invalid(op.Field("data", "invalid", strings.TrimPrefix(err.Error(), "json: ")))
	}
	body, err := event.Encode(p)
	if err != nil {
		return nil, err
	}
	out := Triggered{ID: db.NewID("evt"), Event: in.Body.Event, Data: json.RawMessage(event.Event{Body: string(body)}.Data())}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return s.cfg.Outbox.PublishAs(ctx, tx, access.Org(ctx), out.ID, p) })
	if err != nil {
		return nil, err
	}
	return op.OK(out)
}

// callIDPattern matches the allowed call ids of a sample.
var callIDPattern = regexp.MustCompile(`^[A-Za-z0-9_]{0,40}$`)

// customSample returns a sample with a new call id and the caller's members.
func customSample(sample event.Payload, with map[string]any) (event.Payload, error) {
	v := reflect.New(reflect.TypeOf(sample))
	v.Elem().Set(reflect.ValueOf(sample))
	if f := v.Elem().FieldByName("CallID"); f.IsValid() {
		f.SetString(db.NewID("call"))
	}
	text, err := json.Marshal(with)
	if err != nil {
		return nil, err
	}
	if faults := strictjson.Members(text, v.Interface()); len(faults) > 0 {
		return nil, errors.New(faults[0].Field + ": " + faults[0].Message)
	}
	if err := json.Unmarshal(text, v.Interface()); err != nil {
		return nil, err
	}
	p := v.Elem().Interface().(event.Payload)
	if !callIDPattern.MatchString(p.Call()) {
		return nil, errors.New("call_id must be made of at most 40 letters, digits and _")
	}
	return p, nil
}
