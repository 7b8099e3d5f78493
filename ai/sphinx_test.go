package ai

import (
	"context"
	"os"
	"testing"
	"time"

	"soniq/transcript"
)

// needSphinx skips a test where the recogniser is not installed.
func needSphinx(t testing.TB, s *Sphinx) {
	t.Helper()
	if err := s.Ready(context.Background()); err != nil {
		if m, ok := transcript.IsMissing(err); ok {
			t.Skip(m)
		}
		t.Fatal(err)
	}
}

// newTestSphinx starts a recogniser that ends with the test.
func newTestSphinx(t testing.TB, workers int) *Sphinx {
	s := NewSphinx([]string{os.Args[0], "asr-worker"}, workers)
	t.Cleanup(s.Close)
	needSphinx(t, s)
	return s
}

// listen feeds a call to a live recogniser in the small parts a recorder writes.
func listen(t testing.TB, p *transcript.Pool, c spokenCall) []transcript.Segment {
	t.Helper()
	l, err := transcript.NewLive(p, phone, "en", nil)
	if err != nil {
		t.Fatal(err)
	}
	for part := c.audio; len(part) > 0; {
		n := min(1600, len(part))
		l.Write(part[:n])
		part = part[n:]
	}
	l.End()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	segments, err := l.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return segments
}

func TestSpeechThroughTheTelephoneIsUnderstood(t *testing.T) {
	t.Parallel()
	s := newTestSphinx(t, 1)
	pool := transcript.NewPool(s, 1)
	t.Cleanup(pool.Close)
	words, errors := 0, 0
	for _, sc := range scripts(t, "d04", "d10", "d21", "d25", "d31", "d59") {
		segments := listen(t, pool, speak(t, sc, "rms", "slt"))
		for c, speaker := range []string{"caller", "agent"} {
			want := sc.reference(speaker)
			words += len(want)
			errors += wordErrors(want, said(segments, c))
		}
	}
	rate := float64(errors) / float64(words)
	t.Logf("word error rate %.1f %% of %d words", 100*rate, words)
	if rate > 0.35 {
		t.Errorf("word error rate is %.1f %%, want at most 35 %%", 100*rate)
	}
}
