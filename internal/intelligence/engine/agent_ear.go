package engine

import (
	"context"
	"strings"

	"soniq/internal/intelligence/transcript"
)

// An AgentEar listens to callers who talk to a voice agent.
type AgentEar struct{ listener transcript.Listener }

// NewAgentEar makes an ear of an engine whose workers are not kept busy by recordings.
func NewAgentEar(l transcript.Listener) *AgentEar { return &AgentEar{listener: l} }

// Ready says what is missing where nothing can be understood.
func (e *AgentEar) Ready(ctx context.Context) error { return e.listener.Ready(ctx) }

// Hear gives the words of mono audio at 8 kHz. The builtin engine listens for what is expected first, which it understands best, and for
// anything where it is none of that. Others are not told: the phrase that all of what they understood sounds like is given in its place.
func (e *AgentEar) Hear(ctx context.Context, pcm []int16, phrases []string, language string) (string, error) {
	if language == "" {
		language = "en"
	}
	clip := transcript.Clip{PCM: pcm, Rate: 8000, NarrowBand: true, Language: language, Phrases: phrases}
	if _, builtin := e.listener.(*Sphinx); !builtin || len(phrases) == 0 {
		return e.anything(ctx, clip, phrases)
	}
	h, err := e.listener.Transcribe(ctx, clip)
	if err != nil {
		return "", err
	}
	if i, ok := which(phrases, saidIn(h)); ok {
		return phrases[i], nil
	}
	return e.anything(ctx, clip, nil)
}

// anything gives the words of a clip, or the phrase that all of them sound like where they have none in them.
func (e *AgentEar) anything(ctx context.Context, clip transcript.Clip, phrases []string) (string, error) {
	clip.Phrases = nil
	h, err := e.listener.Transcribe(ctx, clip)
	if err != nil || !english(clip.Language) {
		return strings.TrimSpace(h.Text), err
	}
	if _, said := which(phrases, h.Text); !said {
		if i, ok := soundsLike(phrases, h.Text); ok {
			return phrases[i], nil
		}
	}
	return strings.TrimSpace(h.Text), nil
}

// Alike tells how alike the meaning of a text is to that of others, from 0 to 1.
func (l *Lexsem) Alike(text string, others []string) []float64 {
	all := make([]float64, len(others))
	v := l.embed(text)
	for i, o := range others {
		sum := 0.0
		for k, x := range l.embed(o) {
			sum += float64(x) * float64(v[k])
		}
		all[i] = min(max(sum, 0), 1)
	}
	return all
}
