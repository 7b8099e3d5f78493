package server

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/engine/llm"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/intelligence/voiceagent"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/protocol/media/clip"
)

// Constructs the voice agents.

// buildVoiceAgents constructs the voice agents. Without a recogniser or a voice they hand callers over at once.
func (p *Platform) buildVoiceAgents() error {
	c := voiceagent.Config{DB: p.db, Log: p.log, Synthesizer: agentSpeaker{p}, MaxConversations: p.config.MaxAgents,
		Redactions: p.orgs}
	if ear := p.engines.agent; ear != nil {
		c.Transcriber = ear
	}
	switch p.config.VoiceAgent {
	case "builtin", "":
		c.Models = voiceagent.ModelFunc(func(s voiceagent.ConversationSettings) voiceagent.LanguageModel {
			return voiceagent.NewScriptedModel(s, p.engines.lexicon.Similarity)
		})
	case "off":
	default:
		if llm.IsRealtime(p.config.VoiceAgent) {
			return p.buildRealtimeAgents(c)
		}
		client := p.guard.Client(egress.Limits{Total: modelTimeout})
		mind, err := llm.NewLanguageModel(engine.Config{Engine: p.config.VoiceAgent, Key: p.config.VoiceAgentKey,
			Model: p.config.VoiceAgentModel, Client: client})
		if err != nil {
			return err
		}
		c.Models = voiceagent.ModelFunc(mind)
	}
	p.setVoiceAgents(c)
	return nil
}

// buildRealtimeAgents constructs voice agents that run on a realtime server.
func (p *Platform) buildRealtimeAgents(c voiceagent.Config) (err error) {
	c.Realtime, err = llm.NewRealtime(engine.Config{Engine: p.config.VoiceAgent, Key: p.config.VoiceAgentKey,
		Model: p.config.VoiceAgentModel, Client: p.guard.Client(egress.Limits{Total: time.Hour})})
	p.setVoiceAgents(c)
	return err
}

// setVoiceAgents constructs the service. Utterances are published with the transcripts.
func (p *Platform) setVoiceAgents(c voiceagent.Config) {
	p.voiceAgents = voiceagent.New(c)
	p.voiceAgents.Observe(utterancePublisher{p.transcripts})
}

// utterancePublisher publishes utterances of conversations on the live stream of transcripts.
type utterancePublisher struct{ transcripts *transcript.Service }

// UtteranceFinished implements voiceagent.UtteranceObserver.
func (u utterancePublisher) UtteranceFinished(org, call string, w voiceagent.Utterance, first time.Time) {
	u.transcripts.PublishUtterance(org, call, transcript.KnownUtterance(w), first)
}

// transcriptDependencies implements the dependencies of package transcript. It reads the services of the platform at each call, because
// they are built later.
type transcriptDependencies struct{ p *Platform }

// KnownUtterances implements transcript.Utterances.
func (d transcriptDependencies) KnownUtterances(ctx context.Context, q db.Querier, org, callID string) ([]transcript.KnownUtterance,
	error) {
	words, err := d.p.voiceAgents.Utterances(ctx, q, org, callID)
	all := make([]transcript.KnownUtterance, len(words))
	for i, w := range words {
		all[i] = transcript.KnownUtterance(w)
	}
	return all, err
}

// AwaitUtterances implements transcript.Utterances.
func (d transcriptDependencies) AwaitUtterances(ctx context.Context, org, callID string) error {
	return d.p.voiceAgents.AwaitUtterances(ctx, org, callID)
}

// DeleteUtterances implements transcript.Utterances.
func (d transcriptDependencies) DeleteUtterances(ctx context.Context, tx db.Querier, org, callID string) error {
	return d.p.voiceAgents.DeleteCall(ctx, tx, org, callID)
}

// Vocabulary implements transcript.Vocabularies.
func (d transcriptDependencies) Vocabulary(ctx context.Context, org, callID string) ([]transcript.Term, error) {
	return d.p.vocabulary(ctx, org, callID)
}

// RemoveContent implements transcript.Deliveries.
func (d transcriptDependencies) RemoveContent(ctx context.Context, tx db.Querier, org, callID string, c event.Content) error {
	return d.p.webhooks.RemoveContent(ctx, tx, org, callID, c)
}

// CallLanguage implements transcript.Languages. The most specific setting counts: the language of the flow that the
// call entered, of its user, of the transcripts, of the organisation.
func (d transcriptDependencies) CallLanguage(ctx context.Context, q db.Querier, orgID, callID string) (string, error) {
	o, err := d.p.orgs.Get(ctx, orgID)
	if err != nil {
		return "", fmt.Errorf("find organisation: %w", err)
	}
	who, err := d.p.calls.Speakers(ctx, q, orgID, callID)
	if err != nil {
		return o.CallLanguage(""), fmt.Errorf("find call: %w", err)
	}
	if who.FlowID != "" {
		if f, err := d.p.flows.Program(ctx, orgID, who.FlowID); err == nil && f.Language != "" {
			return f.Language, nil
		}
	}
	if who.UserID != "" {
		if u, err := d.p.users.Get(ctx, q, orgID, who.UserID); err == nil && u.Language != nil {
			return *u.Language, nil
		}
	}
	return o.CallLanguage(who.Number), nil
}

// modelTimeout limits one answer of a language model.
const modelTimeout = 45 * time.Second

// agentSpeaker implements voiceagent.Synthesizer.
type agentSpeaker struct{ p *Platform }

// Ready returns an error if there is no speech engine.
func (s agentSpeaker) Ready(ctx context.Context) error { return s.p.engines.speech.Ready(ctx) }

// CheckLanguage returns an error if the speech engine does not know a language.
func (s agentSpeaker) CheckLanguage(language string) error {
	return s.p.engines.speech.CheckLanguage(language)
}

// Synthesize synthesises a text for a voice agent.
func (s agentSpeaker) Synthesize(ctx context.Context, org, text, voice, language string, uncached bool) (*clip.Clip, error) {
	if uncached {
		pcm, rate, err := s.p.engines.speech.SynthesizeUncached(ctx, text, voice, language)
		if err != nil {
			return nil, err
		}
		return clip.New(pcm, rate), nil
	}
	path, err := s.p.engines.speech.File(ctx, org, text, voice, language)
	if err != nil {
		return nil, err
	}
	return clip.Load(path)
}
