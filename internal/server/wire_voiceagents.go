package server

import (
	"context"
	"time"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/engine/llm"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/intelligence/voiceagent"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/protocol/media"
)

// Constructs the voice agents.

// buildVoiceAgents constructs the voice agents. Without a recogniser or a voice they hand callers over at once.
func (p *Platform) buildVoiceAgents(now func() time.Time) error {
	c := voiceagent.Config{DB: p.db, Log: p.log, Now: now, Synthesize: p.synthesizeForAgent, MaxConversations: p.config.MaxAgents, SynthesisReady: p.engines.speech.Ready}
	c.OnUtterance = func(org, call string, w voiceagent.Utterance, first time.Time) {
		p.transcripts.PublishUtterance(org, call, transcript.KnownUtterance(w), first)
	}
	if ear := p.engines.agent; ear != nil {
		c.Transcriber = ear
	}
	switch p.config.VoiceAgent {
	case "builtin", "":
		c.NewModel = func(s voiceagent.ConversationSettings) voiceagent.LanguageModel {
			return voiceagent.NewScriptedModel(s, p.engines.lexicon.Similarity)
		}
	case "off":
	default:
		if llm.IsRealtime(p.config.VoiceAgent) {
			return p.buildRealtimeAgents(c)
		}
		client := p.guard.Client(egress.Limits{Total: modelTimeout})
		mind, err := llm.NewLanguageModel(engine.Config{Engine: p.config.VoiceAgent, Key: p.config.VoiceAgentKey, Model: p.config.VoiceAgentModel, Client: client})
		if err != nil {
			return err
		}
		c.NewModel = mind
	}
	p.voiceAgents = voiceagent.New(c)
	return nil
}

// buildRealtimeAgents constructs voice agents that run on a realtime server.
func (p *Platform) buildRealtimeAgents(c voiceagent.Config) (err error) {
	c.Realtime, err = llm.NewRealtime(engine.Config{Engine: p.config.VoiceAgent, Key: p.config.VoiceAgentKey, Model: p.config.VoiceAgentModel,
		Client: p.guard.Client(egress.Limits{Total: time.Hour})})
	p.voiceAgents = voiceagent.New(c)
	return err
}

// wireVoiceAgents adds the words of voice agents to transcripts.
func (p *Platform) wireVoiceAgents() {
	p.transcripts.KnownUtterances = func(ctx context.Context, q db.Querier, org, callID string) ([]transcript.KnownUtterance, error) {
		words, err := p.voiceAgents.Utterances(ctx, q, org, callID)
		all := make([]transcript.KnownUtterance, len(words))
		for i, w := range words {
			all[i] = transcript.KnownUtterance(w)
		}
		return all, err
	}
	p.transcripts.AwaitUtterances, p.transcripts.DeleteUtterances = p.voiceAgents.AwaitUtterances, p.voiceAgents.DeleteCall
}

// modelTimeout limits one answer of a language model.
const modelTimeout = 45 * time.Second

// synthesizeForAgent synthesises a text for a voice agent.
func (p *Platform) synthesizeForAgent(ctx context.Context, org, text, voice, language string, fleeting bool) (*media.Clip, error) {
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
