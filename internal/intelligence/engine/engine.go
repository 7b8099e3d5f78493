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
type Choice struct {
	Use     string
	Key     string // sent as bearer token; may be empty
	Model   string // empty: the default of the endpoint, such as whisper-1
	Client  *http.Client
	Library string // folder of the sherpa-onnx library; empty: the default search path

	Installed string // folder of an English model and its library, which builtin uses; empty: builtin uses PocketSphinx
}

// Constructors by the name used in settings. Any other setting is the URL of a server. The constructor of off is nil.
var (
	listeners = map[string]func(Choice) transcript.Listener{
		"builtin":      builtin,
		"pocketsphinx": func(Choice) transcript.Listener { return NewSphinx(nil, 0) },
		"off":          nil,
	}
	writers = map[string]func(*Lexsem) transcript.Writer{
		"builtin": func(l *Lexsem) transcript.Writer { return NewRules(l) },
		"off":     nil,
	}
	embedders = map[string]func(*Lexsem) memory.Embedder{
		"builtin": func(l *Lexsem) memory.Embedder { return l },
		"off":     nil,
	}
)

// builtinRecognizer returns the best recogniser that is installed.
func builtin(c Choice) transcript.Listener {
	if c.Installed == "" {
		return NewSphinx(nil, 0)
	}
	return NewEnglish(nil, c.Installed, 0)
}

// NewRecognizer returns the configured speech recogniser, nil for off. If it is an io.Closer the caller must close
// it.
func NewListener(c Choice) (transcript.Listener, error) {
	if build, ok := listeners[c.name()]; ok {
		if build == nil {
			return nil, nil
		}
		return build(c), nil
	}
	if dir, ok := strings.CutPrefix(c.Use, SherpaPrefix); ok {
		return NewSherpa(nil, dir, c.Library, 0), nil
	}
	server, err := newServer(c, "/audio/transcriptions")
	if err != nil {
		return nil, fmt.Errorf("transcriber: %w", err)
	}
	return &remoteListener{server: server, model: c.model("whisper-1")}, nil
}

// NewSummarizer returns the configured summariser, nil for off. A remote one falls back to the builtin rules by
// itself.
func NewWriter(c Choice, l *Lexsem) (transcript.Writer, error) {
	if build, ok := writers[c.name()]; ok {
		if build == nil {
			return nil, nil
		}
		return build(l), nil
	}
	server, err := newServer(c, "/chat/completions")
	if err != nil {
		return nil, fmt.Errorf("writer: %w", err)
	}
	return &remoteWriter{server: server, model: c.model("gpt-4o-mini"), builtin: NewRules(l)}, nil
}

// NewEmbedder returns the configured embedder, nil for off.
func NewEmbedder(c Choice, l *Lexsem) (memory.Embedder, error) {
	if build, ok := embedders[c.name()]; ok {
		if build == nil {
			return nil, nil
		}
		return build(l), nil
	}
	server, err := newServer(c, "/embeddings")
	if err != nil {
		return nil, fmt.Errorf("embedder: %w", err)
	}
	return &remoteEmbedder{server: server, model: c.model("text-embedding-3-small")}, nil
}

func (c Choice) name() string {
	if c.Use == "" {
		return "builtin"
	}
	return strings.ToLower(c.Use)
}

func (c Choice) model(usual string) string {
	if c.Model == "" {
		return usual
	}
	return c.Model
}

// newAPIEndpoint parses the URL of a server: its root, the root of its API, or the complete URL of the endpoint.
func newServer(c Choice, endpoint string) (*server, error) {
	u, err := url.Parse(c.Use)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is neither builtin nor off nor an http address", c.Use)
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
	return &server{address: u.String(), host: u.Host, key: c.Key, client: client}, nil
}
