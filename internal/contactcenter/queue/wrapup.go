package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call/disposition"
)

// Wrap-up after a call of a queue, and the disposition that ends it.

// The limits of dispositions.
const (
	maxDispositions = 100
	maxLabel        = 120
	// maxDispositionWait limits the time that a required disposition extends the wrap-up.
	maxDispositionWait = time.Hour
)

func dispositionViolations(all []Disposition) (wrong []op.Violation) {
	if len(all) > maxDispositions {
		return []op.Violation{op.Field("dispositions", "too_many", fmt.Sprintf("at most %d dispositions", maxDispositions))}
	}
	seen := map[string]bool{}
	for i, d := range all {
		field := "dispositions[" + strconv.Itoa(i) + "]"
		if message := disposition.WrongCode(d.Code); message != "" {
			wrong = append(wrong, op.Field(field+".code", "invalid_value", message))
		} else if seen[d.Code] {
			wrong = append(wrong, op.Field(field+".code", "duplicate", "another disposition has the code "+d.Code))
		}
		if strings.TrimSpace(d.Label) == "" || utf8.RuneCountInString(d.Label) > maxLabel {
			wrong = append(wrong, op.Field(field+".label", "invalid_length", fmt.Sprintf("must have 1 to %d characters", maxLabel)))
		}
		seen[d.Code] = true
	}
	return wrong
}

// Outcomes implements disposition.Queues.
func (s *Service) Outcomes(ctx context.Context, q db.Querier, org, queue string) ([]disposition.Outcome, error) {
	var settings string
	err := q.QueryRow(ctx, `SELECT settings FROM queues WHERE org_id = $1 AND id = $2`, org, queue).Scan(&settings)
	if db.IsNone(err) {
		return nil, nil
	}
	var k Settings
	if err == nil {
		err = json.Unmarshal([]byte(settings), &k)
	}
	if err != nil {
		return nil, fmt.Errorf("find dispositions of queue: %w", err)
	}
	all := make([]disposition.Outcome, len(k.Dispositions))
	for i, d := range k.Dispositions {
		all[i] = disposition.Outcome(d)
	}
	return all, nil
}

// wrapUp starts the wrap-up of the agent of an offer. If the queue requires a disposition and the call has none, the wrap-up waits for it.
func (s *Service) wrapUp(ctx context.Context, tx db.Querier, o Offer, now time.Time) error {
	const text = `UPDATE queue_members SET last_call_ended_at = $4 WHERE org_id = $1 AND queue_id = $2 AND user_id = $3`
	if _, err := tx.Exec(ctx, text, o.Org, o.QueueID, o.AgentID, db.At(now)); err != nil {
		return fmt.Errorf("note end of call: %w", err)
	}
	k, err := get(ctx, tx, o.Org, o.QueueID)
	if err != nil && !db.IsNone(err) {
		return fmt.Errorf("find queue: %w", err)
	}
	w := agent.WrapUpTime{CallID: o.CallID, Until: now.Add(time.Duration(k.WrapUp) * time.Second)}
	if k.DispositionRequired {
		lacks, err := lacksDisposition(ctx, tx, o.Org, o.CallID)
		if err != nil {
			return err
		}
		if lacks {
			w.Until, w.AwaitsDisposition = w.Until.Add(maxDispositionWait), true
		}
	}
	if err := setWrapped(ctx, tx, o.Org, o.ID, w.Until); err != nil {
		return err
	}
	return s.cfg.Agents.StartWrapUp(ctx, tx, o.Org, o.AgentID, w)
}

// lockCall locks the row of an entry's call until the transaction ends. A transaction that sets the disposition ends before the wrap-up
// begins, or sees it. SQLite has one writer.
func (s *Service) lockCall(ctx context.Context, tx db.Querier, org, entry string) error {
	hold := s.cfg.DB.ForUpdate()
	if hold == "" {
		return nil
	}
	const text = `SELECT id FROM calls WHERE org_id = $1 AND id = (SELECT call_id FROM queue_entries WHERE org_id = $1 AND id = $2)`
	var id string
	if err := tx.QueryRow(ctx, text+hold, org, entry).Scan(&id); err != nil && !db.IsNone(err) {
		return fmt.Errorf("lock call: %w", err)
	}
	return nil
}

func lacksDisposition(ctx context.Context, tx db.Querier, org, call string) (lacks bool, err error) {
	err = tx.QueryRow(ctx, `SELECT disposition IS NULL FROM calls WHERE org_id = $1 AND id = $2`, org, call).Scan(&lacks)
	if db.IsNone(err) {
		return false, nil
	}
	return lacks, err
}

func setWrapped(ctx context.Context, tx db.Querier, org, offer string, until time.Time) error {
	const text = `UPDATE queue_offers SET wrapped_at = $3 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, org, offer, db.At(until)); err != nil {
		return fmt.Errorf("note wrap-up: %w", err)
	}
	return nil
}

// DispositionChanged implements disposition.Observer: it ends wrap-ups that waited for the disposition of the call,
// once their usual time is over.
func (s *Service) DispositionChanged(ctx context.Context, tx db.Querier, org, call, code string, _ bool) error {
	if code == "" {
		return nil
	}
	waiting, err := waitingForDisposition(ctx, tx, org, call)
	if err != nil {
		return err
	}
	for _, o := range waiting {
		k, err := get(ctx, tx, org, o.QueueID)
		if err != nil && !db.IsNone(err) {
			return fmt.Errorf("find queue: %w", err)
		}
		now, until := s.cfg.Clock.Now(), o.ended.Add(time.Duration(k.WrapUp)*time.Second)
		if until.Before(now) {
			until = now
		}
		if ok, err := s.cfg.Agents.LimitWrapUp(ctx, tx, org, o.AgentID, call, until); err != nil || !ok {
			return err
		}
		if err := setWrapped(ctx, tx, org, o.ID, until); err != nil {
			return err
		}
		s.notifyChange(tx, org, o.QueueID)
	}
	return nil
}

// endedOffer is an offer whose agent has left the call.
type endedOffer struct {
	ID, QueueID, AgentID string
	ended                db.Time
}

// waitingForDisposition returns the last offers of a call to agents whose wrap-up waits for its disposition.
func waitingForDisposition(ctx context.Context, tx db.Querier, org, call string) (all []endedOffer, err error) {
	const text = `SELECT o.id, o.queue_id, o.agent_id, o.ended_at FROM queue_entries e
		JOIN queue_offers o ON o.org_id = e.org_id AND o.entry_id = e.id AND o.call_id = e.call_id
		JOIN agents a ON a.org_id = o.org_id AND a.user_id = o.agent_id AND a.wrap_up_call_id = o.call_id
		WHERE e.org_id = $1 AND e.call_id = $2 AND o.status = 'completed' AND o.wrapped_at IS NOT NULL ORDER BY o.id DESC`
	agents := map[string]bool{}
	err = db.ForEach(ctx, tx, "find wrap-ups", text, []any{org, call}, func(scan func(...any) error) error {
		var o endedOffer
		err := scan(&o.ID, &o.QueueID, &o.AgentID, &o.ended)
		if !agents[o.AgentID] {
			all = append(all, o)
		}
		agents[o.AgentID] = true
		return err
	})
	return all, err
}
