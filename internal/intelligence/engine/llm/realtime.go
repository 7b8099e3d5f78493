package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/intelligence/voiceagent"
)

// Sessions with servers of the OpenAI Realtime protocol: connecting and configuring. The current form of the protocol
// (session.type "realtime") and the older beta form are both supported; the server's first event decides which is
// tried first.

// IsRealtime reports whether an engine setting is the URL of a Realtime server: ws://, wss://, or a path that ends
// with /realtime.
func IsRealtime(use string) bool {
	u, err := url.Parse(use)
	return err == nil && u.Host != "" && (u.Scheme == "ws" || u.Scheme == "wss" || strings.HasSuffix(strings.TrimRight(u.Path, "/"),
		"/realtime"))
}

// realtimeEngine is a server of the Realtime protocol, which recognises, answers and speaks.
type realtimeEngine struct {
	address, host, key, model string
	client                    *http.Client
}

// NewRealtime returns the voice agent engine that uses a server of the Realtime protocol.
func NewRealtime(c engine.Config) (voiceagent.RealtimeEngine, error) {
	u, err := url.Parse(c.Engine)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("assistant: %q is no address", c.Engine)
	}
	switch u.Scheme {
	case "ws":
		u.Scheme = "http"
	case "wss":
		u.Scheme = "https"
	case "http", "https":
	default:
		return nil, fmt.Errorf("assistant: %q is neither wss:// nor https://", c.Engine)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/realtime"
	}
	model, q := c.ModelOrDefault("gpt-realtime"), u.Query()
	if !q.Has("model") && !q.Has("deployment") {
		q.Set("model", model)
	}
	u.RawQuery, u.Fragment = q.Encode(), ""
	client := c.Client
	if client == nil {
		client = http.DefaultClient
	}
	return &realtimeEngine{address: u.String(), host: u.Host, key: c.Key, model: model, client: client}, nil
}

// Engine returns the name of the protocol and the model.
func (r *realtimeEngine) Engine() string { return "openai-realtime:" + r.model }

// Limits of a session.
const (
	maxFrameBytes     = 1 << 20 // bytes of a received event
	maxQueuedEvents   = 600     // events queued for sending: twelve seconds of audio
	sendTimeout       = 5 * time.Second
	pingInterval      = 10 * time.Second
	maxResponseTokens = 1200 // tokens of one response
	turnEndSilence    = 400 * time.Millisecond
)

// Open connects and configures the session, including the audio format.
func (r *realtimeEngine) Open(ctx context.Context, set voiceagent.ConversationSettings) (voiceagent.RealtimeSession, error) {
	header := http.Header{}
	if r.key != "" {
		header.Set("Authorization", "Bearer "+r.key)
		header.Set("api-key", r.key)
	}
	conn, answer, err := websocket.Dial(ctx, r.address, &websocket.DialOptions{HTTPClient: r.client, HTTPHeader: header})
	if err != nil {
		if answer != nil && answer.StatusCode != http.StatusSwitchingProtocols {
			return nil, fmt.Errorf("connect to %s: %w", r.host, &engine.StatusError{Status: answer.StatusCode, Message: answer.Status})
		}
		return nil, fmt.Errorf("connect to %s: %w", r.host, err)
	}
	conn.SetReadLimit(maxFrameBytes)
	w := &realtimeConn{host: r.host, conn: conn}
	if err := w.configure(ctx, set); err != nil {
		_ = conn.CloseNow()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("agree with %s: %w", r.host, err)
	}
	w.start()
	return w, nil
}

var errUnexpectedProtocol = errors.New("the server speaks something else")

// configure sends the session configuration. If the server rejects it, it tries the other audio rate and then the
// other form of the protocol.
func (w *realtimeConn) configure(ctx context.Context, set voiceagent.ConversationSettings) error {
	first, err := w.awaitEvent(ctx, "session.created")
	if err != nil {
		return err
	}
	w.beta = first.Session.isBeta()
	for try := range 4 { // each form with each audio rate
		if w.rate = 8000; try%2 == 1 {
			w.rate = 24000
		}
		if err = w.write(ctx, w.sessionUpdate(set)); err != nil {
			return err
		}
		var now *serverEvent
		if now, err = w.awaitEvent(ctx, "session.updated"); err == nil {
			return w.setAudioRates(now.Session)
		}
		var said *serverError
		if !errors.As(err, &said) {
			return err
		}
		if try == 1 {
			w.beta = !w.beta
		}
	}
	return err
}

// awaitEvent reads events until one of a type or an error event arrives. It gives up after 50 events.
func (w *realtimeConn) awaitEvent(ctx context.Context, kind string) (*serverEvent, error) {
	for range 50 {
		e, err := w.read(ctx)
		if err != nil {
			return nil, err
		}
		switch e.Type {
		case kind:
			return e, nil
		case "error":
			return nil, e.asError()
		}
	}
	return nil, errUnexpectedProtocol
}

// setAudioRates sets the audio rates that the server confirmed: a server may use another format than requested.
func (w *realtimeConn) setAudioRates(s *serverSession) error {
	in, out := w.rate, w.rate
	if s != nil {
		in, out = rateOf(s.In, in), rateOf(s.Out, out)
		if s.Audio != nil {
			in, out = rateOf(s.Audio.Input.Format.Type, in), rateOf(s.Audio.Output.Format.Type, out)
		}
	}
	if in == 0 || out == 0 {
		return errors.New("the server wants sound that is neither PCM nor µ-law")
	}
	w.in, w.out = in, out
	return nil
}

// rateOf returns the sample rate of an audio format: 8000 for µ-law, 24000 for PCM, 0 for others, and usual if the
// format is empty.
func rateOf(form string, usual int) int {
	switch form {
	case "":
		return usual
	case "g711_ulaw", "audio/pcmu":
		return 8000
	case "pcm16", "audio/pcm":
		return 24000
	}
	return 0
}

// sessionUpdate returns the event that configures the session.
func (w *realtimeConn) sessionUpdate(set voiceagent.ConversationSettings) any {
	detection := map[string]any{"type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300,
		"silence_duration_ms": turnEndSilence.Milliseconds(), "create_response": true, "interrupt_response": set.Interruptible}
	heard := map[string]any{"model": "whisper-1"}
	if set.Language != "" {
		heard["language"] = transcript.BaseLanguage(set.Language)
	}
	tools := set.ToolSchemas(false)
	if w.beta {
		form := "g711_ulaw"
		if w.rate != 8000 {
			form = "pcm16"
		}
		s := map[string]any{"modalities": []string{"audio", "text"}, "instructions": set.SystemPrompt(), "input_audio_format": form,
			"output_audio_format":       form,
			"input_audio_transcription": heard, "turn_detection": detection, "tools": tools, "tool_choice": "auto",
			"max_response_output_tokens": maxResponseTokens}
		if set.Voice != "" {
			s["voice"] = set.Voice
		}
		return map[string]any{"type": "session.update", "session": s}
	}
	form := map[string]any{"type": "audio/pcmu"}
	if w.rate != 8000 {
		form = map[string]any{"type": "audio/pcm", "rate": w.rate}
	}
	out := map[string]any{"format": form}
	if set.Voice != "" {
		out["voice"] = set.Voice
	}
	return map[string]any{"type": "session.update", "session": map[string]any{"type": "realtime", "output_modalities": []string{"audio"},
		"instructions": set.SystemPrompt(), "tools": tools, "tool_choice": "auto", "max_output_tokens": maxResponseTokens,
		"audio": map[string]any{"input": map[string]any{"format": form, "transcription": heard, "turn_detection": detection},
			"output": out}}}
}
