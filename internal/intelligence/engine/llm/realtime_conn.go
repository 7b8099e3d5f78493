package llm

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

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/voiceagent"
	"soniq/internal/platform/strictjson"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
)

// realtimeConn is one session with a Realtime server. It implements voiceagent.RealtimeSession.
type realtimeConn struct {
	host    string
	conn    *websocket.Conn
	beta    bool // the older beta form of the protocol
	rate    int  // sample rate that is requested
	in, out int  // sample rates that the server confirmed

	ctx        context.Context
	cancel     context.CancelFunc
	sendQueue  chan []byte
	events     chan voiceagent.RealtimeEvent
	goroutines sync.WaitGroup

	resampler  *dsp.RateConverter // resamples the caller's audio
	resampled  []int16
	mu         sync.Mutex // guards the fields below
	err        error
	audioSent  time.Duration // audio sent so far
	responding bool          // a response is in progress
}

// start starts the goroutines that send, ping and read until the session is closed or fails.
func (w *realtimeConn) start() {
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.sendQueue, w.events = make(chan []byte, maxQueuedEvents), make(chan voiceagent.RealtimeEvent, 64)
	if w.in != 8000 {
		w.resampler = dsp.NewRateConverter(8000, w.in)
	}
	w.goroutines.Go(w.sendLoop)
	w.goroutines.Go(w.pingLoop)
	w.goroutines.Go(func() {
		defer close(w.events)
		w.fail(w.readLoop())
	})
}

// Events returns the channel of events. It is closed when the session ends.
func (w *realtimeConn) Events() <-chan voiceagent.RealtimeEvent { return w.events }

// Err returns why the session failed; nil while it works.
func (w *realtimeConn) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close ends the session and waits for its goroutines.
func (w *realtimeConn) Close() {
	w.cancel()
	_ = w.conn.CloseNow()
	w.goroutines.Wait()
}

func (w *realtimeConn) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = fmt.Errorf("%s: %w", w.host, err)
	}
	w.mu.Unlock()
	w.cancel()
	_ = w.conn.CloseNow()
}

// connectionEnded returns the error of a session whose connection failed. The reader or the sender may notice it first.
func connectionEnded(err error) error { return fmt.Errorf("the connection ended: %w", err) }

// sendLoop writes the queued events.
func (w *realtimeConn) sendLoop() {
	for {
		select {
		case b := <-w.sendQueue:
			if err := w.writeRaw(w.ctx, b); err != nil {
				w.fail(connectionEnded(err))
				return
			}
		case <-w.ctx.Done():
			return
		}
	}
}

func (w *realtimeConn) writeRaw(ctx context.Context, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return w.conn.Write(ctx, websocket.MessageText, b)
}

func (w *realtimeConn) write(ctx context.Context, event any) error {
	b, err := json.Marshal(event)
	if err != nil {
		return err
	}
	return w.writeRaw(ctx, b)
}

var errSendQueueFull = errors.New("the server does not take what it is sent")

// enqueue queues an event for sending. The session fails if the queue is full.
func (w *realtimeConn) enqueue(event any) {
	b, err := json.Marshal(event)
	if err != nil {
		w.fail(err)
		return
	}
	select {
	case w.sendQueue <- b:
	default:
		w.fail(errSendQueueFull)
	}
}

// pingLoop detects a server that is gone although its TCP connection still exists.
func (w *realtimeConn) pingLoop() {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(w.ctx, sendTimeout)
		err := w.conn.Ping(ctx)
		cancel()
		if err != nil {
			w.fail(fmt.Errorf("no sign of life: %w", err))
			return
		}
	}
}

