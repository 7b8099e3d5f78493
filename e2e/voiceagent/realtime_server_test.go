package voiceagent

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
)

// realtimeServer is a stand-in for a server of the Realtime protocol that recognises tones and replies with tones. Like the real one it
// sends audio faster than real time, and cancels a response when the caller interrupts. It refuses to truncate audio that it has not
// sent.
type realtimeServer struct {
	t      testing.TB
	url    string
	old    bool               // uses the older form of the protocol
	linear bool               // does not accept µ-law
	means  map[float64]string // of tones
	reply  func(said string) spokenReply

	mu     sync.Mutex
	told   []map[string]any // events except audio
	wrong  []string
	keys   []string
	open   []*websocket.Conn
	closed bool // refuses new conversations
}

// spokenReply is a reply, and the tool call that follows it.
type spokenReply struct {
	words string
	hz    float64
	long  time.Duration
	tool  string
	with  map[string]any
	fails bool
}

// newRealtime starts a Realtime server.
func newRealtime(t testing.TB) *realtimeServer {
	s := &realtimeServer{t: t}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { s.stop(); server.Close() })
	s.url = "ws" + strings.TrimPrefix(server.URL, "http") + "/v1/realtime"
	return s
}

// stop closes all conversations without a close frame, and refuses new ones.
func (s *realtimeServer) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range s.open {
		_ = c.CloseNow()
	}
}

// events returns the received events of a kind.
func (s *realtimeServer) events(kind string) (found []map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.told {
		if e["type"] == kind {
			found = append(found, e)
		}
	}
	return found
}

func (s *realtimeServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	closed := s.closed
	s.keys = append(s.keys, r.Header.Get("Authorization")+" "+r.URL.Query().Get("model"))
	s.mu.Unlock()
	if closed {
		http.Error(w, "closed", http.StatusServiceUnavailable)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	conn.SetReadLimit(1 << 20)
	s.mu.Lock()
	s.open = append(s.open, conn)
	s.mu.Unlock()
	c := &conversation{s: s, conn: conn, sent: map[string]time.Duration{}, silence: 500 * time.Millisecond}
	c.run(context.Background())
}

// conversation is one conversation of the stand-in.
type conversation struct {
	s    *realtimeServer
	conn *websocket.Conn
	work sync.WaitGroup

	rate           int
	pcm, utterance []int16
	at             int // frames
	loud, quiet    int
	speaks         bool
	silence        time.Duration

	mu     sync.Mutex // guards the fields below, and writing
	n      int
	cancel func()
	sent   map[string]time.Duration
}

func (c *conversation) put(e map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(e)
}

func (c *conversation) putLocked(e map[string]any) {
	c.n++
	e["event_id"] = fmt.Sprintf("event_%d", c.n)
	b, _ := json.Marshal(e)
	ctx, done := context.WithTimeout(context.Background(), limit.Hang(0))
	defer done()
	_ = c.conn.Write(ctx, websocket.MessageText, b)
}

func (c *conversation) fail(in map[string]any, code, message string) {
	c.put(map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "code": code, "message": message, "event_id": in["event_id"]}})
}

func (c *conversation) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer c.work.Wait()
	defer stop()
	created := map[string]any{"id": "sess_1", "object": "realtime.session", "type": "realtime", "model": "m"}
	if c.s.old {
		created = map[string]any{"id": "sess_1", "object": "realtime.session", "modalities": []string{"text", "audio"}, "input_audio_format": "pcm16"}
	}
	c.put(map[string]any{"type": "session.created", "session": created})
	for {
		_, b, err := c.conn.Read(ctx)
		if err != nil {
			return
		}
		var in map[string]any
		if json.Unmarshal(b, &in) != nil {
			continue
		}
		if in["type"] == "input_audio_buffer.append" {
			c.hear(ctx, in["audio"].(string))
			continue
		}
		c.s.mu.Lock()
		c.s.told = append(c.s.told, in)
		c.s.mu.Unlock()
		c.take(ctx, in)
	}
}

