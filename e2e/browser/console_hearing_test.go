package browser

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// browserTone is the frequency that the microphone of the browser plays. The music on hold does not have it.
const browserTone = fixture.AdaTone

// hearingScript lets a test measure what the page plays to the person: the audio of elements that play, not of tracks that merely
// arrive. It turns off the echo canceller and the noise filter, which suppress a steady tone of the microphone.
const hearingScript = `(() => {
	const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
	navigator.mediaDevices.getUserMedia = (wanted) => ask({...wanted,
		audio: {echoCancellation: false, noiseSuppression: false, autoGainControl: false}});
	const playing = new Set(), analysers = new Map(), play = HTMLMediaElement.prototype.play, connections = [];
	HTMLMediaElement.prototype.play = function() { playing.add(this); return play.call(this); };
	const Connection = window.RTCPeerConnection;
	window.RTCPeerConnection = class extends Connection { constructor(...all) { super(...all); connections.push(this); } };
	window.connections = connections;
	let context;
	window.levels = async (tones) => {
		context ??= new AudioContext();
		await context.resume();
		const found = tones.map(() => -200);
		for (const audio of playing) {
			if (audio.paused || audio.muted || !audio.srcObject) continue;
			let analyser = analysers.get(audio.srcObject);
			if (!analyser) {
				analyser = context.createAnalyser();
				analyser.fftSize = 8192;
				analyser.smoothingTimeConstant = 0;
				context.createMediaStreamSource(audio.srcObject).connect(analyser);
				analysers.set(audio.srcObject, analyser);
				await new Promise((done) => setTimeout(done, 300));
			}
			const bins = new Float32Array(analyser.frequencyBinCount);
			analyser.getFloatFrequencyData(bins);
			tones.forEach((hz, i) => { found[i] = Math.max(found[i], bins[Math.round(hz * analyser.fftSize / context.sampleRate)]); });
		}
		return found.map((level) => Number.isFinite(level) ? level : -200);
	};
})()`

// listenToPage lets hearsOnly measure what this and later pages of the tab play.
func (p *consolePage) listenToPage(path string) {
	p.t.Helper()
	if r, err := p.command("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": hearingScript}); err != nil || r.Error != nil {
		p.t.Fatal(err, r.Error)
	}
	p.goTo(path)
}

// heardTones are the tones that parties of calls with a browser send.
var heardTones = []float64{fixture.CallerTone, fixture.BobTone, fixture.CarolTone, browserTone}

// hearsOnly waits until the person at the browser hears these tones of heardTones, and no other.
func (p *consolePage) hearsOnly(when string, tones ...float64) {
	p.t.Helper()
	var levels []float64
	defer func() {
		if p.t.Failed() {
			p.t.Logf("%s: the browser hears %v at %.0f dB", when, heardTones, levels)
		}
	}()
	until(p.t, fmt.Sprintf("%v Hz alone at the browser, %s", tones, when), pageTime, func() bool {
		if p.try(&levels, fmt.Sprintf("levels([%s])", join(heardTones))) != nil || len(levels) != len(heardTones) {
			return false
		}
		for i, hz := range heardTones {
			if slices.Contains(tones, hz) != (levels[i] > -60) {
				return false
			}
		}
		return true
	})
}

func join(all []float64) (text string) {
	for i, f := range all {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(f)
	}
	return text
}

// waitTone waits until a listener has heard a tone for 0.2 of 0.6 seconds.
func waitTone(t testing.TB, who string, p fixture.Listener, hz float64) {
	t.Helper()
	rig.Until(t, fmt.Sprintf("%s hears %.0f Hz", who, hz), 30*time.Second, func() bool {
		return fixture.ToneDuration(p.Since(p.Mark(), 600*time.Millisecond), hz) >= 200*time.Millisecond
	})
}

// hearsNot fails if a listener hears a tone in the next seconds. The first second may still be on its way.
func hearsNot(t testing.TB, who string, p fixture.Listener, hz float64) {
	t.Helper()
	pcm := p.Since(p.Mark(), 3*time.Second)
	if d := fixture.ToneDuration(pcm[len(pcm)/3:], hz); d > 200*time.Millisecond {
		t.Errorf("%s hears %.0f Hz for %s of two seconds", who, hz, d)
	}
}

// deskWithPhone opens the desk of an agent, turns the telephone on, and returns a number that rings it.
func deskWithPhone(office *fixture.Org) (p *consolePage, user rig.User, way fixture.Carrier) {
	p, user = openConsole(office, "agent", "/console/desk", fmt.Sprint(browserTone))
	p.listenToPage("/console/desk")
	p.click("button", "Turn on the phone")
	p.has("button", "Phone ready")
	office.SetPresence(user, "available")
	return p, user, office.AddCarrier(user.ID, nil)
}

// callBrowser calls the number of the person at the browser, who answers.
func (p *consolePage) callBrowser(office *fixture.Org, way fixture.Carrier, answer string) *fixture.Caller {
	p.t.Helper()
	type result struct {
		caller *fixture.Caller
		err    error
	}
	called := make(chan result, 1)
	go func() {
		v, err := office.TryCallIn(way, "+12125550101")
		called <- result{v, err}
	}()
	p.has("region", "Incoming call")
	p.click("button", answer)
	got := <-called
	if got.err != nil {
		p.t.Fatal(got.err)
	}
	p.has("button", "Mute")
	return got.caller
}

// The page plays the caller's audio, no audio while the call is on hold, and the caller's audio again.
func TestConsole_HearsCaller(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "a browser takes a call, and each state is heard for some seconds")
	office := newOffice(t)
	p, _, way := deskWithPhone(office)
	caller := p.callBrowser(office, way, "Answer")
	p.hearsOnly("in the call", fixture.CallerTone)
	waitTone(t, "the caller", caller, browserTone)
	p.click("button", "Hold")
	p.has("button", "Resume")
	p.hearsOnly("on hold")
	p.click("button", "Resume")
	p.has("button", "Hold")
	p.hearsOnly("after the hold", fixture.CallerTone)
	p.click("button", "Hang up")
	caller.WaitEnd()
	p.faultless()
}
