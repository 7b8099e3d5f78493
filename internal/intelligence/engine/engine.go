// Package engine holds the engines: speech to text, writers of call notes, embedders; embedded ones and remote ones.
package engine

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"soniq/internal/intelligence/memory"
	"soniq/internal/intelligence/transcript"
)

// Choice says which engine to use: builtin, off, or the address of an OpenAI-compatible server; to listen also pocketsphinx, or sherpa: and the
// folder of a model.
type Choice struct {
	Use     string
	Key     string // sent as bearer token; may be empty
	Model   string // empty: the server's usual one
	Client  *http.Client
	Library string // the folder of sherpa-onnx; empty: wherever it is found

	Installed string // the folder of an English model with its library, with which builtin listens; empty: pocketsphinx does
}

// The engines by the name used in settings; anything else is the address of a server. Off has no engine at all.
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

// builtin is the best recogniser that is installed.
func builtin(c Choice) transcript.Listener {
	if c.Installed == "" {
		return NewSphinx(nil, 0)
	}
	return NewEnglish(nil, c.Installed, 0)
}

// NewListener gives the speech recogniser chosen, nil for off. One that is an io.Closer is to be closed.
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

// NewWriter gives the writer of notes chosen, nil for off. A remote one falls back to the builtin rules by itself.
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

// NewEmbedder gives the embedder chosen, nil for off.
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

// newServer reads the address of a server: its root, the root of its API, or the whole address of the endpoint.
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
