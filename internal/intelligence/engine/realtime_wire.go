package engine

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"soniq/internal/intelligence/voiceagent"
	"soniq/internal/protocol/media"
)

// realtimeConn is one session with a Realtime server. It implements voiceagent.RealtimeSession.
type realtimeWire struct {
	host    string
	conn    *websocket.Conn
	old     bool // the older beta form of the protocol
	rate    int  // sample rate that is requested
	in, out int  // sample rates that the server confirmed

	ctx    context.Context
	cancel context.CancelFunc
	queue  chan []byte
	signs  chan voiceagent.Sign
	work   sync.WaitGroup

	up   *media.Rate // resamples the caller's audio
	buf  []int16
	mu   sync.Mutex // guards the fields below
	err  error
	sent time.Duration // audio sent so far
	busy bool          // a response is in progress
}

// start starts the goroutines that send, ping and read until the session is closed or fails.
func (w *realtimeWire) start() {
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.queue, w.signs = make(chan []byte, mostQueued), make(chan voiceagent.Sign, 64)
	if w.in != 8000 {
		w.up = media.NewRate(8000, w.in)
	}
	w.work.Go(w.send)
	w.work.Go(w.ping)
	w.work.Go(func() {
		defer close(w.signs)
		w.fail(w.listen())
	})
}

// Events returns the channel of events. It is closed when the session ends.
func (w *realtimeWire) Signs() <-chan voiceagent.Sign { return w.signs }

// Err returns why the session failed; nil while it works.
func (w *realtimeWire) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close ends the session and waits for its goroutines.
func (w *realtimeWire) Close() {
	w.cancel()
	_ = w.conn.CloseNow()
	w.work.Wait()
}

func (w *realtimeWire) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = fmt.Errorf("%s: %w", w.host, err)
	}
	w.mu.Unlock()
	w.cancel()
	_ = w.conn.CloseNow()
}

// sendLoop writes the queued events.
func (w *realtimeWire) send() {
	for {
		select {
		case b := <-w.queue:
			if err := w.writeRaw(w.ctx, b); err != nil {
				w.fail(err)
				return
			}
		case <-w.ctx.Done():
			return
		}
	}
}

func (w *realtimeWire) writeRaw(ctx context.Context, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	return w.conn.Write(ctx, websocket.MessageText, b)
}

func (w *realtimeWire) write(ctx context.Context, event any) error {
	b, err := json.Marshal(event)
	if err != nil {
		return err
	}
	return w.writeRaw(ctx, b)
}

var errJammed = errors.New("the server does not take what it is sent")

// enqueue queues an event for sending. The session fails if the queue is full.
func (w *realtimeWire) put(event any) {
	b, err := json.Marshal(event)
	if err != nil {
		w.fail(err)
		return
	}
	select {
	case w.queue <- b:
	default:
		w.fail(errJammed)
	}
}

// pingLoop detects a server that is gone although its TCP connection still exists.
func (w *realtimeWire) ping() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(w.ctx, sendLimit)
		err := w.conn.Ping(ctx)
		cancel()
		if err != nil {
			w.fail(fmt.Errorf("no sign of life: %w", err))
			return
		}
	}
}