func (c *conversation) take(ctx context.Context, in map[string]any) {
	switch in["type"] {
	case "session.update":
		c.update(in)
	case "response.create":
		text := ""
		if r, ok := in["response"].(map[string]any); ok {
			text, _ = r["instructions"].(string)
		}
		c.respond(ctx, text)
	case "response.cancel":
		c.cancelResponse()
	case "conversation.item.truncate":
		id, _ := in["item_id"].(string)
		ms, _ := in["audio_end_ms"].(float64)
		c.mu.Lock()
		sent := c.sent[id]
		c.mu.Unlock()
		if time.Duration(ms)*time.Millisecond > sent {
			c.s.mu.Lock()
			c.s.wrong = append(c.s.wrong, fmt.Sprintf("%s cut at %v ms, it has %v", id, ms, sent))
			c.s.mu.Unlock()
			c.fail(in, "invalid_value", "audio content is already shorter")
			return
		}
		c.put(map[string]any{"type": "conversation.item.truncated", "item_id": id, "audio_end_ms": ms})
	}
}

// update reads the session in the form of the protocol that it uses.
func (c *conversation) update(in map[string]any) {
	set, _ := in["session"].(map[string]any)
	form, detection := "", map[string]any{}
	if c.s.old {
		form, _ = set["input_audio_format"].(string)
		detection, _ = set["turn_detection"].(map[string]any)
	} else if audio, ok := set["audio"].(map[string]any); ok {
		input := audio["input"].(map[string]any)
		form, _ = input["format"].(map[string]any)["type"].(string)
		detection, _ = input["turn_detection"].(map[string]any)
	}
	switch {
	case form == "":
		c.fail(in, "unknown_parameter", "unknown parameter")
		return
	case c.s.linear && (form == "g711_ulaw" || form == "audio/pcmu"):
		c.fail(in, "invalid_value", "no such format")
		return
	}
	c.rate = 8000
	if form == "pcm16" || form == "audio/pcm" {
		c.rate = 24000
	}
	if ms, ok := detection["silence_duration_ms"].(float64); ok {
		c.silence = time.Duration(ms) * time.Millisecond
	}
	c.put(map[string]any{"type": "session.updated", "session": set})
}

// hear detects speech of the caller.
func (c *conversation) hear(ctx context.Context, text string) {
	b, _ := base64.StdEncoding.DecodeString(text)
	piece := codec.DecodeULaw(nil, b)
	if c.rate == 24000 {
		piece = piece[:0]
		for i := 0; i+1 < len(b); i += 6 { // every third sample
			piece = append(piece, int16(binary.LittleEndian.Uint16(b[i:])))
		}
	}
	for c.pcm = append(c.pcm, piece...); len(c.pcm) >= 160; c.pcm = c.pcm[160:] {
		c.frame(ctx, c.pcm[:160])
	}
}

func (c *conversation) frame(ctx context.Context, pcm []int16) {
	c.at++
	ms := 20 * c.at
	if peak(pcm) > 1000 {
		c.loud, c.quiet = c.loud+1, 0
	} else {
		c.quiet++
	}
	if c.quiet > 5 && !c.speaks {
		c.loud = 0
	}
	if c.loud > 0 {
		c.utterance = append(c.utterance, pcm...)
	}
	switch {
	case !c.speaks && c.loud >= 6:
		c.speaks = true
		c.put(map[string]any{"type": "input_audio_buffer.speech_started", "audio_start_ms": ms, "item_id": c.item()})
		c.cancelResponse()
	case c.speaks && time.Duration(c.quiet)*20*time.Millisecond >= c.silence:
		c.answer(ctx, ms)
	}
}

func (c *conversation) item() string {
	return fmt.Sprintf("item_user_%d", len(c.s.events("session.update"))*1000+c.at/100000)
}

// answer responds to the caller's speech.
func (c *conversation) answer(ctx context.Context, ms int) {
	said := ""
	for hz, means := range c.s.means {
		if fixture.ToneDuration(c.utterance, hz) > 300*time.Millisecond {
			said = means
		}
	}
	c.speaks, c.loud, c.quiet, c.utterance = false, 0, 0, nil
	item := c.item()
	c.put(map[string]any{"type": "input_audio_buffer.speech_stopped", "audio_end_ms": ms, "item_id": item})
	c.put(map[string]any{"type": "input_audio_buffer.committed", "item_id": item})
	c.put(map[string]any{"type": "rate_limits.updated", "rate_limits": []any{}})
	c.put(map[string]any{"type": "conversation.item.input_audio_transcription.completed", "item_id": item, "content_index": 0, "transcript": said})
	c.respond(ctx, said)
}

