package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"soniq/internal/platform/db"
)

// Kinds of passages.
const (
	KindSummary    = "summary"
	KindTranscript = "transcript"
)

// Item is an action item of a call.
type Item struct {
	Text  string  `json:"text"`
	Owner *string `json:"owner"`
	Due   *string `json:"due"`
}

// Call is a finished call to index. Phone is the number of the other side.
type Call struct {
	ID          string
	Phone       string
	At          time.Time // start of the call
	Direction   string
	Status      string
	TalkSeconds int
	AgentID     string
	AgentName   string
	QueueID     string
	ContactID   string
	RecordingID string
	Tags        []string

	Summary   string // may be empty
	Outcome   string
	Sentiment string // empty if unknown
	Topics    []string
	Items     []Item
	Turns     []Turn
}

// PreparedCall is a call with its embedded passages, ready for IndexCall.
type PreparedCall struct {
	call     Call
	model    Model
	passages []passage
	vectors  []quantised // as many as passages; empty vectors if there is no embedding
	terms    [][]termCount
}

// Model returns the model of the embedding; the zero Model if there is none.
func (l PreparedCall) Model() Model { return l.model }

// Prepare splits a call into passages and embeds them. It may take long, because the embedder may be remote: call it
// outside a transaction. If only the embedding fails it returns the error together with a usable result, whose
// passages are found by their words only.
func (s *Service) Prepare(ctx context.Context, c Call) (PreparedCall, error) {
	l := PreparedCall{call: c}
	if c.Summary != "" {
		l.passages = append(l.passages, passage{kind: KindSummary, text: c.Summary, plain: c.Summary})
	}
	l.passages = append(l.passages, s.limits.splitTranscript(c.Turns)...)
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
		s.needsEmbedding.Store(true)
		return l, fmt.Errorf("embed %d passages: %w", len(texts), err)
	}
	for i, v := range vectors {
		l.vectors[i] = quantise(v)
	}
	l.model = s.embedder.Model()
	return l, nil
}

// IndexCall stores a prepared call in the caller's transaction. It replaces earlier entries of the same call.
func (s *Service) IndexCall(ctx context.Context, tx db.Querier, org string, l PreparedCall) error {
	if err := s.DeleteCall(ctx, tx, org, l.call.ID); err != nil {
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

// DeleteCall deletes the entries of a call, in the caller's transaction.
func (s *Service) DeleteCall(ctx context.Context, tx db.Querier, org, callID string) error {
	if err := deleteCall(ctx, tx, org, callID); err != nil {
		return fmt.Errorf("forget call %s: %w", callID, err)
	}
	return nil
}

// keyBits is the number of random bits below the microseconds of a key: keys of the same moment differ, and keys
// ascend with time.
const keyBits = 11

// newKey returns a key above all keys that this process has created.
func (s *Service) newKey() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastKey = max(s.lastKey+1, s.now().UnixMicro()<<keyBits|rand.Int64N(1<<keyBits))
	return s.lastKey
}

// keyAt returns the lowest key of a time.
func keyAt(t time.Time) int64 { return t.UnixMicro() << keyBits }
