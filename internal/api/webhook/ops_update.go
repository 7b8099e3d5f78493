package webhook

import (
	"context"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// UpdateIn is the request of webhooks.update.
type UpdateIn struct {
	op.Match
	GetIn
	Body UpdateBody
}

// UpdateBody is a merge patch.
type UpdateBody struct {
	URL                 op.Change[string]             `json:"url,omitempty"`
	Events              op.Change[[]string]           `json:"events,omitempty"`
	Description         op.Change[string]             `json:"description,omitempty"`
	Status              op.Change[string]             `json:"status,omitempty" doc:"active resumes, and sends what waited; paused lets events wait"`
	Filters             op.Change[Filters]            `json:"filters,omitempty" doc:"Replaces all filters"`
	Ordered             op.Change[bool]               `json:"ordered,omitempty"`
	CallEndedTiming     op.Change[string]             `json:"call_ended_timing,omitempty"`
	SignedRecordingURLs op.Change[bool]               `json:"signed_recording_urls,omitempty"`
	TimeoutSeconds      op.Change[int]                `json:"timeout_seconds,omitempty"`
	Headers             op.Change[map[string]*string] `json:"headers,omitempty" doc:"Sets the headers named; null removes one"`
}

// Update changes a webhook. Setting it active resets its failures and sends held deliveries.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Webhook], error) {
	var e *endpoint
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if e, err = s.findEndpoint(ctx, in.ID); err != nil {
			return err
		}
		if err := in.Check(e.UpdatedAt); err != nil {
			return err
		}
		was, before := e.Status, e.URL
		headers, err := s.mergeHeaders(e, in.Body)
		if err != nil {
			return err
		}
		prefix, err := s.headerPrefix(ctx, e.Org)
		if err != nil {
			return err
		}
		wrong := append(in.Body.apply(e), s.check(e, headers, prefix)...)
		wrong = append(wrong, op.SecretsAgain(op.SecretPlace(before) != op.SecretPlace(e.URL), in.Body.keptHeaders(headers)...)...)
		if len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		if e.Headers, err = s.sealHeaders(e.Org, e.ID, headers); err != nil {
			return err
		}
		if in.Body.redirects() {
			if err := e.subscribe(ctx); err != nil {
				return err
			}
		}
		e.UpdatedAt = s.time()
		if err := s.save(ctx, tx, e, in.Body.Status); err != nil || e.Status == was {
			return err
		}
		return s.publishStatus(ctx, tx, e, e.Status, e.Failures, "")
	})
	if err != nil {
		return nil, err
	}
	w, err := s.describe(ctx, e)
	if err != nil {
		return nil, err
	}
	return op.Versioned(w, e.UpdatedAt)
}

// redirects reports whether the change affects the address or the content of deliveries. The user of such a change becomes the subscriber.
func (b UpdateBody) redirects() bool {
	return b.URL.Set || b.Events.Set || b.Filters.Set || b.CallEndedTiming.Set || b.SignedRecordingURLs.Set || b.Headers.Set
}

// save writes the change. A new status determines whether deliveries are held.
func (s *Service) save(ctx context.Context, tx db.Querier, e *endpoint, status op.Change[string]) error {
	switch {
	case !status.Set:
	case e.Status == Paused:
		e.Holding, e.DisabledReason = true, ""
	case e.Status == Active:
		e.Failures, e.FailingSince, e.DisabledReason = 0, db.Time{}, ""
		if e.Holding {
			if err := s.startRelease(ctx, tx, e); err != nil {
				return err
			}
			if err := s.cfg.Queue.HurryLane(ctx, tx, queueName, e.Org, e.ID); err != nil {
				return err
			}
		}
	}
	return updateEndpoint(ctx, tx, e)
}

// apply applies the patch to the endpoint and returns the violations that the schema of a patch does not check.
func (b UpdateBody) apply(e *endpoint) []op.Violation {
	var wrong []op.Violation
	b.URL.Apply(&e.URL)
	b.Events.Apply(&e.Events)
	b.Description.Apply(&e.Description)
	b.Filters.Apply(&e.Filters)
	b.Ordered.Apply(&e.Ordered)
	b.SignedRecordingURLs.Apply(&e.SignRecordingURLs)
	if len(e.Description) > 500 {
		wrong = append(wrong, op.Field("description", "too_long", "at most 500 characters"))
	}
	if b.Status.Set {
		if e.Status = Status(b.Status.V); e.Status != Active && e.Status != Paused {
			wrong = append(wrong, op.Field("status", "invalid", "can be set to active or paused"))
		}
	}
	if b.CallEndedTiming.Set {
		e.Timing = orDefault(b.CallEndedTiming.V, enriched)
		if e.Timing != enriched && e.Timing != immediate {
			wrong = append(wrong, op.Field("call_ended_timing", "invalid", "must be enriched or immediate"))
		}
	}
	if b.TimeoutSeconds.Set {
		e.TimeoutSeconds = orDefault(b.TimeoutSeconds.V, 15)
		if e.TimeoutSeconds < 1 || e.TimeoutSeconds > 30 {
			wrong = append(wrong, op.Field("timeout_seconds", "out_of_range", "must be between 1 and 30"))
		}
	}
	return append(wrong, e.Filters.check()...)
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// check returns the violations of filters from a patch, which the schema does not check.
func (f Filters) check() []op.Violation {
	var wrong []op.Violation
	switch f.Direction {
	case "", "inbound", "outbound", "internal":
	default:
		wrong = append(wrong, op.Field("filters.direction", "invalid", "must be inbound, outbound or internal"))
	}
	for name, n := range map[string]int{"queue_ids": len(f.QueueIDs), "number_ids": len(f.NumberIDs), "user_ids": len(f.UserIDs)} {
		if n > 100 {
			wrong = append(wrong, op.Field("filters."+name, "too_many", "at most 100"))
		}
	}
	return wrong
}

// mergeHeaders merges the patch of headers into the existing ones (RFC 7396).
func (s *Service) mergeHeaders(e *endpoint, b UpdateBody) (map[string]string, error) {
	headers, err := s.headers(e)
	if err != nil || !b.Headers.Set {
		return headers, err
	}
	if headers == nil || b.Headers.Null {
		headers = map[string]string{}
	}
	for name, value := range b.Headers.V {
		if value == nil {
			delete(headers, name)
			continue
		}
		headers[name] = *value
	}
	return headers, nil
}

// keptHeaders returns the fields of the headers that a change keeps. Headers may hold secrets of the receiver.
func (b UpdateBody) keptHeaders(headers map[string]string) (kept []string) {
	for name := range headers {
		if b.Headers.V[name] == nil {
			kept = append(kept, "headers."+name)
		}
	}
	slices.Sort(kept)
	return kept
}
