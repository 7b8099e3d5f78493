package voiceagent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/redact"
)

// Utterance is an utterance in a conversation with an agent: of the caller, as transcribed, or of the agent, as far
// as it was played.
type Utterance struct {
	ConversationID string // id of the conversation
	ByAgent        bool   // true: by the agent; false: by the caller
	Text           string
	Began, Ended   time.Time
}

// utteranceLog stores the utterances of one conversation, in order.
type utteranceLog struct {
	s              *Service
	org, call      string
	conversationID string
	first          time.Time
	queue          chan Utterance
	work           sync.WaitGroup
	stream         *redact.Stream
	all            []Utterance // by Source of the stream's passages
}

// maxQueuedUtterances limits the utterances that wait to be stored; if the database is slower, utterances are lost.
const maxQueuedUtterances = 200

// newUtteranceLog starts storing utterances in the background, until close. The conversation never waits for the
// database.
func (s *Service) newUtteranceLog(ctx context.Context, set ConversationSettings) *utteranceLog {
	d := &utteranceLog{s: s, org: set.Org, call: set.CallID, conversationID: db.NewID("talk"),
		queue: make(chan Utterance, maxQueuedUtterances), stream: s.policy(ctx, set.Org).In(set.Language).NewStream()}
	s.countConversation(set, 1)
	ctx = context.WithoutCancel(ctx)
	d.work.Go(func() {
		for w := range d.queue {
			d.write(ctx, w)
		}
	})
	return d
}

func (d *utteranceLog) write(ctx context.Context, w Utterance) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := d.s.insertUtterance(ctx, d.org, d.call, w); err != nil {
		d.s.cfg.Log.Error("words of a voice agent not kept", "call", d.call, "err", err)
	}
}

// close waits until all utterances are stored.
func (d *utteranceLog) close() {
	d.release(d.stream.Flush())
	close(d.queue)
	d.work.Wait()
	d.s.countConversation(ConversationSettings{Org: d.org, CallID: d.call}, -1)
}

// add queues an utterance without the numbers that the organisation removes. It may wait for the next utterance.
func (d *utteranceLog) add(agent bool, text string, began, ended time.Time) {
	if text == "" || began.IsZero() || d.s.cfg.DB == nil {
		return
	}
	if ended.Before(began) {
		ended = began
	}
	w := Utterance{ConversationID: d.conversationID, ByAgent: agent, Text: text, Began: began, Ended: ended}
	if d.first.IsZero() {
		d.first = began
	}
	speaker := callerSpeaker
	if agent {
		speaker = agentSpeaker
	}
	d.all = append(d.all, w)
	d.release(d.stream.Push(redact.Passage{Speaker: speaker, Text: text, StartMS: int(began.Sub(d.first).Milliseconds()),
		EndMS: int(ended.Sub(d.first).Milliseconds()), Source: len(d.all) - 1}))
}

// release queues utterances that are complete, and notifies observers.
func (d *utteranceLog) release(complete []redact.Passage) {
	for _, p := range complete {
		w := d.all[p.Source]
		w.Text = p.Text
		for _, o := range d.s.utteranceObservers {
			o.UtteranceFinished(d.org, d.call, w, d.first)
		}
		select {
		case d.queue <- w:
		default:
			d.s.cfg.Log.Error("words of a voice agent not kept: the database is too slow", "call", d.call)
		}
	}
}

// policy returns what an organisation removes from stored words. If that cannot be read, every number is removed. The end of the call does
// not cancel it, because the caller's last words are stored after it.
func (s *Service) policy(ctx context.Context, org string) redact.Policy {
	p, err := s.cfg.Redactions.Redaction(context.WithoutCancel(ctx), org)
	if err != nil {
		s.cfg.Log.Warn("redaction of an organisation not read: all numbers are removed", "org", org, "err", err)
		return redact.Policy{Kinds: redact.Kinds}
	}
	return p
}

// countConversation counts the conversations of a call that have unstored utterances.
func (s *Service) countConversation(set ConversationSettings, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conversations == nil {
		s.conversations = map[string]int{}
	}
	key := set.Org + " " + set.CallID
	if s.conversations[key] += by; s.conversations[key] == 0 {
		delete(s.conversations, key)
		for _, over := range s.waiting[key] {
			close(over)
		}
		delete(s.waiting, key)
	}
}

// HasConversation reports whether a call has a conversation with an agent at the moment.
func (s *Service) HasConversation(org, call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conversations[org+" "+call] > 0
}

// AwaitUtterances waits until the utterances of a call's conversations are stored.
func (s *Service) AwaitUtterances(ctx context.Context, org, call string) error {
	key := org + " " + call
	s.mu.Lock()
	if s.conversations[key] == 0 {
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

// Speakers in the table.
const (
	agentSpeaker  = "ai"
	callerSpeaker = "caller"
)

func (s *Service) insertUtterance(ctx context.Context, org, call string, w Utterance) error {
	speaker := callerSpeaker
	if w.ByAgent {
		speaker = agentSpeaker
	}
	const q = `INSERT INTO assistant_words (org_id, call_id, id, talk, speaker, said, began_at, ended_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, q, org, call, db.NewID("said"), w.ConversationID, speaker, w.Text, db.At(w.Began), db.At(w.Ended))
		return err
	})
}

// Utterances returns the utterances of a call's conversations with agents, in order.
func (s *Service) Utterances(ctx context.Context, q db.Querier, org, call string) (all []Utterance, err error) {
	rows, err := q.Query(ctx, `SELECT talk, speaker, said, began_at, ended_at FROM assistant_words WHERE org_id = $1 AND call_id = $2 ORDER BY began_at, id`, org, call)
	if err != nil {
		return nil, fmt.Errorf("read words of voice agents: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var w Utterance
		var speaker string
		var began, ended db.Time
		if err := rows.Scan(&w.ConversationID, &speaker, &w.Text, &began, &ended); err != nil {
			return nil, fmt.Errorf("read words of voice agents: %w", err)
		}
		w.ByAgent, w.Began, w.Ended = speaker == agentSpeaker, began.Time, ended.Time
		all = append(all, w)
	}
	return all, rows.Err()
}
