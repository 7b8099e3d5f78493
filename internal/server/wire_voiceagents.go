package server

import (
	"context"
	"time"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/intelligence/voiceagent"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/protocol/media"
)

// This file constructs the voice agents.

// buildAssistants constructs the voice agents. Without a recogniser or a voice they hand callers over at once.
func (p *Platform) buildAssistants(now func() time.Time) error {
	c := voiceagent.Config{DB: p.db, Log: p.log, Now: now, Voice: p.utter, Most: p.config.MaxAgents, Speaks: p.engines.speech.Ready}
	c.Told = func(org, call string, w voiceagent.Words, first time.Time) {
		p.transcripts.Tell(org, call, transcript.Spoken(w), first)
	}
	if ear := p.engines.agent; ear != nil {
		c.Ear = ear
	}
	switch p.config.Assistant {
	case "builtin", "":
		c.Mind = func(s voiceagent.Setting) voiceagent.Mind { return voiceagent.NewScript(s, p.engines.lexicon.Alike) }
	case "off":
	default:
		if engine.IsRealtime(p.config.Assistant) {
			return p.buildDuplex(c)
		}
		client := p.guard.Client(egress.Limits{Total: thinkLimit})
		mind, err := engine.NewAgentMind(engine.Choice{Use: p.config.Assistant, Key: p.config.AssistKey, Model: p.config.AssistModel, Client: client})
		if err != nil {
			return err
		}
		c.Mind = mind
	}
	p.assistants = voiceagent.New(c)
	return nil
}

// buildDuplex constructs voice agents that a realtime server runs.
func (p *Platform) buildDuplex(c voiceagent.Config) (err error) {
	c.Duplex, err = engine.NewRealtime(engine.Choice{Use: p.config.Assistant, Key: p.config.AssistKey, Model: p.config.AssistModel,
		Client: p.guard.Client(egress.Limits{Total: time.Hour})})
	p.assistants = voiceagent.New(c)
	return err
}

// joinAssistants lets transcripts have the words of voice agents.
func (p *Platform) joinAssistants() {
	p.transcripts.Spoken = func(ctx context.Context, q db.Querier, org, callID string) ([]transcript.Spoken, error) {
		words, err := p.assistants.WordsOf(ctx, q, org, callID)
		all := make([]transcript.Spoken, len(words))
		for i, w := range words {
			all[i] = transcript.Spoken(w)
		}
		return all, err
	}
	p.transcripts.Settled, p.transcripts.Unsay = p.assistants.Settled, p.assistants.EraseCall
}

// thinkLimit bounds one answer of a server.
const thinkLimit = 45 * time.Second

// utter speaks a text for a voice agent.
func (p *Platform) utter(ctx context.Context, org, text, voice, language string, fleeting bool) (*media.Clip, error) {
	if fleeting {
		pcm, rate, err := p.engines.speech.Fleeting(ctx, text, voice, language)
		if err != nil {
			return nil, err
		}
		return media.NewClip(pcm, rate), nil
	}
	path, err := p.engines.speech.File(ctx, org, text, voice, language)
	if err != nil {
		return nil, err
	}
	return media.LoadClip(path)
}