func (w *realtimeWire) read(ctx context.Context) (*realtimeEvent, error) {
	kind, b, err := w.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	e := &realtimeEvent{}
	if kind != websocket.MessageText {
		return e, nil
	}
	if err := json.Unmarshal(b, e); err != nil {
		return nil, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	return e, nil
}

// readLoop reads and publishes events until the connection fails.
func (w *realtimeWire) listen() error {
	for {
		e, err := w.read(w.ctx)
		if err != nil {
			return fmt.Errorf("the connection ended: %w", err)
		}
		sign, is, err := w.signOf(e)
		if err != nil {
			return err
		}
		if !is {
			continue
		}
		select {
		case w.signs <- sign:
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
}

// toRealtimeEvent converts a server event to a voiceagent event. is is false for events that are not used, which most
// are.
func (w *realtimeWire) signOf(e *realtimeEvent) (s voiceagent.Sign, is bool, err error) {
	s.Item = e.ItemID
	switch e.Type {
	case "input_audio_buffer.speech_started":
		s.Kind = voiceagent.Began
	case "input_audio_buffer.speech_stopped":
		s.Kind, s.Quiet = voiceagent.Stopped, w.quiet(e)
	case "conversation.item.input_audio_transcription.completed":
		s.Kind, s.Text = voiceagent.Heard, strings.TrimSpace(cut(e.Transcript, mostArguments))
	case "response.output_audio.delta", "response.audio.delta":
		s.Kind, s.Rate = voiceagent.Sound, w.out
		s.PCM, err = w.sound(e.Delta)
	case "response.output_audio_transcript.delta", "response.audio_transcript.delta":
		s.Kind, s.Text = voiceagent.Said, e.Delta
	case "response.created":
		w.answering(true)
		return s, false, nil
	case "response.done":
		w.answering(false)
		s.Kind = voiceagent.Done
		if r := e.Response; r != nil {
			s.Void, s.Err = r.Status == "cancelled", r.failure()
			if s.Err == nil && !s.Void {
				s.Calls, s.Err = r.calls()
			}
		}
	case "error":
		return s, false, w.complaint(e)
	default:
		return s, false, nil
	}
	return s, true, err
}

// silenceBefore returns how long the caller had been silent when the server detected the end of their turn.
func (w *realtimeWire) quiet(e *realtimeEvent) time.Duration {
	quiet := turnsEndAfter
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.EndMS != nil {
		quiet += min(max(w.sent-time.Duration(*e.EndMS)*time.Millisecond, 0), 2*time.Second)
	}
	return quiet
}

func (w *realtimeWire) answering(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = is
}

// eventError returns the error of an error event. A truncation that came too late, and a response that is already in
// progress, are no errors.
func (w *realtimeWire) complaint(e *realtimeEvent) error {
	f := e.Error
	switch {
	case f == nil, strings.HasPrefix(f.EventID, "cut"), f.Code == "response_cancel_not_active", f.Code == "conversation_already_has_active_response":
		return nil
	}
	return f
}

// decodeAudio decodes the audio of a response.
func (w *realtimeWire) sound(text string) ([]int16, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("sound is not the base64 expected: %w", err)
	}
	if w.out == 8000 {
		return media.DecodeULaw(nil, b), nil
	}
	pcm := make([]int16, len(b)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return pcm, nil
}

// SendAudio sends audio of the caller at 8 kHz.
func (w *realtimeWire) Hear(pcm []int16) {
	var b []byte
	if w.in == 8000 {
		b = media.EncodeULaw(nil, pcm)
	} else {
		w.buf = w.up.Convert(w.buf[:0], pcm)
		b = make([]byte, 0, 2*len(w.buf))
		for _, v := range w.buf {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		}
	}
	w.mu.Lock()
	w.sent += time.Duration(len(pcm)) * time.Second / 8000
	w.mu.Unlock()
	w.put(map[string]any{"type": "input_audio_buffer.append", "audio": base64.StdEncoding.EncodeToString(b)})
}

// Say makes the server speak a text word for word, or greet the caller if the text is empty.
func (w *realtimeWire) Say(text string) {
	how := "Greet the caller in a few words and ask how you can help."
	if text = strings.TrimSpace(text); text != "" {
		how = "Say exactly the following to the caller, word for word, and nothing else: " + text
	}
	w.put(map[string]any{"type": "response.create", "response": map[string]any{"instructions": how}})
}

// SendText sends text that the caller typed and requests a response.
func (w *realtimeWire) Type(text string) {
	w.put(map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "message", "role": "user",
		"content": []any{map[string]any{"type": "input_text", "text": text}}}})
	w.put(map[string]any{"type": "response.create"})
}

// Truncate reports to the server how much of an item the caller heard. It cancels the response unless the item is
// complete.
func (w *realtimeWire) Cut(item string, heard time.Duration, whole bool) {
	w.mu.Lock()
	busy := w.busy
	w.mu.Unlock()
	if !whole && busy {
		w.put(map[string]any{"type": "response.cancel", "event_id": "cut_" + item})
	}
	w.put(map[string]any{"type": "conversation.item.truncate", "event_id": "cut_end_" + item, "item_id": item, "content_index": 0, "audio_end_ms": heard.Milliseconds()})
}

// SendToolResults sends the results of tool calls and requests a response.
func (w *realtimeWire) Answer(all []voiceagent.Message) {
	for _, m := range all {
		w.put(map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "function_call_output", "call_id": m.Of, "output": m.Text}})
	}
	w.put(map[string]any{"type": "response.create"})
}
