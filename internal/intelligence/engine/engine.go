// Package engine holds what the engines share: their configuration, the client of an OpenAI-compatible server and
// helpers for texts. The engines are in its folders: speech has recognisers and synthesis, llm the clients of language
// models, nlp the builtin rules and the word embedding.
package engine

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
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

// EngineName returns the setting in lower case, builtin if it is empty.
func (c Config) EngineName() string {
	if c.Engine == "" {
		return "builtin"
	}
	return strings.ToLower(c.Engine)
}

// ModelOrDefault returns the configured model, or the usual one.
func (c Config) ModelOrDefault(usual string) string {
	if c.Model == "" {
		return usual
	}
	return c.Model
}

// NewEndpoint parses the URL of a server: its root, the root of its API, or the complete URL of the endpoint.
func NewEndpoint(c Config, endpoint string) (*Endpoint, error) {
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
	return &Endpoint{address: u.String(), Host: u.Host, key: c.Key, client: client}, nil
}
