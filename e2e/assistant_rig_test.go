package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
)

// The tones in which a stand-in for an engine speaks, by words of the text.
const (
	discloseTone = 500
	greetTone    = 620
	answerTone   = 740
	secondTone   = 860
	handTone     = 980
	otherSpeech  = 1100
)

// tones is which tone stands for a text, by the first of its words that is found.
var tones = []struct {
	word string
	hz   float64
}{{"automated assistant", discloseTone}, {"how can i help", greetTone}, {"connect", handTone}, {"nine to five", answerTone}, {"parking", secondTone}}

// engines is a server that speaks in tones, understands what it is told to, and thinks what it is told to, each after a known delay.
type engines struct {
	t    testing.TB
	url  string
	each time.Duration // how long a word lasts

	mu       sync.Mutex
	thoughts []map[string]any   // requests
	words    map[float64]string // what a tone means
	thinks   func(n int, request map[string]any) (pieces []string, call map[string]any)
	hearTime time.Duration
	think    time.Duration
	speak    time.Duration
	broken   bool // nothing can be thought of
}

func newEngines(t testing.TB) *engines {
	e := &engines{t: t, each: 200 * time.Millisecond}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audio/speech", e.voice)
	mux.HandleFunc("POST /v1/audio/transcriptions", e.ear)
	mux.HandleFunc("POST /v1/chat/completions", e.mind)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// voice speaks a text as a tone, 200 ms a word.
func (e *engines) voice(w http.ResponseWriter, r *http.Request) {
	var in struct{ Input string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	time.Sleep(e.speak)
	hz := float64(otherSpeech)
	for _, x := range tones {
		if strings.Contains(strings.ToLower(in.Input), x.word) {
			hz = x.hz
			break
		}
	}
	pcm := media.Tone(hz, -12, time.Duration(len(strings.Fields(in.Input)))*e.each, 16000)
	var b bytes.Buffer
	b.WriteString("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	_ = binary.Write(&b, binary.LittleEndian, []uint32{16000, 32000})
	b.WriteString("\x02\x00\x10\x00data")
	_ = binary.Write(&b, binary.LittleEndian, uint32(2*len(pcm)))
	_ = binary.Write(&b, binary.LittleEndian, pcm)
	w.Header().Set("Content-Type", "audio/wav")
	_, _ = w.Write(b.Bytes())
}

func (e *engines) ear(w http.ResponseWriter, r *http.Request) {
	f, _, err := r.FormFile("file")
	if err != nil {
		http.Error(w, "no file", 400)
		return
	}
	b, _ := io.ReadAll(f)
	time.Sleep(e.hearTime)
	pcm := make([]int16, (len(b)-44)/2)
	_ = binary.Read(bytes.NewReader(b[44:]), binary.LittleEndian, pcm)
	pcm = at8000(pcm, int(binary.LittleEndian.Uint32(b[24:28])))
	text := ""
	for hz, means := range e.words {
		if presence(pcm, hz) > 300*time.Millisecond {
			text = means
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"text": text})
}

// at8000 leaves samples out, which is good enough for tones.
func at8000(pcm []int16, rate int) (all []int16) {
	for i := 0; i < len(pcm); i += rate / 8000 {
		all = append(all, pcm[i])
	}
	return all
}

// mind streams what is thought, a piece at a time.
func (e *engines) mind(w http.ResponseWriter, r *http.Request) {
	var in map[string]any
	_ = json.NewDecoder(r.Body).Decode(&in)
	e.mu.Lock()
	n := len(e.thoughts)
	e.thoughts = append(e.thoughts, in)
	broken := e.broken
	e.mu.Unlock()
	if broken {
		http.Error(w, `{"error":{"message":"out of order"}}`, 500)
		return
	}
	time.Sleep(e.think)
	pieces, call := e.thinks(n, in)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta map[string]any) {
		b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta}}})
		_, _ = w.Write([]byte("data: " + string(b) + "\n\n"))
		w.(http.Flusher).Flush()
	}
	for _, p := range pieces {
		send(map[string]any{"content": p})
	}
	if call != nil {
		arguments, _ := json.Marshal(call["arguments"])
		name := map[string]any{"name": call["name"], "arguments": ""}
		send(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "call_1", "type": "function", "function": name}}})
		for _, half := range []string{string(arguments[:len(arguments)/2]), string(arguments[len(arguments)/2:])} {
			send(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]any{"arguments": half}}}})
		}
	}
	_, _ = w.Write([]byte("data: [DONE]\n\n"))
}

