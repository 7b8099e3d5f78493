package browser

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/wav"
)

func TestMain(m *testing.M) { rig.MainInLanes(m, rig.Browser) }

// bundle returns the page's script with JsSIP in it.
var bundle = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "soniq-phone-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	node, out := filepath.Join(rig.Root(), "e2e", "node"), filepath.Join(dir, "phone.js")
	build := exec.Command(filepath.Join(node, "node_modules", ".bin", "esbuild"), filepath.Join(node, "phone.js"), "--bundle", "--outfile="+out)
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("esbuild: %w %s", err, said)
	}
	b, err := os.ReadFile(out)
	return string(b), err
})

// webPhone is a user's telephone in a browser.
type webPhone struct {
	*chromium
	login rig.Login
}

// newWebPhone opens a page and registers it; its microphone plays a tone.
func newWebPhone(t *testing.T, s *rig.Server, login rig.Login, hz string, answers bool) *webPhone {
	t.Helper()
	script, err := bundle()
	if err != nil {
		t.Fatal(err)
	}
	p := &webPhone{open(t, tone(t, hz), page(t, script)), login}
	p.eval(nil, "register(%s, %s, %s, %v)", quoted(door(s)), quoted("sip:"+login.Username+"@"+login.Domain), quoted(login.Password), answers)
	p.wait("registered")
	return p
}

// door returns the WebSocket address for browsers: the encrypted one if the server listens there.
func door(s *rig.Server) string {
	if s.WSS != "" {
		return s.WSS
	}
	return "ws://" + s.HTTP + "/ws/sip"
}

// events returns the events of the page so far.
func (p *webPhone) events() (all []string) {
	p.t.Helper()
	p.eval(&all, "window.events")
	return all
}

// wait waits for an event of the page that begins with a text.
func (p *webPhone) wait(event string) {
	p.t.Helper()
	var all []string
	defer func() {
		if p.t.Failed() {
			p.t.Logf("on the page of %s: %q", p.login.Username, all)
		}
	}()
	until(p.t, event, 30*time.Second, func() bool {
		all = p.events()
		return slices.ContainsFunc(all, func(e string) bool { return strings.HasPrefix(e, event) })
	})
}

func (p *webPhone) dial(extension string) {
	p.t.Helper()
	p.eval(nil, "dial(%s)", quoted("sip:"+extension+"@"+p.login.Domain))
}

// hears waits until a tone is heard.
func (p *webPhone) hears(hz float64) {
	p.t.Helper()
	var at struct{ Hz, DB float64 }
	defer func() {
		if p.t.Failed() {
			p.t.Logf("%s hears %+v; %q", p.login.Username, at, p.events())
		}
	}()
	until(p.t, fmt.Sprintf("%.0f Hz at %s", hz, p.login.Username), 20*time.Second, func() bool {
		p.eval(&at, "tone()")
		return at.Hz > hz-20 && at.Hz < hz+20 && at.DB > -60
	})
}

// silent waits until hardly anything is heard.
func (p *webPhone) silent() {
	p.t.Helper()
	until(p.t, "silence at "+p.login.Username, 20*time.Second, func() bool {
		var at struct{ Hz, DB float64 }
		p.eval(&at, "tone()")
		return at.DB < -70
	})
}

func TestBrowser_ToBrowser(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Load: rig.Browser, Flags: []string{"--web-origins", "*"}})
	office := s.Org("live")
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	a := newWebPhone(t, s, ada.SIP, "440", false)
	b := newWebPhone(t, s, bob.SIP, "1000", true)
	a.dial(bob.Extension)
	b.wait("incoming")
	a.wait("confirmed")
	a.hears(1000)
	b.hears(440)
	var r struct{ Cipher, Codec string }
	a.eval(&r, "report()")
	if r.Cipher == "" {
		t.Errorf("the call is not encrypted: %+v", r)
	}
	a.eval(nil, "change('hold')")
	a.eval(nil, "change('unhold')")
	a.hears(1000)
	b.hears(440)
	a.eval(nil, "session.terminate()")
	b.wait("ended")
}