// cancelResponse cancels the response in progress.
func (c *conversation) cancelResponse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
}

// respond starts a response, which is sent faster than real time.
func (c *conversation) respond(ctx context.Context, to string) {
	r := c.s.reply(to)
	c.mu.Lock()
	c.n++
	id := fmt.Sprintf("resp_%d", c.n)
	ctx, c.cancel = context.WithCancel(ctx)
	c.mu.Unlock()
	c.put(map[string]any{"type": "response.created", "response": map[string]any{"id": id, "status": "in_progress"}})
	c.work.Go(func() { c.say(ctx, id, r) })
}

// say sends a reply: its audio and transcript, its tool call and the end of the response.
func (c *conversation) say(ctx context.Context, id string, r spokenReply) {
	output, status := []any{}, "completed"
	if r.words != "" {
		item := "item_" + id
		if !c.speak(ctx, id, item, r) {
			status = "cancelled"
		}
		output = append(output, map[string]any{"id": item, "type": "message", "role": "assistant"})
	}
	if r.tool != "" && status == "completed" {
		arguments, _ := json.Marshal(r.with)
		output = append(output, map[string]any{"id": "item_call_" + id, "type": "function_call", "name": r.tool, "call_id": "call_" + id, "arguments": string(arguments)})
	}
	done := map[string]any{"id": id, "status": status, "output": output}
	if r.fails {
		done["status"] = "failed"
		done["status_details"] = map[string]any{"type": "failed", "error": map[string]any{"type": "rate_limit_exceeded", "code": "rate_limit_exceeded", "message": "Rate limit reached"}}
	}
	c.put(map[string]any{"type": "response.done", "response": done})
}

// speak sends the audio and the transcript of an item. It returns false if the response was cancelled.
func (c *conversation) speak(ctx context.Context, id, item string, r spokenReply) bool {
	sound, words := "response.output_audio", "response.output_audio_transcript"
	if c.s.old {
		sound, words = "response.audio", "response.audio_transcript"
	}
	const part = 100 * time.Millisecond
	all := strings.Fields(r.words)
	parts := int(r.long / part)
	pcm := dsp.Tone(r.hz, -12, r.long, c.rate)
	n := len(pcm) / parts
	told := 0
	tick := time.NewTicker(part / 5)
	defer tick.Stop()
	for i := range parts {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		c.mu.Lock()
		if ctx.Err() != nil {
			c.mu.Unlock()
			return false
		}
		c.sent[item] += part
		c.putLocked(map[string]any{"type": sound + ".delta", "response_id": id, "item_id": item, "content_index": 0, "delta": c.encode(pcm[i*n : (i+1)*n])})
		if upTo := len(all) * (i + 1) / parts; upTo > told {
			c.putLocked(map[string]any{"type": words + ".delta", "response_id": id, "item_id": item, "delta": strings.Join(all[told:upTo], " ") + " "})
			told = upTo
		}
		c.mu.Unlock()
	}
	c.put(map[string]any{"type": words + ".done", "response_id": id, "item_id": item, "transcript": r.words})
	c.put(map[string]any{"type": sound + ".done", "response_id": id, "item_id": item})
	return true
}

func (c *conversation) encode(pcm []int16) string {
	if c.rate == 8000 {
		return base64.StdEncoding.EncodeToString(codec.EncodeULaw(nil, pcm))
	}
	var b []byte
	for _, v := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// options returns the options of a server whose voice agents use this Realtime server, and whose own voice is e.
func (s *realtimeServer) options(e *fixture.AIServer) rig.Options {
	return rig.Options{Env: map[string]string{"SONIQ_VOICE": e.URL, "SONIQ_VOICE_AGENT": s.url, "SONIQ_VOICE_AGENT_KEY": "sk-stand-in", "SONIQ_TRANSCRIBER": "off",
		"SONIQ_ALLOW_TARGETS": "127.0.0.0/8", "SONIQ_SUMMARIZER": "off"}}
}
