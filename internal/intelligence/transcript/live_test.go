package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"
)

// countingRecognizer returns the number of loud samples of a clip as its text.
type countingRecognizer struct {
	mu       sync.Mutex // guards the fields below
	failures int        // number of clips that still fail
	release  chan struct{}
	clips    []Clip
}

func (c *countingRecognizer) Transcribe(ctx context.Context, clip Clip) (Recognition, error) {
	if c.release != nil {
		select {
		case <-c.release:
		case <-ctx.Done():
			return Recognition{}, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures > 0 {
		c.failures--
		return Recognition{}, errors.New("engine fell over")
	}
	c.clips = append(c.clips, clip)
	loud := 0
	for _, v := range clip.PCM {
		if v > 1000 || v < -1000 {
			loud++
		}
	}
	return Recognition{Text: fmt.Sprintf("%d loud", loud), Confidence: 0.5,
		Words: []Word{{"word", 100, 300, 0.5}, {"end", clip.DurationMS() - 200, clip.DurationMS() - 100, 0.5}}}, nil
}

func (c *countingRecognizer) Engine() Engine              { return Engine{"counter", "test", "1"} }
func (c *countingRecognizer) Ready(context.Context) error { return nil }

var mulaw = Format{Encoding: PCMU, Rate: 8000, Channels: 2}

// talk returns µ-law audio of two channels: each side sounds in its own seconds.
func talk(seconds int, caller, agent func(second int) bool) []byte {
	out := make([]byte, 0, seconds*16000)
	for i := range seconds * 8000 {
		for _, sounds := range []func(int) bool{caller, agent} {
			b := byte(0xFF)
			if sounds(i/8000) && math.Sin(float64(i)/3) > 0 {
				b = 0x90
			}
			out = append(out, b)
		}
	}
	return out
}

func english() string { return DefaultLanguage }

func startTranscription(t *testing.T, l Recognizer, f Format, source *bytes.Reader) (*LiveTranscription, *RecognizerPool) {
	t.Helper()
	p := NewRecognizerPool(l, 2)
	t.Cleanup(p.Close)
	var live *LiveTranscription
	var err error
	if source == nil {
		live, err = NewLiveTranscription(p, f, english, nil)
	} else {
		live, err = NewLiveTranscription(p, f, english, source)
	}
	if err != nil {
		t.Fatal(err)
	}
	return live, p
}

func writeInParts(l *LiveTranscription, audio []byte, part int) {
	for len(audio) > 0 {
		n := min(part, len(audio))
		l.Write(audio[:n])
		audio = audio[n:]
	}
}

func waitSegments(t *testing.T, l *LiveTranscription) ([]Segment, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return l.Wait(ctx)
}

// wordless recognises no words.
type wordless struct{ countingRecognizer }

func (*wordless) Transcribe(context.Context, Clip) (Recognition, error) { return Recognition{}, nil }

// https://github.com/amicalhq/amical/issues/71
func TestRecognizerPool_CountsSpeechWithoutWords(t *testing.T) {
	t.Parallel()
	l, p := startTranscription(t, &wordless{}, mulaw, nil)
	writeInParts(l, talk(9, callerSpeaks, agentSpeaks), 320)
	l.End()
	if said, err := waitSegments(t, l); err != nil || len(said) != 0 || p.Wordless() < 2 {
		t.Errorf("%d segments without words, %+v, %v", p.Wordless(), said, err)
	}
}

func callerSpeaks(s int) bool { return s%4 == 1 }
func agentSpeaks(s int) bool  { return s%4 == 3 }

func TestLiveTranscription_SegmentsDuringCall(t *testing.T) {
	t.Parallel()
	for _, part := range []int{320, 1600, 6, 16000} {
		engine := &countingRecognizer{}
		l, _ := startTranscription(t, engine, mulaw, nil)
		audio := talk(9, callerSpeaks, agentSpeaks)
		writeInParts(l, audio[:16000*8], part)
		if got, err := waitSegments(t, l); err != nil || len(got) != 3 {
			t.Fatalf("in parts of %d: %d segments are known before the end, want 3 (%v)", part, len(got), err)
		}
		writeInParts(l, audio[16000*8:], part)
		l.End()
		got, err := waitSegments(t, l)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range got {
			want := []Speaker{Caller, Agent}[i%2]
			from := 1000 + 2000*i - 150 + 100 // padding, and the start of the first word
			if s.Speaker != want || s.Index != i || s.StartMS < from-20 || s.StartMS > from+20 || s.Channel != i%2 {
				t.Errorf("in parts of %d: segment %d is %+v, want %s from %d ms", part, i, s, want, from)
			}
		}
		if len(got) != 4 {
			t.Errorf("in parts of %d: %d segments, want 4", part, len(got))
		}
	}
}

func TestLiveTranscription_QueuedSegmentReadFromRecording(t *testing.T) {
	t.Parallel()
	audio := talk(9, callerSpeaks, agentSpeaks)
	plain := &countingRecognizer{}
	l, _ := startTranscription(t, plain, mulaw, nil)
	writeInParts(l, audio, 320)
	l.End()
	want, err := waitSegments(t, l)
	if err != nil {
		t.Fatal(err)
	}
	engine := &countingRecognizer{release: make(chan struct{})}
	l, p := startTranscription(t, engine, mulaw, bytes.NewReader(audio))
	p.maxHeld = 0
	writeInParts(l, audio, 320)
	l.End()
	close(engine.release)
	got, err := waitSegments(t, l)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d segments, %v; want %d", len(got), err, len(want))
	}
	for i := range got {
		if got[i].Text != want[i].Text || got[i].StartMS != want[i].StartMS {
			t.Errorf("segment %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestLiveTranscription_FullQueueWithoutRecordingIsError(t *testing.T) {
	t.Parallel()
	l, p := startTranscription(t, &countingRecognizer{}, mulaw, nil)
	p.maxHeld = 0
	writeInParts(l, talk(5, callerSpeaks, agentSpeaks), 320)
	l.End()
	if got, err := waitSegments(t, l); err == nil {
		t.Errorf("got %d segments and no error, want one that says what is missing", len(got))
	}
}

func TestRecognizerPool_SegmentRetriedOnce(t *testing.T) {
	t.Parallel()
	for fails, want := range []bool{true, true, false} {
		l, _ := startTranscription(t, &countingRecognizer{failures: fails}, mulaw, nil)
		writeInParts(l, talk(3, callerSpeaks, func(int) bool { return false }), 320)
		l.End()
		got, err := waitSegments(t, l)
		if ok := err == nil && len(got) == 1; ok != want {
			t.Errorf("after %d failures: %d segments, %v", fails, len(got), err)
		}
	}
}

func TestTranscribeFile_WAVEncodings(t *testing.T) {
	t.Parallel()
	audio := talk(9, callerSpeaks, agentSpeaks)
	linear := make([]byte, 0, 2*len(audio))
	for _, b := range audio {
		linear = append(linear, byte(muLaw[b]), byte(uint16(muLaw[b])>>8))
	}
	for _, c := range []struct {
		name string
		file []byte
	}{
		{"mu-law", wav(7, 8, 1, audio, len(audio))},
		{"linear", wav(1, 16, 2, linear, len(linear))},
		{"cut by a crash", wav(7, 8, 1, audio, 0)},
		{"raw", audio},
	} {
		p := NewRecognizerPool(&countingRecognizer{}, 1)
		t.Cleanup(p.Close)
		got, err := p.TranscribeFile(context.Background(), bytes.NewReader(c.file), int64(len(c.file)), mulaw, "en", nil)
		if err != nil || len(got) != 4 {
			t.Errorf("%s: %d segments, %v; want 4", c.name, len(got), err)
		}
	}
	p := NewRecognizerPool(&countingRecognizer{}, 1)
	t.Cleanup(p.Close)
	if _, err := p.TranscribeFile(context.Background(), bytes.NewReader(audio[:100]), 100, mulaw, "en", nil); !errors.Is(err, ErrTooShort) {
		t.Errorf("a recording of 6 ms gives %v, want ErrTooShort", err)
	}
}

// wav returns a WAV file of two channels at 8 kHz; size is the data size in the header.
func wav(tag, bits, bytesPer int, data []byte, size int) []byte {
	b := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00")
	le := func(v, n int) {
		for range n {
			b = append(b, byte(v))
			v >>= 8
		}
	}
	le(tag, 2)
	le(2, 2)
	le(8000, 4)
	le(8000*2*bytesPer, 4)
	le(2*bytesPer, 2)
	le(bits, 2)
	b = append(b, "data"...)
	le(size, 4)
	return append(b, data...)
}

func TestSubtitles_SpeakersAndTimes(t *testing.T) {
	t.Parallel()
	segments := []Segment{{Speaker: Caller, StartMS: 1500, EndMS: 3661001, Text: "A <b> & c"}}
	if got, want := WebVTT(segments), "WEBVTT\n\n00:00:01.500 --> 01:01:01.001\n<v Caller>A &lt;b&gt; &amp; c\n"; got != want {
		t.Errorf("WebVTT is %q, want %q", got, want)
	}
	if got, want := SubRip(segments), "1\n00:00:01,500 --> 01:01:01,001\nCaller: A <b> & c\n\n"; got != want {
		t.Errorf("SubRip is %q, want %q", got, want)
	}
}

func FuzzTranscribeFile(f *testing.F) {
	f.Add(wav(7, 8, 1, []byte("abcd"), 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := NewRecognizerPool(&countingRecognizer{}, 1)
		defer p.Close()
		_, _ = p.TranscribeFile(context.Background(), bytes.NewReader(b), int64(len(b)), mulaw, "en", nil)
	})
}

func TestOtherServerRetry_BacksOff(t *testing.T) {
	t.Parallel()
	for waited, want := range map[time.Duration]time.Duration{-time.Hour: time.Second, 0: time.Second, 5 * time.Second: time.Second,
		time.Minute: 6 * time.Second, time.Hour: time.Minute, 1000 * time.Hour: time.Minute} {
		if got := otherServerRetry(waited); got != want {
			t.Errorf("after %s: %s, want %s", waited, got, want)
		}
	}
}
