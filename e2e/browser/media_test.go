package browser

import (
	_ "embed"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/sdp"
)

//go:embed peer.js
var peerJS string

// page serves a page that runs a script.
func page(t *testing.T, script string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/app.js" {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(script))
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><title>phone</title><script src="/app.js"></script>`))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// tone writes the audio of the browser's microphone.
func tone(t *testing.T, hz string) string { return voice(t, hz, "48000") }

// voice writes a minute of a tone.
func voice(t *testing.T, hz, rate string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), hz+".wav")
	if out, err := exec.Command("sox", "-n", "-r", rate, "-c", "1", "-b", "16", path, "synth", "60", "sine", hz, "vol", "0.3").CombinedOutput(); err != nil {
		t.Fatalf("sox: %v %s", err, out)
	}
	return path
}

// leg is the server's side of a browser's call: it sends 1000 Hz and receives.
type leg struct {
	*media.Stream
	session *sdp.Session
	mu      sync.Mutex // guards heard
	heard   []int16
}

func newLeg(t *testing.T) *leg {
	t.Helper()
	e, err := media.New(media.Config{Bind: netip.MustParseAddr("127.0.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	s, err := e.Open()
	if err != nil {
		t.Fatal(err)
	}
	l := &leg{Stream: s, session: s.NewSession(sdp.Profile{Security: sdp.WebRTC})}
	s.OnAudio(func(pcm []int16) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.heard = append(l.heard, pcm...); len(l.heard) > 8000 {
			l.heard = append([]int16(nil), l.heard[len(l.heard)-4000:]...)
		}
	})
	return l
}

// speak sends a tone until the test ends.
func (l *leg) speak(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for l.Send(t.Context(), dsp.Tone(1000, -10, 100*time.Millisecond, 8000)) == nil {
		}
	}()
	t.Cleanup(func() { <-done })
}

func (l *leg) hears() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.heard) < 1600 {
		return 0
	}
	hz, _ := dsp.DominantFrequency(l.heard[len(l.heard)-1600:], 8000)
	return hz
}

func (l *leg) forget() {
	l.mu.Lock()
	l.heard = nil
	l.mu.Unlock()
}

// talk checks that tones are heard both ways, and that packets flow.
func talk(t *testing.T, c *chromium, l *leg) {
	t.Helper()
	l.forget()
	before := packets(c)
	until(t, "half a second of packets", 10*time.Second, func() bool {
		now := packets(c)
		return now.Received > before.Received+25 && now.Sent > before.Sent+25
	})
	until(t, "440 Hz from the browser", 10*time.Second, func() bool { hz := l.hears(); return hz > 430 && hz < 450 })
	until(t, "1000 Hz at the browser", 10*time.Second, func() bool {
		var at struct{ Hz, DB float64 }
		c.eval(&at, "window.tone()")
		return at.Hz > 980 && at.Hz < 1020 && at.DB > -60
	})
}

func packets(c *chromium) (r report) {
	c.t.Helper()
	c.eval(&r, "report()")
	return r
}

type report struct {
	State, Cipher, DTLS, Role, ICE string
	Received, Sent                 int
	RTT                            float64
}

func ready(t *testing.T) (*chromium, *leg) {
	t.Helper()
	c := open(t, tone(t, "440"), page(t, peerJS))
	c.eval(nil, "open_()")
	return c, newLeg(t)
}

func (l *leg) take(t *testing.T, offer string) string {
	t.Helper()
	d, err := l.session.ReceiveOffer([]byte(offer))
	if err != nil {
		t.Fatalf("%v\n%s", err, offer)
	}
	m, err := sdp.LocalAnswer(d)
	if err != nil {
		t.Fatal(err)
	}
	body, err := l.session.Answer(m)
	if err != nil {
		t.Fatal(err)
	}
	l.Apply(l.session, netip.Addr{})
	return string(body)
}

// firstAudio returns the time from the exchange of the session descriptions to the first audio in the browser.
func firstAudio(t *testing.T, c *chromium) time.Duration {
	t.Helper()
	var ms int
	c.eval(&ms, "window.heardAt - window.takenAt")
	return time.Duration(ms) * time.Millisecond
}

func TestBrowser_OffersAndHolds(t *testing.T) {
	t.Parallel()
	c, l := ready(t)
	var offer string
	c.eval(&offer, "offer(false)")
	c.eval(nil, "take('answer', %s)", quoted(l.take(t, offer)))
	l.speak(t)
	talk(t, c, l)
	if took := firstAudio(t, c); took > time.Second {
		t.Errorf("first audio after %v", took)
	}
	var r report
	c.eval(&r, "report()")
	t.Logf("first audio after %v, %+v", firstAudio(t, c), r)
	if r.State != "connected" || r.Cipher == "" {
		t.Errorf("%+v", r)
	}
	c.eval(&offer, "(pc.getTransceivers()[0].direction = 'sendonly', offer(false))")
	c.eval(nil, "take('answer', %s)", quoted(l.take(t, offer)))
	if d, _ := l.session.Remote(); !d.Held() {
		t.Errorf("the hold was not seen:\n%s", offer)
	}
	c.eval(&offer, "(pc.getTransceivers()[0].direction = 'sendrecv', offer(false))")
	c.eval(nil, "take('answer', %s)", quoted(l.take(t, offer)))
	talk(t, c, l)
	c.eval(&offer, "offer(true)") // ICE restart
	c.eval(nil, "take('answer', %s)", quoted(l.take(t, offer)))
	talk(t, c, l)
	if q := l.Quality(); !q.Secure || q.Received.LossRate > 5 || q.FirstAudio.IsZero() {
		t.Errorf("quality %+v", q)
	}
}

func TestBrowser_Answers(t *testing.T) {
	t.Parallel()
	c, l := ready(t)
	l.speak(t)
	m := sdp.LocalOffer()
	var answer string
	c.eval(&answer, "answer(%s)", quoted(string(l.session.Offer(m))))
	if _, err := l.session.ReceiveAnswer([]byte(answer)); err != nil {
		t.Fatalf("%v\n%s", err, answer)
	}
	l.Apply(l.session, netip.Addr{})
	talk(t, c, l)
	var r report
	c.eval(&r, "report()")
	t.Logf("first audio after %v, %+v", firstAudio(t, c), r)
	if took := firstAudio(t, c); took > time.Second {
		t.Errorf("first audio after %v", took)
	}
	until(t, "the browser's report of what it hears", 30*time.Second, func() bool { return l.Quality().Sent.Packets > 0 })
	if q := l.Quality(); q.Sent.MOS < 4 || q.RTT > time.Second || q.Received.MOS < 4 || q.OneWay {
		t.Errorf("quality %+v", q)
	}
}