// speaker is a visitor who is silent but for what they are told to say.
type speaker struct {
	*visitor
	words chan []int16
	spoke chan time.Time

	mu   sync.Mutex  // guards loud
	loud []time.Time // when something was heard, of each packet that was
}

// soundsAfter is when the first sound was heard after a moment.
func (x *speaker) soundsAfter(moment time.Time) (at time.Time) {
	x.t.Helper()
	rig.Until(x.t, "a sound", 30*time.Second, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, t := range x.loud {
			if t.After(moment) {
				at = t
				return true
			}
		}
		return false
	})
	return at
}

// talker calls the carrier's number from outside.
func (s *site) talker(way carrier, from string) *speaker {
	s.T.Helper()
	line, err := s.lineIn(way, from)
	if err != nil {
		s.T.Fatal(err)
	}
	x := &speaker{visitor: &visitor{t: s.T, line: line}, words: make(chan []int16, 1), spoke: make(chan time.Time, 1)}
	line.Listen(func(pcm []int16) {
		x.keep(pcm)
		x.mu.Lock()
		defer x.mu.Unlock()
		if loudest(pcm) > 1000 {
			x.loud = append(x.loud, time.Now())
		}
	})
	ctx, hush := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for quiet := make([]int16, 160); ; {
			select {
			case pcm := <-x.words:
				if line.Say(ctx, pcm) != nil {
					return
				}
				x.spoke <- time.Now()
			default:
				if line.Say(ctx, quiet) != nil {
					return
				}
			}
		}
	}()
	s.T.Cleanup(func() { hush(); <-over })
	return x
}

// say says something, and returns when it was said to its end.
func (x *speaker) say(pcm []int16) (ended time.Time) {
	x.t.Helper()
	x.words <- pcm
	select {
	case ended = <-x.spoke:
	case <-time.After(60 * time.Second):
		x.t.Fatal("it could not be said")
	}
	return ended
}

// finishes waits until nothing was heard for most of a second, and returns a mark there.
func (x *speaker) finishes(mark int) int {
	x.t.Helper()
	const quiet = 6400
	rig.Until(x.t, "the agent has finished", 30*time.Second, func() bool {
		n := x.Mark()
		return n >= mark+quiet && loudest(x.Since(n-quiet, quiet*time.Second/8000)) < 500
	})
	return x.Mark()
}

func loudest(pcm []int16) (most int16) {
	for _, v := range pcm {
		most = max(most, v, -v)
	}
	return most
}

// trimmed is speech without silence at its ends.
func trimmed(pcm []int16) []int16 {
	loud := func(v int16) bool { return v > 500 || v < -500 }
	for len(pcm) > 0 && !loud(pcm[0]) {
		pcm = pcm[1:]
	}
	for len(pcm) > 0 && !loud(pcm[len(pcm)-1]) {
		pcm = pcm[:len(pcm)-1]
	}
	return pcm
}

// agentSteps are the steps of voice agents in a call's timeline, of one kind.
func agentSteps(t testing.TB, timeline, kind string) (all []map[string]any) {
	t.Helper()
	var page struct {
		Data []struct {
			Kind   string
			Detail map[string]any
		}
	}
	if err := json.Unmarshal([]byte(timeline), &page); err != nil {
		t.Fatalf("timeline: %v", err)
	}
	for _, s := range page.Data {
		if s.Kind == kind {
			all = append(all, s.Detail)
		}
	}
	return all
}

// assistantNode is a flow of an agent that hands over to a user.
func (o *office) assistantLine(config map[string]any) carrier {
	return o.line(o.flow(node("agent", "ai_agent", config, "failed", "bye"), node("bye", "hangup", nil)))
}
