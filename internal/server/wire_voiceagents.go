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
	c := voiceagent.Config{DB: p.db, Log: p.log, Now: now, Synthesize: p.utter, MaxConversations: p.config.MaxAgents, SynthesisReady: p.engines.speech.Ready}
	c.OnUtterance = func(org, call string, w voiceagent.Utterance, first time.Time) {
		p.transcripts.PublishUtterance(org, call, transcript.KnownUtterance(w), first)
	}
	if ear := p.engines.agent; ear != nil {
		c.Transcriber = ear
	}
	switch p.config.Assistant {
	case "builtin", "":
		c.NewModel = func(s voiceagent.ConversationSettings) voiceagent.LanguageModel {
			return voiceagent.NewScriptedModel(s, p.engines.lexicon.Similarity)
		}
	case "off":
	default:
		if engine.IsRealtime(p.config.Assistant) {
			return p.buildDuplex(c)
		}
		client := p.guard.Client(egress.Limits{Total: thinkLimit})
		mind, err := engine.NewLanguageModel(engine.Config{Engine: p.config.Assistant, Key: p.config.AssistKey, Model: p.config.AssistModel, Client: client})
		if err != nil {
			return err
		}
		c.NewModel = mind
	}
	p.assistants = voiceagent.New(c)
	return nil
}

// buildDuplex constructs voice agents that a realtime server runs.
func (p *Platform) buildDuplex(c voiceagent.Config) (err error) {
	c.Realtime, err = engine.NewRealtime(engine.Config{Engine: p.config.Assistant, Key: p.config.AssistKey, Model: p.config.AssistModel,
		Client: p.guard.Client(egress.Limits{Total: time.Hour})})
	p.assistants = voiceagent.New(c)
	return err
}

// joinAssistants lets transcripts have the words of voice agents.
func (p *Platform) joinAssistants() {
	p.transcripts.KnownUtterances = func(ctx context.Context, q db.Querier, org, callID string) ([]transcript.KnownUtterance, error) {
		words, err := p.assistants.Utterances(ctx, q, org, callID)
		all := make([]transcript.KnownUtterance, len(words))
		for i, w := range words {
			all[i] = transcript.KnownUtterance(w)
		}
		return all, err
	}
	p.transcripts.AwaitUtterances, p.transcripts.DeleteUtterances = p.assistants.AwaitUtterances, p.assistants.DeleteCall
}

// thinkLimit bounds one answer of a server.
const thinkLimit = 45 * time.Second

// utter speaks a text for a voice agent.
func (p *Platform) utter(ctx context.Context, org, text, voice, language string, fleeting bool) (*media.Clip, error) {
	if fleeting {
		pcm, rate, err := p.engines.speech.SynthesizeUncached(ctx, text, voice, language)
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
