package voiceagent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// Words are something that was said in a conversation with an agent: by the caller, as it was understood, or by the agent, as far as it was
// heard.
type Words struct {
	Talk         string // the conversation
	Agent        bool   // said it
	Text         string
	Began, Ended time.Time
}

// A diary has the words of one conversation written down, in the order in which they were said.
type diary struct {
	s         *Service
	org, call string
	talk      string
	first     time.Time
	lines     chan Words
	work      sync.WaitGroup
}

// mostLines is how many words may wait to be written; a database that is slower than that loses some.
const mostLines = 200

// keepDiary begins to write words down, until close. Nobody waits for the database meanwhile.
func (s *Service) keepDiary(ctx context.Context, set Setting) *diary {
	d := &diary{s: s, org: set.Org, call: set.CallID, talk: db.NewID("talk"), lines: make(chan Words, mostLines)}
	s.running(set, 1)
	ctx = context.WithoutCancel(ctx)
	d.work.Go(func() {
		for w := range d.lines {
			d.write(ctx, w)
		}
	})
	return d
}

func (d *diary) write(ctx context.Context, w Words) {
	ctx, cancel := context.WithTimeout(ctx, keepLimit)
	defer cancel()
	if err := d.s.insertWords(ctx, d.org, d.call, w); err != nil {
		d.s.Log.Error("words of a voice agent not kept", "call", d.call, "err", err)
	}
}

// close waits until all is written.
func (d *diary) close() {
	close(d.lines)
	d.work.Wait()
	d.s.running(Setting{Org: d.org, CallID: d.call}, -1)
}

// say notes what was said, and has the live stream told.
func (d *diary) say(agent bool, text string, began, ended time.Time) {
	if text == "" || began.IsZero() || d.s.DB == nil {
		return
	}
	if ended.Before(began) {
		ended = began
	}
	w := Words{Talk: d.talk, Agent: agent, Text: text, Began: began, Ended: ended}
	if d.first.IsZero() {
		d.first = began
	}
	if d.s.Told != nil {
		d.s.Told(d.org, d.call, w, d.first)
	}
	select {
	case d.lines <- w:
	default:
		d.s.Log.Error("words of a voice agent not kept: the database is too slow", "call", d.call)
	}
}

// running counts the conversations of a call whose words are not all written yet.
func (s *Service) running(set Setting, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.talks == nil {
		s.talks = map[string]int{}
	}
	key := set.Org + " " + set.CallID
	if s.talks[key] += by; s.talks[key] == 0 {
		delete(s.talks, key)
		for _, over := range s.waiting[key] {
			close(over)
		}
		delete(s.waiting, key)
	}
}

// Talks reports whether somebody talks to an agent in a call now.
func (s *Service) Talks(org, call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.talks[org+" "+call] > 0
}

// Settled waits until the words of a call's conversations are written.
func (s *Service) Settled(ctx context.Context, org, call string) error {
	key := org + " " + call
	s.mu.Lock()
	if s.talks[key] == 0 {
		s.mu.Unlock()
		return nil
	}
	over := make(chan struct{})
	if s.waiting == nil {
		s.waiting = map[string][]chan struct{}{}
	}
	s.waiting[key] = append(s.waiting[key], over)
	s.mu.Unlock()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The words of agents and callers in the table.
const (
	agentWords  = "ai"
	callerWords = "caller"
)

func (s *Service) insertWords(ctx context.Context, org, call string, w Words) error {
	speaker := callerWords
	if w.Agent {
		speaker = agentWords
	}
	const q = `INSERT INTO assistant_words (org_id, call_id, id, talk, speaker, said, began_at, ended_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	return s.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, q, org, call, db.NewID("said"), w.Talk, speaker, w.Text, db.At(w.Began), db.At(w.Ended))
		return err
	})
}

// WordsOf are the words of a call's conversations with agents, in order.
func (s *Service) WordsOf(ctx context.Context, q db.Querier, org, call string) (all []Words, err error) {
	rows, err := q.Query(ctx, `SELECT talk, speaker, said, began_at, ended_at FROM assistant_words WHERE org_id = $1 AND call_id = $2 ORDER BY began_at, id`, org, call)
	if err != nil {
		return nil, fmt.Errorf("read words of voice agents: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var w Words
		var speaker string
		var began, ended db.Time
		if err := rows.Scan(&w.Talk, &speaker, &w.Text, &began, &ended); err != nil {
			return nil, fmt.Errorf("read words of voice agents: %w", err)
		}
		w.Agent, w.Began, w.Ended = speaker == agentWords, began.Time, ended.Time
		all = append(all, w)
	}
	return all, rows.Err()
}
