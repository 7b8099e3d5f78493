package voiceagent

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/redact"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/clip"
)

// spokenWord is how long a word of the test voice lasts.
const spokenWord = 250 * time.Millisecond

// testVoice speaks each word as its own noise, whose loudness changes as that of speech does. It hangs on texts that
// contain "hang".
type testVoice struct{}

func (testVoice) Ready(context.Context) error { return nil }

func (testVoice) Synthesize(ctx context.Context, _, text, _, _ string, _ bool) (*clip.Clip, error) {
	if strings.Contains(text, "hang") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return clip.New(spoken(text, 8000), 8000), nil
}

// spoken returns the audio of a text.
func spoken(text string, level float64) (pcm []int16) {
	for _, w := range strings.Fields(text) {
		r := rand.New(rand.NewPCG(uint64(len(w)), uint64(w[0])))
		last := 0.0
		for i := range int(spokenWord.Seconds() * 8000) {
			last += (r.Float64()*2 - 1 - last) / 3 // most energy below 1 kHz, as in speech
			pcm = append(pcm, int16(level*last*[]float64{1, 0.4, 0.8}[i/700%3]))
		}
	}
	return pcm
}

// testLine is a caller whose telephone returns the agent's audio, attenuated and delayed.
type testLine struct {
	echo  float64 // level of the echo; 0: none
	delay time.Duration

	mu      sync.Mutex // guards the fields below
	playing *testPlayback
	played  []int16 // at 8 kHz, since the start
	says    []int16 // the caller's own audio to send next
	stopped int     // playbacks that were stopped before their end
	entries []string
	loudAt  time.Time // when the agent was last heard
	gap     time.Duration
}

type testPlayback struct {
	line *testLine
	pcm  []int16
	at   int
	done chan struct{}
}

func (p *testPlayback) Done() <-chan struct{} { return p.done }

func (p *testPlayback) Played() time.Duration {
	p.line.mu.Lock()
	defer p.line.mu.Unlock()
	return time.Duration(p.at) * time.Second / 8000
}

func (p *testPlayback) Stop() {
	p.line.mu.Lock()
	defer p.line.mu.Unlock()
	if p.line.playing == p {
		p.line.playing = nil
		p.line.stopped++
		close(p.done)
	}
}

func (l *testLine) Say(_ context.Context, c *clip.Clip) (Playback, error) {
	pcm := c.PCM()
	p := &testPlayback{line: l, done: make(chan struct{})}
	for i := 0; i+1 < len(pcm); i += 2 {
		p.pcm = append(p.pcm, pcm[i])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.playing = p
	return p, nil
}

func (l *testLine) PlayStream(context.Context, *media.InjectedAudio) (Playback, error) {
	return nil, nil
}
func (l *testLine) KeyPressed() <-chan struct{} { return nil }
func (l *testLine) TakeKey() (rune, bool)       { return 0, false }

func (l *testLine) AddEntry(kind string, d map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reason, _ := d["reason"].(string); reason != "" {
		kind += " " + reason
	}
	l.entries = append(l.entries, kind)
}

func (l *testLine) say(pcm []int16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.says = append(l.says, pcm...)
}

// time returns how much audio the line has carried, in samples.
func (l *testLine) time() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.played)
}

// Listen returns the caller's audio in frames of 20 ms: what the caller says, and the echo.
func (l *testLine) Listen(ctx context.Context) (<-chan []int16, func(), error) {
	pcm := make(chan []int16, 4)
	ctx, stop := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(frameDuration)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				select {
				case pcm <- l.frame():
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return pcm, stop, nil
}

// frame plays 20 ms of the agent, and returns 20 ms of the caller.
func (l *testLine) frame() []int16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := make([]int16, frameSamples)
	if p := l.playing; p != nil {
		p.at += copy(heard, p.pcm[p.at:])
		if p.at == len(p.pcm) {
			l.playing = nil
			close(p.done)
		}
		if !l.loudAt.IsZero() {
			l.gap = max(l.gap, time.Since(l.loudAt))
		}
		l.loudAt = time.Now()
	}
	l.played = append(l.played, heard...)
	out := make([]int16, frameSamples)
	n := copy(out, l.says)
	l.says = l.says[n:]
	if from := len(l.played) - frameSamples - samplesOf(l.delay); l.echo > 0 && from >= 0 {
		for i := range out {
			out[i] += int16(l.echo * float64(l.played[from+i]))
		}
	}
	return out
}

// state returns how often the agent was stopped, and the entries of the timeline.
func (l *testLine) state() (stopped int, entries []string, longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped, slices.Clone(l.entries), l.gap
}

// testModel answers with a function.
type testModel struct {
	reply func(ctx context.Context, turn int, say func(string)) ([]ToolCall, error)

	mu    sync.Mutex // guards heard
	heard []string
}

func (m *testModel) Engine() string    { return "test" }
func (m *testModel) Phrases() []string { return nil }

func (m *testModel) Reply(ctx context.Context, told []Message, say func(string)) ([]ToolCall, error) {
	m.mu.Lock()
	m.heard = append(m.heard, told[len(told)-1].Text)
	turn := len(m.heard)
	m.mu.Unlock()
	return m.reply(ctx, turn, say)
}

// transcriberFunc is a Transcriber.
type transcriberFunc func(pcm []int16) string

func (f transcriberFunc) Transcribe(_ context.Context, pcm []int16, _ []string, _ string) (string, error) {
	return f(pcm), nil
}

func (transcriberFunc) Ready(context.Context) error { return nil }

// converse runs a conversation until it ends or end is called.
func converse(t *testing.T, line Caller, m *testModel, hears transcriberFunc, set func(*Service)) (result <-chan Result, end func()) {
	t.Helper()
	s := New(Config{DB: &db.DB{}, Log: slog.New(slog.DiscardHandler), Synthesizer: testVoice{}, Transcriber: hears,
		Models: ModelFunc(func(ConversationSettings) LanguageModel { return m }), Redactions: redact.Off{}})
	s.cfg.DB = nil // nothing is stored
	if set != nil {
		set(s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := make(chan Result, 1)
	go func() {
		out <- s.Converse(ctx, line, ConversationSettings{Org: "org_a", CallID: "call_1", Greeting: "Hello you.", MaxDuration: time.Minute,
			Interruptible: true, Handoff: true})
	}()
	t.Cleanup(cancel)
	return out, cancel
}

// await waits for a condition for at most 20 s.
func await(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !ready(); {
		if time.Now().After(limit) {
			t.Fatalf("waited for %s", what)
		}
		time.Sleep(frameDuration) //nolint:forbidigo // polls a condition that publishes no event
	}
}
