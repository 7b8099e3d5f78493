package voiceagent

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/redact"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/calltest"
)

// removesAll are Policies that remove every kind.
type removesAll struct{}

func (removesAll) Redaction(context.Context, string) (redact.Policy, error) {
	return redact.Policy{Kinds: redact.Kinds}, nil
}

// observedWords are the texts that observers were told.
type observedWords struct {
	mu   sync.Mutex
	text []string
}

func (o *observedWords) UtteranceFinished(_, _ string, w Utterance, _ time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, w.Text)
}

// What is stored of a conversation and told to observers has no number of a card, also if it is said in two turns.
func TestRedaction_WordsAndTurns(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := calltest.New(t, d)
		n := o.Begin(call.Inbound)
		s := New(Config{DB: d, Log: slog.New(slog.DiscardHandler), Synthesizer: mute{}, Redactions: removesAll{}})
		told := &observedWords{}
		s.Observe(told)
		set := ConversationSettings{Org: o.ID, CallID: n.ID, Language: "en"}
		l := s.newUtteranceLog(t.Context(), set)
		at := o.At
		for _, w := range []struct {
			agent bool
			text  string
		}{{true, "What is your card number?"}, {false, "four one one one one one one one"}, {true, "Go on."}, {false, "1111 1111. Call 0170 1234567."}} {
			l.add(w.agent, w.text, at, at.Add(time.Second))
			at = at.Add(2 * time.Second)
		}
		l.close()
		words, err := s.Utterances(t.Context(), d.Read(t.Context()), o.ID, n.ID)
		o.Must(err)
		var stored []string
		for _, w := range words {
			stored = append(stored, w.Text)
		}
		want := "What is your card number?|[card]|Go on.|[card]. Call 0170 1234567."
		if got := strings.Join(stored, "|"); got != want {
			t.Errorf("stored %q, want %q", got, want)
		}
		if text := strings.Join(told.text, "|"); len(told.text) != 4 || strings.Contains(text, "1111") || strings.Contains(text, "four") {
			t.Errorf("told %q", text)
		}
		var saves sync.WaitGroup
		s.saveTurn(t.Context(), &testLine{}, set, Turn{At: at, Heard: "It is 4111 1111", Said: "1111 1111, thank you."}, &saves)
		saves.Wait()
		turns, err := s.Turns(t.Context(), d.Read(t.Context()), o.ID, n.ID)
		o.Must(err)
		if len(turns) != 1 || turns[0].Heard != "It is [number]" || turns[0].Said != "[number], thank you." {
			t.Errorf("turns %+v", turns)
		}
	})
}

// noRedaction are Policies that remove nothing. They fail if their context has ended, as a database does.
type noRedaction struct{}

func (noRedaction) Redaction(ctx context.Context, _ string) (redact.Policy, error) {
	return redact.Policy{}, ctx.Err()
}

// The caller's last words are stored after the call, and keep their numbers if the organisation removes none.
func TestRedaction_AfterHangup(t *testing.T) {
	t.Parallel()
	s := New(Config{Log: slog.New(slog.DiscardHandler), Synthesizer: mute{}, Redactions: noRedaction{}})
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	if p := s.policy(ctx, "org_1"); len(p.Kinds) > 0 {
		t.Errorf("after the call the organisation removes %v", p.Kinds)
	}
}
