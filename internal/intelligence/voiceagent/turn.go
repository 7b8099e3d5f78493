package voiceagent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
)

// Turn has the text of the caller and the answer that was played. The times of its stages count from the end of the caller's last word.
type Turn struct {
	ID          string    `json:"id"`
	At          time.Time `json:"at" doc:"The end of the caller's last word"`
	Heard       string    `json:"heard" doc:"What the caller said, as it was understood"`
	Said        string    `json:"said" doc:"What they heard in answer, cut off where it was interrupted"`
	Interrupted bool      `json:"interrupted"`
	Engine      string    `json:"engine"`
	Tools       []string  `json:"tools"`
	Stages
	last  time.Time
	began time.Time // start of the caller's words
}

// Stages are the times of a turn in milliseconds from the end of the caller's last word; null if there was no such
// stage.
type Stages struct {
	Transcribed *int `json:"understood_ms" doc:"The words were known"`
	Endpoint    *int `json:"endpoint_ms" doc:"It was sure that the caller had finished"`
	FirstWords  *int `json:"thought_ms" doc:"The first words of the answer were known"`
	FirstClip   *int `json:"voiced_ms" doc:"The first of it was spoken"`
	FirstAudio  *int `json:"audio_ms" doc:"The caller began to hear it"`
}

func (x *Turn) msSince(at time.Time) *int {
	if at.IsZero() {
		return nil
	}
	ms := int(at.Sub(x.last).Milliseconds())
	return &ms
}

// setSaid records the played text of the agent in the turn.
func (t *conversation) setSaid(text string, whole bool) {
	x := t.turn
	if x == nil || t.reply == nil && x.FirstAudio != nil {
		return
	}
	x.Said = strings.TrimSpace(x.Said + " " + text)
	x.Interrupted = x.Interrupted || !whole
	voiced, first, _ := t.speech.timestamps()
	if x.FirstAudio == nil {
		x.FirstClip, x.FirstAudio = x.msSince(voiced), x.msSince(first)
		if t.reply != nil {
			x.FirstWords = x.msSince(t.reply.first)
		}
	}
}

// writeTimeout limits a database write.
const writeTimeout = 10 * time.Second

// saveTurn stores the finished turn.
func (t *conversation) saveTurn() {
	if x := t.turn; x != nil {
		t.turn = nil
		t.s.saveTurn(t.ctx, t.caller, t.settings, *x, &t.pendingWrites)
	}
}

// saveTurn adds a turn to the call's timeline and stores it in the background.
func (s *Service) saveTurn(ctx context.Context, line Caller, set ConversationSettings, x Turn, saves *sync.WaitGroup) {
	d := map[string]any{"interrupted": x.Interrupted, "engine": x.Engine}
	for name, ms := range map[string]*int{"understood_ms": x.Transcribed, "endpoint_ms": x.Endpoint, "thought_ms": x.FirstWords,
		"voiced_ms": x.FirstClip, "audio_ms": x.FirstAudio} {
		if ms != nil {
			d[name] = *ms
		}
	}
	if len(x.Tools) > 0 {
		d["tools"] = x.Tools
	}
	line.AddEntry("ai_agent.turn", d)
	if s.cfg.DB == nil {
		return
	}
	policy := s.policy(ctx, set.Org).In(set.Language)
	x.Heard, x.Said = policy.Isolated(x.Heard), policy.Isolated(x.Said)
	saves.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		if err := s.insertTurn(ctx, set.Org, set.CallID, x); err != nil {
			s.cfg.Log.Error("turn of a voice agent not kept", "call", set.CallID, "err", err)
		}
	})
}

const turnColumns = `id, at, heard, said, interrupted, engine, tools, understood_ms, endpoint_ms, thought_ms, voiced_ms, audio_ms`

func (s *Service) insertTurn(ctx context.Context, org, call string, x Turn) error {
	const q = `INSERT INTO assistant_turns (org_id, call_id, ` + turnColumns +
		`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, q, org, call, db.NewID("turn"), db.At(x.At), x.Heard, x.Said, x.Interrupted, x.Engine,
			db.JSON[[]string]{V: x.Tools}, x.Transcribed, x.Endpoint, x.FirstWords, x.FirstClip, x.FirstAudio)
		return err
	})
}

// Turns returns the turns of a call, in order.
func (s *Service) Turns(ctx context.Context, q db.Querier, org, call string) (all []Turn, err error) {
	rows, err := q.Query(ctx, `SELECT `+turnColumns+` FROM assistant_turns WHERE org_id = $1 AND call_id = $2 ORDER BY at, id`, org, call)
	if err != nil {
		return nil, fmt.Errorf("read turns: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var x Turn
		var at db.Time
		var tools db.JSON[[]string]
		if err := rows.Scan(&x.ID, &at, &x.Heard, &x.Said, &x.Interrupted, &x.Engine, &tools, &x.Transcribed, &x.Endpoint, &x.FirstWords,
			&x.FirstClip, &x.FirstAudio); err != nil {
			return nil, fmt.Errorf("read turn: %w", err)
		}
		x.At, x.Tools = at.Time, tools.V
		if x.Tools == nil {
			x.Tools = []string{}
		}
		all = append(all, x)
	}
	return all, rows.Err()
}

// DeleteCall deletes the turns and utterances of a call.
func (s *Service) DeleteCall(ctx context.Context, tx db.Querier, org, call string) error {
	for _, q := range []string{`DELETE FROM assistant_turns WHERE org_id = $1 AND call_id = $2`,
		`DELETE FROM assistant_words WHERE org_id = $1 AND call_id = $2`} {
		if _, err := tx.Exec(ctx, q, org, call); err != nil {
			return fmt.Errorf("erase what was said to a voice agent: %w", err)
		}
	}
	return nil
}

// DeleteBefore deletes turns and utterances of an organisation from before a time.
func (s *Service) DeleteBefore(ctx context.Context, org string, before time.Time) (gone int64, err error) {
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		gone = 0
		for _, q := range []string{`DELETE FROM assistant_turns WHERE org_id = $1 AND at < $2`,
			`DELETE FROM assistant_words WHERE org_id = $1 AND began_at < $2`} {
			if err := db.Affected(ctx, tx, &gone, q, org, db.At(before)); err != nil {
				return fmt.Errorf("sweep what was said to voice agents: %w", err)
			}
		}
		return nil
	})
	return gone, err
}

// ExportCall exports the turns and utterances of a call.
func (s *Service) ExportCall(ctx context.Context, q db.Querier, org, call string, w personal.Writer) error {
	const turns = `SELECT * FROM assistant_turns WHERE org_id = $1 AND call_id = $2 ORDER BY at, id`
	if err := personal.Rows(ctx, q, w, "assistant_turns", turns, org, call); err != nil {
		return err
	}
	const words = `SELECT * FROM assistant_words WHERE org_id = $1 AND call_id = $2 ORDER BY began_at, id`
	return personal.Rows(ctx, q, w, "assistant_words", words, org, call)
}
