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
func (h *Platform) buildAssistants(now func() time.Time) error {
	c := voiceagent.Config{DB: h.db, Log: h.log, Now: now, Voice: h.utter, Most: h.config.MaxAgents, Speaks: h.engines.speech.Ready}
	c.Told = func(org, call string, w voiceagent.Words, first time.Time) {
		h.transcripts.Tell(org, call, transcript.Spoken(w), first)
	}
	if ear := h.engines.agent; ear != nil {
		c.Ear = ear
	}
	switch h.config.Assistant {
	case "builtin", "":
		c.Mind = func(s voiceagent.Setting) voiceagent.Mind { return voiceagent.NewScript(s, h.engines.lexicon.Alike) }
	case "off":
	default:
		if engine.IsRealtime(h.config.Assistant) {
			return h.buildDuplex(c)
		}
		client := h.guard.Client(egress.Limits{Total: thinkLimit})
		mind, err := engine.NewAgentMind(engine.Choice{Use: h.config.Assistant, Key: h.config.AssistKey, Model: h.config.AssistModel, Client: client})
		if err != nil {
			return err
		}
		c.Mind = mind
	}
	h.assistants = voiceagent.New(c)
	return nil
}

// buildDuplex constructs voice agents that a realtime server runs.
func (h *Platform) buildDuplex(c voiceagent.Config) (err error) {
	c.Duplex, err = engine.NewRealtime(engine.Choice{Use: h.config.Assistant, Key: h.config.AssistKey, Model: h.config.AssistModel,
		Client: h.guard.Client(egress.Limits{Total: time.Hour})})
	h.assistants = voiceagent.New(c)
	return err
}

// joinAssistants lets transcripts have the words of voice agents.
func (h *Platform) joinAssistants() {
	h.transcripts.Spoken = func(ctx context.Context, q db.Querier, org, callID string) ([]transcript.Spoken, error) {
		words, err := h.assistants.WordsOf(ctx, q, org, callID)
		all := make([]transcript.Spoken, len(words))
		for i, w := range words {
			all[i] = transcript.Spoken(w)
		}
		return all, err
	}
	h.transcripts.Settled, h.transcripts.Unsay = h.assistants.Settled, h.assistants.EraseCall
}

// thinkLimit bounds one answer of a server.
const thinkLimit = 45 * time.Second

// utter speaks a text for a voice agent.
func (h *Platform) utter(ctx context.Context, org, text, voice, language string, fleeting bool) (*media.Clip, error) {
	if fleeting {
		pcm, rate, err := h.engines.speech.Fleeting(ctx, text, voice, language)
		if err != nil {
			return nil, err
		}
		return media.NewClip(pcm, rate), nil
	}
	path, err := h.engines.speech.File(ctx, org, text, voice, language)
	if err != nil {
		return nil, err
	}
	return media.LoadClip(path)
}