// A desk phone and a browser call each other, with every encryption setting of the desk phone.
func TestBrowser_DeskPhoneBothWays(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Load: rig.Browser, Flags: []string{"--web-origins", "*"}})
	office := s.Org("live")
	ada := office.AddUser("Ada")
	a := newWebPhone(t, s, ada.SIP, "440", true)
	for _, c := range []struct{ srtp, phone string }{{"off", ""}, {"required", "srtp-mand"}, {"preferred", "srtp"}} {
		bob := office.AddUser("Bob-" + c.srtp)
		var phones struct{ Data []struct{ ID string } }
		office.Want(200, "GET", "/devices?user_id="+bob.ID, nil, &phones)
		office.Want(200, "PATCH", "/devices/"+phones.Data[0].ID, map[string]any{"srtp": c.srtp}, nil)
		desk := s.Phone(bob.SIP, rig.PhoneOptions{Say: voice(t, "1000", "8000"), Auto: true, Encrypt: c.phone})
		a.eval(nil, "(events.length = 0, 0)")
		a.dial(bob.Extension)
		desk.Wait("CALL_ESTABLISHED", "")
		a.hears(1000)
		desk.Listen(2 * time.Second)
		a.eval(nil, "change('hold')")
		a.silent()
		a.eval(nil, "change('unhold')")
		a.hears(1000)
		a.eval(nil, "session.terminate()")
		desk.Wait("CALL_CLOSED", "")
		a.eval(nil, "(events.length = 0, 0)")
		desk.Dial(ada.Extension)
		a.wait("confirmed")
		a.hears(1000)
		desk.Listen(2 * time.Second)
		desk.Do("hangup", "")
		a.wait("ended")
		heard, err := wav.Read(desk.Close())
		if err != nil {
			t.Fatal(err)
		}
		pcm := heard.PCM[0]
		if hz, _ := dsp.DominantFrequency(pcm[len(pcm)/2:], 8000); hz < 430 || hz > 450 {
			t.Errorf("with srtp %s the desk phone heard %.0f Hz", c.srtp, hz)
		}
	}
}

// A supervisor at a desk phone hears both a browser and a telephone. The browser offers Opus first, and uses the
// codec of the telephone.
func TestSupervision_BrowserAndPhone(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Load: rig.Browser, Flags: []string{"--web-origins", "*"}})
	office := s.Org("live")
	ada, bob, carol := office.AddUser("Ada"), office.AddUser("Bob"), office.AddUser("Carol")
	a := newWebPhone(t, s, ada.SIP, "440", false)
	desk := s.Phone(bob.SIP, rig.PhoneOptions{Say: voice(t, "1000", "8000"), Auto: true, Codecs: "PCMU/8000"})
	supervisor := s.Phone(carol.SIP, rig.PhoneOptions{Say: voice(t, "1600", "8000"), Auto: true})
	a.dial(bob.Extension)
	desk.Wait("CALL_ESTABLISHED", "")
	a.hears(1000)
	var live struct{ Data []struct{ ID string } }
	office.Want(200, "GET", "/calls/live", nil, &live)
	if len(live.Data) != 1 {
		t.Fatalf("calls in progress: %+v", live)
	}
	path := "/calls/" + live.Data[0].ID
	office.Want(201, "POST", path+"/monitor", map[string]any{"user_id": carol.ID}, nil)
	supervisor.Wait("CALL_ESTABLISHED", "")
	pcm := supervisor.Since(supervisor.Mark()+8000, 2*time.Second)
	for _, hz := range []float64{440, 1000} {
		if level := power(pcm, hz); level < -40 {
			t.Errorf("the supervisor hears %.0f Hz at %.0f dB", hz, level)
		}
	}
	a.hears(1000)
	var c struct {
		Legs []struct {
			User  string `json:"user_id"`
			Codec string
			SRTP  bool
		}
	}
	office.Want(200, "GET", path+"?expand=legs", nil, &c)
	codecs := map[string]string{}
	for _, l := range c.Legs {
		codecs[l.User] = l.Codec
		if l.User == ada.ID && !l.SRTP {
			t.Error("the browser's leg is not encrypted")
		}
	}
	if codecs[ada.ID] != "PCMU" || codecs[bob.ID] != "PCMU" {
		t.Errorf("the legs speak %v", codecs)
	}
	a.eval(nil, "session.terminate()")
	desk.Wait("CALL_CLOSED", "")
	supervisor.Wait("CALL_CLOSED", "")
}

// power returns the level of a tone in audio at 8 kHz, in dB below the loudest sine.
func power(pcm []int16, hz float64) float64 {
	var re, im float64
	for i, v := range pcm {
		sin, cos := math.Sincos(2 * math.Pi * hz * float64(i) / 8000)
		re, im = re+float64(v)*cos, im+float64(v)*sin
	}
	return 20 * math.Log10(2*math.Hypot(re, im)/float64(len(pcm))/32767)
}
