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

// realtimeWire is one conversation by the Realtime protocol.
type realtimeWire struct {
	host    string
	conn    *websocket.Conn
	old     bool // the form of before
	rate    int  // of the sound that is asked for
	in, out int  // rates of the sound that was agreed on

	ctx    context.Context
	cancel context.CancelFunc
	queue  chan []byte
	signs  chan voiceagent.Sign
	work   sync.WaitGroup

	up   *media.Rate // of the sound of the caller
	buf  []int16
	mu   sync.Mutex // guards the fields below
	err  error
	sent time.Duration // of sound
	busy bool          // an answer is being given
}

// start has events sent and read until the wire is closed or broken.
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

// Signs tell what happens.
func (w *realtimeWire) Signs() <-chan voiceagent.Sign { return w.signs }

// Err says why the wire is broken.
func (w *realtimeWire) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close ends the conversation.
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

// send writes what is queued.
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

// put queues an event.
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

// ping finds out that a server is gone though its connection is not.
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

// listen reads until the wire is broken.
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

// signOf reads an event; most are of no interest.
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

// quiet is how long the caller was silent when the server found that they had finished.
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

// complaint is an error the server tells. What it says of a cut that came too late, or of an answer that is being given already, is none.
func (w *realtimeWire) complaint(e *realtimeEvent) error {
	f := e.Error
	switch {
	case f == nil, strings.HasPrefix(f.EventID, "cut"), f.Code == "response_cancel_not_active", f.Code == "conversation_already_has_active_response":
		return nil
	}
	return f
}

// sound decodes what the server says.
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

// Hear sends what the caller says.
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

// Say has a text said word for word, or the server greet.
func (w *realtimeWire) Say(text string) {
	how := "Greet the caller in a few words and ask how you can help."
	if text = strings.TrimSpace(text); text != "" {
		how = "Say exactly the following to the caller, word for word, and nothing else: " + text
	}
	w.put(map[string]any{"type": "response.create", "response": map[string]any{"instructions": how}})
}

// Type tells what the caller typed.
func (w *realtimeWire) Type(text string) {
	w.put(map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "message", "role": "user",
		"content": []any{map[string]any{"type": "input_text", "text": text}}}})
	w.put(map[string]any{"type": "response.create"})
}

// Cut tells the server what was heard of what it said.
func (w *realtimeWire) Cut(item string, heard time.Duration, whole bool) {
	w.mu.Lock()
	busy := w.busy
	w.mu.Unlock()
	if !whole && busy {
		w.put(map[string]any{"type": "response.cancel", "event_id": "cut_" + item})
	}
	w.put(map[string]any{"type": "conversation.item.truncate", "event_id": "cut_end_" + item, "item_id": item, "content_index": 0, "audio_end_ms": heard.Milliseconds()})
}

// Answer tells what tools found out.
func (w *realtimeWire) Answer(all []voiceagent.Message) {
	for _, m := range all {
		w.put(map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "function_call_output", "call_id": m.Of, "output": m.Text}})
	}
	w.put(map[string]any{"type": "response.create"})
}
