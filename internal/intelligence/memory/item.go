package memory

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// MemoryItem is one entry of the call memory with its full text.
type MemoryItem struct {
	ID           string  `json:"id" example:"mem_01J00000000000000000000000"`
	Kind         string  `json:"kind" enum:"summary,transcript,note,voicemail,sms,fact"`
	Text         string  `json:"text" doc:"All of it"`
	Phone        string  `json:"phone" doc:"Number of the other side"`
	OccurredAt   db.Time `json:"occurred_at" doc:"Start of the call; of what people wrote: when they did"`
	CallID       *string `json:"call_id"`
	StartMS      *int    `json:"start_ms" doc:"Start of the passage in the recording"`
	EndMS        *int    `json:"end_ms"`
	Direction    *string `json:"direction" enum:"inbound,outbound,internal"`
	Agent        *Person `json:"agent"`
	ContactID    *string `json:"contact_id" doc:"Contact that a note is on"`
	RecordingURL *string `json:"recording_url" doc:"Recording, at the passage"`
	Source       *string `json:"source" enum:"user,api_key" doc:"Who wrote it down; null where somebody outside did"`
	ExpiresAt    db.Time `json:"expires_at" nullable:"true" doc:"Until when it is remembered; null: as long as its call"`
}

// ItemIn selects an entry.
type ItemIn struct {
	ID string `path:"id" maxLength:"40" example:"mem_01J00000000000000000000000"`
}

// FactIn adds a fact to a number.
type FactIn struct {
	Phone string `path:"phone" maxLength:"40" doc:"E.164 or as dialled" example:"+14155550100"`
	Body  struct {
		Text      string `json:"text" doc:"1 to 500 characters" example:"Prefers to be called in the morning"`
		ExpiresAt string `json:"expires_at,omitempty" maxLength:"40" doc:"RFC 3339 or a date, in the future: from then on it is not shown any more; never unless given"`
	}
}

func (s *Service) getItem(ctx context.Context, in *ItemIn) (*op.Out[MemoryItem], error) {
	i, err := s.item(ctx, access.Org(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return op.OK(i)
}

// item returns a passage of a call, or a fact.
func (s *Service) item(ctx context.Context, org, id string) (MemoryItem, error) {
	i, err := s.passage(ctx, s.db.Read(ctx), org, id)
	if db.IsNone(err) {
		i, err = s.fact(ctx, s.db.Read(ctx), org, id)
	}
	if db.IsNone(err) {
		return i, op.NotFound("memory item")
	}
	return i, wrapError("read memory item", err)
}

func (s *Service) passage(ctx context.Context, q db.Querier, org, id string) (MemoryItem, error) {
	const text = `SELECT i.id, i.kind, i.text, c.phone, c.at, i.call_id, i.start_ms, i.end_ms, c.direction, c.agent_id, c.agent_name,
		c.recording_id
		FROM memory_items i JOIN memory_calls c ON c.org_id = i.org_id AND c.call_id = i.call_id WHERE i.org_id = $1 AND i.id = $2
		AND c.at >= $3`
	var i MemoryItem
	var agent, name, recording db.Null
	err := q.QueryRow(ctx, text, org, id, db.At(s.now().Add(-s.window))).Scan(&i.ID, &i.Kind, &i.Text, &i.Phone, &i.OccurredAt, &i.CallID,
		&i.StartMS, &i.EndMS, &i.Direction, &agent, &name, &recording)
	if err != nil {
		return i, err
	}
	if agent != "" {
		i.Agent = &Person{ID: string(agent), Name: string(name)}
	}
	if url := s.recordingURL(org, string(recording)); url != "" {
		if i.StartMS != nil {
			url += fmt.Sprintf("#t=%d", *i.StartMS/1000)
		}
		i.RecordingURL = &url
	}
	return i, nil
}

func (s *Service) fact(ctx context.Context, q db.Querier, org, id string) (MemoryItem, error) {
	const text = `SELECT id, kind, COALESCE(call_id, ''), text, phone, created_at, created_by, expires_at, contact_id FROM memory_facts
		WHERE org_id = $1 AND id = $2 AND (expires_at IS NULL OR expires_at > $3)`
	var i MemoryItem
	var by, callID string
	var contact db.Null
	err := q.QueryRow(ctx, text, org, id, db.At(s.now())).Scan(&i.ID, &i.Kind, &callID, &i.Text, &i.Phone, &i.OccurredAt, &by, &i.ExpiresAt,
		&contact)
	i.CallID, i.ContactID = db.Null(callID).Ptr(), contact.Ptr()
	if by != "" {
		by = sourceOf(by)
		i.Source = &by
	}
	return i, err
}

func (s *Service) postFact(ctx context.Context, in *FactIn) (*op.Out[MemoryItem], error) {
	org := access.Org(ctx)
	f, err := s.parseFact(ctx, org, in)
	if err != nil {
		return nil, err
	}
	var out MemoryItem
	err = s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		id, ok, err := s.addFact(ctx, tx, org, f)
		if err != nil {
			return err
		}
		if !ok {
			return op.Fail("plan_limit", fmt.Sprintf("a number has at most %d facts", maxFacts))
		}
		out, err = s.item(ctx, org, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[MemoryItem]{Body: out, Location: op.Prefix + "/memory/items/" + out.ID}, nil
}

// parseFact returns the fact of a request, or all violations.
func (s *Service) parseFact(ctx context.Context, org string, in *FactIn) (NewFact, error) {
	p, _ := access.From(ctx)
	f := NewFact{Phone: s.phone(ctx, org, in.Phone), Text: strings.TrimSpace(in.Body.Text), By: p.KeyID}
	if p.UserID != "" {
		f.By = p.UserID
	}
	var wrong []op.Violation
	if !isNumber(f.Phone) {
		wrong = append(wrong, op.Field("phone", "invalid_e164", "must be a number, E.164 or as dialled"))
	}
	if n := utf8.RuneCountInString(f.Text); n < 1 || n > maxFactText {
		wrong = append(wrong, op.Field("text", "invalid_length", "must have 1 to 500 characters"))
	}
	if until := in.Body.ExpiresAt; until != "" {
		at, _, err := op.Span{Since: until}.In(ctx).Times()
		switch f.ExpiresAt = at.Time; {
		case err != nil:
			wrong = append(wrong, op.Field("expires_at", "invalid_time", "must be RFC 3339 such as 2026-01-31T09:30:00Z, or YYYY-MM-DD"))
		case !at.After(s.now()):
			wrong = append(wrong, op.Field("expires_at", "out_of_range", "must lie in the future"))
		}
	}
	if len(wrong) > 0 {
		return f, op.Invalid(wrong...)
	}
	return f, nil
}

// isNumber reports whether a text is a phone number: 2 to 15 digits, with or without a plus.
func isNumber(phone string) bool {
	digits := strings.TrimPrefix(phone, "+")
	return len(digits) >= 2 && len(digits) <= 15 && strings.Trim(digits, "0123456789") == ""
}
