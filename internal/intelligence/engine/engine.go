// Package engine implements speech recognisers, speech synthesis, call summarisers, embedders and language models.
// Each is either built in or a client of an OpenAI-compatible server.
package engine

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"soniq/internal/intelligence/memory"
	"soniq/internal/intelligence/transcript"
)

// Config selects an engine. Engine is builtin, off, or the URL of an OpenAI-compatible server. For recognisers it may
// also be pocketsphinx, or sherpa: followed by the folder of a model.
type Config struct {
	Engine    string
	Key       string // sent as bearer token; may be empty
	Model     string // empty: the default of the endpoint, such as whisper-1
	Client    *http.Client
	SherpaDir string // folder of the sherpa-onnx library; empty: the default search path

	EnglishModelDir string // folder of an English model and its library, which builtin uses; empty: builtin uses PocketSphinx
}

// Constructors by the name used in settings. Any other setting is the URL of a server. The constructor of off is nil.
var (
	recognizers = map[string]func(Config) transcript.Recognizer{
		"builtin":      builtinRecognizer,
		"pocketsphinx": func(Config) transcript.Recognizer { return NewPocketSphinx(nil, 0) },
		"off":          nil,
	}
	summarizers = map[string]func(*WordEmbedding) transcript.Summarizer{
		"builtin": func(l *WordEmbedding) transcript.Summarizer { return NewRuleSummarizer(l) },
		"off":     nil,
	}
	embedders = map[string]func(*WordEmbedding) memory.Embedder{
		"builtin": func(l *WordEmbedding) memory.Embedder { return l },
		"off":     nil,
	}
)

// builtinRecognizer returns the best recogniser that is installed.
func builtinRecognizer(c Config) transcript.Recognizer {
	if c.EnglishModelDir == "" {
		return NewPocketSphinx(nil, 0)
	}
	return NewEnglishSherpa(nil, c.EnglishModelDir, 0)
}

// NewRecognizer returns the configured speech recogniser, nil for off. If it is an io.Closer the caller must close
// it.
func NewRecognizer(c Config) (transcript.Recognizer, error) {
	if build, ok := recognizers[c.engineName()]; ok {
		if build == nil {
			return nil, nil
		}
		return build(c), nil
	}
	if dir, ok := strings.CutPrefix(c.Engine, SherpaPrefix); ok {
		return NewSherpa(nil, dir, c.SherpaDir, 0), nil
	}
	server, err := newAPIEndpoint(c, "/audio/transcriptions")
	if err != nil {
		return nil, fmt.Errorf("transcriber: %w", err)
	}
	return &openAIRecognizer{endpoint: server, model: c.modelOrDefault("whisper-1")}, nil
}

// NewSummarizer returns the configured summariser, nil for off. A remote one falls back to the builtin rules by
// itself.
func NewSummarizer(c Config, l *WordEmbedding) (transcript.Summarizer, error) {
	if build, ok := summarizers[c.engineName()]; ok {
		if build == nil {
			return nil, nil
		}
		return build(l), nil
	}
	server, err := newAPIEndpoint(c, "/chat/completions")
	if err != nil {
		return nil, fmt.Errorf("writer: %w", err)
	}
	return &openAISummarizer{endpoint: server, model: c.modelOrDefault("gpt-4o-mini"), fallback: NewRuleSummarizer(l)}, nil
}

// NewEmbedder returns the configured embedder, nil for off.
func NewEmbedder(c Config, l *WordEmbedding) (memory.Embedder, error) {
	if build, ok := embedders[c.engineName()]; ok {
		if build == nil {
			return nil, nil
		}
		return build(l), nil
	}
	server, err := newAPIEndpoint(c, "/embeddings")
	if err != nil {
		return nil, fmt.Errorf("embedder: %w", err)
	}
	return &openAIEmbedder{endpoint: server, model: c.modelOrDefault("text-embedding-3-small")}, nil
}

func (c Config) engineName() string {
	if c.Engine == "" {
		return "builtin"
	}
	return strings.ToLower(c.Engine)
}

func (c Config) modelOrDefault(usual string) string {
	if c.Model == "" {
		return usual
	}
	return c.Model
}

// newAPIEndpoint parses the URL of a server: its root, the root of its API, or the complete URL of the endpoint.
func newAPIEndpoint(c Config, endpoint string) (*apiEndpoint, error) {
	u, err := url.Parse(c.Engine)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is neither builtin nor off nor an http address", c.Engine)
	}
	path := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), endpoint)
	if path == "" {
		path = "/v1"
	}
	u.Path, u.Fragment = path+endpoint, ""
	client := c.Client
	if client == nil {
		client = http.DefaultClient
	}
	return &apiEndpoint{address: u.String(), host: u.Host, key: c.Key, client: client}, nil
}
