// Package llm implements the clients of language models: summariser, embedder, chat and Realtime.
package llm

import (
	"fmt"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/memory"
	"soniq/internal/intelligence/transcript"
)

// Constructors by the name used in settings. Any other setting is the URL of a server. The constructor of off is nil.
var (
	summarizers = map[string]func(*nlp.WordEmbedding) transcript.Summarizer{
		"builtin": func(l *nlp.WordEmbedding) transcript.Summarizer { return nlp.NewRuleSummarizer(l) },
		"off":     nil,
	}
	embedders = map[string]func(*nlp.WordEmbedding) memory.Embedder{
		"builtin": func(l *nlp.WordEmbedding) memory.Embedder { return l },
		"off":     nil,
	}
)

// NewSummarizer returns the configured summariser, nil for off. A remote one falls back to the builtin rules by
// itself.
func NewSummarizer(c engine.Config, l *nlp.WordEmbedding) (transcript.Summarizer, error) {
	if build, ok := summarizers[c.EngineName()]; ok {
		if build == nil {
			return nil, nil
		}
		return build(l), nil
	}
	server, err := engine.NewEndpoint(c, "/chat/completions")
	if err != nil {
		return nil, fmt.Errorf("writer: %w", err)
	}
	return &openAISummarizer{endpoint: server, model: c.ModelOrDefault("gpt-4o-mini"), fallback: nlp.NewRuleSummarizer(l)}, nil
}

// NewEmbedder returns the configured embedder, nil for off.
func NewEmbedder(c engine.Config, l *nlp.WordEmbedding) (memory.Embedder, error) {
	if build, ok := embedders[c.EngineName()]; ok {
		if build == nil {
			return nil, nil
		}
		return build(l), nil
	}
	server, err := engine.NewEndpoint(c, "/embeddings")
	if err != nil {
		return nil, fmt.Errorf("embedder: %w", err)
	}
	return &openAIEmbedder{endpoint: server, model: c.ModelOrDefault("text-embedding-3-small")}, nil
}