func (w *realtimeConn) read(ctx context.Context) (*serverEvent, error) {
	kind, b, err := w.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	e := &serverEvent{}
	if kind != websocket.MessageText {
		return e, nil
	}
	if err := json.Unmarshal(strictjson.ShortenDamaged(b), e); err != nil {
		return nil, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	return e, nil
}

// readLoop reads and publishes events until the connection fails.
func (w *realtimeConn) readLoop() error {
	for {
		e, err := w.read(w.ctx)
		if err != nil {
			return connectionEnded(err)
		}
		sign, is, err := w.toRealtimeEvent(e)
		if err != nil {
			return err
		}
		if !is {
			continue
		}
		select {
		case w.events <- sign:
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
}

// toRealtimeEvent converts a server event to a voiceagent event. is is false for events that are not used, which most
// are.
func (w *realtimeConn) toRealtimeEvent(e *serverEvent) (s voiceagent.RealtimeEvent, is bool, err error) {
	s.Item = e.ItemID
	switch e.Type {
	case "input_audio_buffer.speech_started":
		s.Kind = voiceagent.SpeechStarted
	case "input_audio_buffer.speech_stopped":
		s.Kind, s.SilentFor = voiceagent.SpeechStopped, w.silenceBefore(e)
	case "conversation.item.input_audio_transcription.completed":
		s.Kind, s.Text = voiceagent.InputTranscribed, strings.TrimSpace(engine.TruncateText(e.Transcript, maxArgumentBytes))
	case "response.output_audio.delta", "response.audio.delta":
		s.Kind, s.Rate = voiceagent.OutputAudio, w.out
		s.PCM, err = w.decodeAudio(e.Delta)
	case "response.output_audio_transcript.delta", "response.audio_transcript.delta":
		s.Kind, s.Text = voiceagent.OutputText, e.Delta
	case "response.created":
		w.setResponding(true)
		return s, false, nil
	case "response.done":
		w.setResponding(false)
		s.Kind = voiceagent.ResponseDone
		if r := e.Response; r != nil {
			s.Cancelled, s.Err = r.Status == "cancelled", r.failure()
			if s.Err == nil && !s.Cancelled {
				s.ToolCalls, s.Err = r.toolCalls()
			}
		}
	case "error":
		return s, false, w.eventError(e)
	default:
		return s, false, nil
	}
	return s, true, err
}

// silenceBefore returns how long the caller had been silent when the server detected the end of their turn.
func (w *realtimeConn) silenceBefore(e *serverEvent) time.Duration {
	quiet := turnEndSilence
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.EndMS != nil {
		quiet += min(max(w.audioSent-time.Duration(*e.EndMS)*time.Millisecond, 0), 2*time.Second)
	}
	return quiet
}

func (w *realtimeConn) setResponding(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.responding = is
}

// eventError returns the error of an error event. A truncation that came too late, and a response that is already in
// progress, are no errors.
func (w *realtimeConn) eventError(e *serverEvent) error {
	f := e.Error
	switch {
	case f == nil, strings.HasPrefix(f.EventID, "cut"), f.Code == "response_cancel_not_active",
		f.Code == "conversation_already_has_active_response":
		return nil
	}
	return f
}

// decodeAudio decodes the audio of a response.
func (w *realtimeConn) decodeAudio(text string) ([]int16, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("sound is not the base64 expected: %w", err)
	}
	if w.out == 8000 {
		return codec.DecodeULaw(nil, b), nil
	}
	pcm := make([]int16, len(b)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return pcm, nil
}

// SendAudio sends audio of the caller at 8 kHz.
func (w *realtimeConn) SendAudio(pcm []int16) {
	var b []byte
	if w.in == 8000 {
		b = codec.EncodeULaw(nil, pcm)
	} else {
		w.resampled = w.resampler.Convert(w.resampled[:0], pcm)
		b = make([]byte, 0, 2*len(w.resampled))
		for _, v := range w.resampled {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		}
	}
	w.mu.Lock()
	w.audioSent += time.Duration(len(pcm)) * time.Second / 8000
	w.mu.Unlock()
	w.enqueue(map[string]any{"type": "input_audio_buffer.append", "audio": base64.StdEncoding.EncodeToString(b)})
}

// Say makes the server speak a text word for word, or greet the caller if the text is empty.
func (w *realtimeConn) Say(text string) {
	how := "Greet the caller in a few words and ask how you can help."
	if text = strings.TrimSpace(text); text != "" {
		how = "Say exactly the following to the caller, word for word, and nothing else: " + text
	}
	w.enqueue(map[string]any{"type": "response.create", "response": map[string]any{"instructions": how}})
}

// SendText sends text that the caller typed and requests a response.
func (w *realtimeConn) SendText(text string) {
	w.enqueue(map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "message", "role": "user",
		"content": []any{map[string]any{"type": "input_text", "text": text}}}})
	w.enqueue(map[string]any{"type": "response.create"})
}

// Truncate reports to the server how much of an item the caller heard. It cancels the response unless the item is
// complete.
func (w *realtimeConn) Truncate(item string, heard time.Duration, whole bool) {
	w.mu.Lock()
	busy := w.responding
	w.mu.Unlock()
	if !whole && busy {
		w.enqueue(map[string]any{"type": "response.cancel", "event_id": "cut_" + item})
	}
	w.enqueue(map[string]any{"type": "conversation.item.truncate", "event_id": "cut_end_" + item, "item_id": item, "content_index": 0,
		"audio_end_ms": heard.Milliseconds()})
}

// SendToolResults sends the results of tool calls and requests a response.
func (w *realtimeConn) SendToolResults(all []voiceagent.Message) {
	for _, m := range all {
		w.enqueue(map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "function_call_output",
			"call_id": m.ToolCallID, "output": m.Text}})
	}
	w.enqueue(map[string]any{"type": "response.create"})
}
