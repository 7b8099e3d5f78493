package answermachine

import (
	"testing"
	"time"

	"soniq/internal/protocol/media/dsp"
)

// analyse feeds pieces of speech and silence, alternating, and returns the verdict and the time of the decision.
func analyse(parts ...time.Duration) (v Verdict, after time.Duration) {
	g := &Greeting{}
	for i, d := range parts {
		pcm := make([]int16, int(d.Seconds()*8000))
		if i%2 == 0 {
			pcm = dsp.Tone(300, -15, d, 8000)
		}
		for len(pcm) >= 160 {
			if v = g.Feed(pcm[:160]); v != Undecided {
				return v, g.heard
			}
			pcm = pcm[160:]
		}
	}
	return Undecided, g.heard
}

func TestGreeting_MachineOrPerson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		parts []time.Duration
		want  Verdict
	}{
		{"hello, and a pause", []time.Duration{500 * time.Millisecond, 2 * time.Second}, person},
		{"two words with a breath between", []time.Duration{400 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond,
			2 * time.Second}, person},
		{"a greeting read without a pause", []time.Duration{4 * time.Second}, Machine},
		{"a greeting with breaths", []time.Duration{time.Second, 300 * time.Millisecond, time.Second, 300 * time.Millisecond, time.Second},
			Machine},
		{"nobody speaks", []time.Duration{0, 5 * time.Second}, person},
		{"too short to tell", []time.Duration{500 * time.Millisecond, 300 * time.Millisecond}, Undecided},
	} {
		if got, after := analyse(c.parts...); got != c.want {
			t.Errorf("%s: verdict %d after %s, want %d", c.name, got, after, c.want)
		}
	}
}
