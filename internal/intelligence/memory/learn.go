package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"soniq/internal/platform/db"
)

// The kinds of passages.
const (
	KindSummary    = "summary"
	KindTranscript = "transcript"
)

// Item is something to be done that was agreed on a call.
type Item struct {
	Text  string  `json:"text"`
	Owner *string `json:"owner"`
	Due   *string `json:"due"`
}

// Call is a finished call as it is to be remembered. Phone is the number of the other side.
type Call struct {
	ID          string
	Phone       string
	At          time.Time // when it started
	Direction   string
	Status      string
	TalkSeconds int
	AgentID     string
	AgentName   string
	QueueID     string
	ContactID   string
	RecordingID string
	Tags        []string

	Summary   string // empty where there is none
	Outcome   string
	Sentiment string // empty where unknown
	Topics    []string
	Items     []Item
	Turns     []Turn
}

// Lesson is a call with its passages embedded, ready to be learnt.
type Lesson struct {
	call     Call
	model    Model
	passages []passage
	vectors  []quantised // as many as passages; empty vectors where there is no embedding
	terms    [][]termCount
}

// Model names the embedding of the lesson; the zero Model where there is none.
func (l Lesson) Model() Model { return l.model }

// Prepare cuts a call into passages and embeds them. It is the slow part, outside any transaction: the embedder
// may be a remote one. When only embedding fails, the lesson is returned beside the error and can be learnt to be
// found by its words.
func (s *Service) Prepare(ctx context.Context, c Call) (Lesson, error) {
	l := Lesson{call: c}
	if c.Summary != "" {
		l.passages = append(l.passages, passage{kind: KindSummary, text: c.Summary, plain: c.Summary})
	}
	l.passages = append(l.passages, s.cut.windows(c.Turns)...)
	l.vectors = make([]quantised, len(l.passages))
	texts := make([]string, len(l.passages))
	for i, p := range l.passages {
		texts[i] = p.plain
		l.terms = append(l.terms, countTerms(s.lexicon.Terms(p.plain)))
	}
	if s.embedder == nil || len(texts) == 0 {
		return l, nil
	}
	vectors, err := s.embedder.Embed(ctx, texts)
	if err != nil {
		s.behind.Store(true)
		return l, fmt.Errorf("embed %d passages: %w", len(texts), err)
	}
	for i, v := range vectors {
		l.vectors[i] = quantise(v)
	}
	l.model = s.embedder.Model()
	return l, nil
}

// Learn remembers a call, in the caller's transaction; what was remembered of it before is replaced.
func (s *Service) Learn(ctx context.Context, tx db.Querier, org string, l Lesson) error {
	if err := s.Forget(ctx, tx, org, l.call.ID); err != nil {
		return err
	}
	if err := insertCall(ctx, tx, org, l.call); err != nil {
		return fmt.Errorf("remember call %s: %w", l.call.ID, err)
	}
	for i, p := range l.passages {
		r := row{key: s.newKey(), phone: l.call.Phone, at: db.At(l.call.At), kind: p.kind, direction: l.call.Direction,
			agent: l.call.AgentID, queue: l.call.QueueID, model: l.model.Name, vector: l.vectors[i], terms: l.terms[i]}
		if err := insertItem(ctx, tx, org, l.call.ID, db.NewID("mem"), r.key, p); err != nil {
			return fmt.Errorf("remember passage of %s: %w", l.call.ID, err)
		}
		if err := insertVector(ctx, tx, org, r); err != nil {
			return fmt.Errorf("remember vector of %s: %w", l.call.ID, err)
		}
	}
	return nil
}

// Forget removes what is remembered of a call, in the caller's transaction.
func (s *Service) Forget(ctx context.Context, tx db.Querier, org, callID string) error {
	if err := deleteCall(ctx, tx, org, callID); err != nil {
		return fmt.Errorf("forget call %s: %w", callID, err)
	}
	return nil
}

// keyBits are random, below the microsecond: keys made at once differ, and keys rise with time.
const keyBits = 11

// newKey makes a key above all keys this process has made.
func (s *Service) newKey() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastKey = max(s.lastKey+1, s.now().UnixMicro()<<keyBits|rand.Int64N(1<<keyBits))
	return s.lastKey
}

// keyAt is the lowest key made at a time.
func keyAt(t time.Time) int64 { return t.UnixMicro() << keyBits }
