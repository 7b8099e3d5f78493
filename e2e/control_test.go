package e2e

import (
	"slices"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// The tones of those who speak in these tests.
const (
	adaTone   = 440
	bobTone   = 1000
	carolTone = 1600
)

// An office is an organisation with people at telephones, each speaking a tone.
type office struct {
	*site
	ada, bob, carol                rig.User
	adaPhone, bobPhone, carolPhone *rig.Phone
}

// newOffice has Ada dial and Bob and Carol answer at once.
func newOffice(s *rig.Server) *office {
	s.T.Helper()
	o := &office{site: newSite(s)}
	o.ada, o.bob, o.carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Auto: true})
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	o.carolPhone = o.phone(o.carol, carolTone, rig.PhoneOptions{Auto: true})
	return o
}

func (o *office) phone(u rig.User, hz float64, p rig.PhoneOptions) *rig.Phone {
	o.T.Helper()
	p.Say, _ = tone(o.T, hz)
	return o.Server.Phone(u.SIP, p)
}

// call connects Ada and Bob and returns the call's path.
func (o *office) call() string {
	o.T.Helper()
	o.adaPhone.Dial(o.bob.Extension)
	o.bobPhone.Wait("CALL_ESTABLISHED", "")
	c := o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
	o.talks("Ada", o.adaPhone, bobTone)
	o.talks("Bob", o.bobPhone, adaTone)
	return "/calls/" + c["id"].(string)
}

// supervised connects Ada and Bob with Carol listening, and returns the paths of the call and of the supervision.
func (o *office) supervised() (path, monitor string) {
	o.T.Helper()
	path = o.call()
	var m struct{ ID string }
	o.Want(201, "POST", path+"/monitor", map[string]any{"user_id": o.carol.ID}, &m)
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.talks("Carol, listening,", o.carolPhone, adaTone, bobTone)
	return path, path + "/monitor/" + m.ID
}

// An ear is a telephone that can be asked what it hears.
type ear interface {
	Mark() int
	Since(mark int, d time.Duration) []int16
}

// moment is how much of a conversation is listened to.
const moment = 1500 * time.Millisecond

// talks fails unless a phone hears these tones from now on, and none of the others.
func (o *office) talks(who string, p ear, tones ...float64) {
	o.T.Helper()
	p.Since(p.Mark(), 600*time.Millisecond) // what was on its way
	pcm := p.Since(p.Mark(), moment)
	for _, hz := range []float64{adaTone, bobTone, carolTone} {
		wanted := false
		for _, want := range tones {
			wanted = wanted || want == hz
		}
		switch heard := presence(pcm, hz); {
		case wanted && heard < moment*2/3:
			o.T.Errorf("%s heard %.0f Hz for %s of %s", who, hz, heard, moment)
		case !wanted && heard > 200*time.Millisecond:
			o.T.Errorf("%s heard %.0f Hz for %s of %s, and should not", who, hz, heard, moment)
		}
	}
}

// music fails unless a phone hears something that is none of the tones. A baresip that was told a=sendonly cannot be asked: it
// writes down nothing from then on.
func (o *office) music(who string, p ear) {
	o.T.Helper()
	o.talks(who, p)
	pcm := p.Since(p.Mark(), moment)
	var sum float64
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	if sum/float64(len(pcm)) < 100*100 {
		o.T.Errorf("%s heard no music, the power is %.0f", who, sum/float64(len(pcm)))
	}
}

func TestACallIsPlacedForAUser(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := newOffice(s)
		var made map[string]any
		o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.bob.Extension, "user_id": o.ada.ID, "reason": "called back",
			"metadata": map[string]string{"order": "7"}}, &made)
		if made["status"] != "queued" && made["status"] != "ringing" {
			t.Errorf("placed call: %v", made)
		}
		o.adaPhone.Wait("CALL_ESTABLISHED", "")
		o.bobPhone.Wait("CALL_ESTABLISHED", "")
		c := o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
		o.talks("Ada", o.adaPhone, bobTone)
		o.talks("Bob", o.bobPhone, adaTone)
		o.bobPhone.Do("hangup", "")
		o.adaPhone.Wait("CALL_CLOSED", "")
		r := o.records(1, "")[0]
		if r.CallID != c["id"] || r.String() != "internal completed agent_hangup agent 0" {
			t.Errorf("record: %+v", r)
		}
		o.inOrder(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
	})
}

func TestWhoIsRungForAPlacedCallIsShown(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	dave := o.AddUser("Dave")
	silent := o.phone(dave, 700, rig.PhoneOptions{})
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + dave.Extension, "user_id": o.ada.ID}, nil)
	silent.Wait("CALL_INCOMING", "")
	o.live(func(c map[string]any) bool {
		return slices.ContainsFunc(c["legs"].([]any), func(l any) bool {
			leg := l.(map[string]any)
			return leg["user_id"] == dave.ID && leg["status"] == "ringing"
		})
	})
	rig.Until(o.T, "Dave seen as called", 20*time.Second, func() bool {
		var seen map[string]any
		o.Want(200, "GET", "/users/"+dave.ID, nil, &seen)
		return seen["presence"].(map[string]any)["status"] == "ringing"
	})
}

func TestABlindTransferByRequest(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	path := o.call()
	o.Want(200, "POST", path+"/transfer", map[string]any{"to": "ext:" + o.carol.Extension}, nil)
	o.bobPhone.Wait("CALL_CLOSED", "")
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.talks("Ada", o.adaPhone, carolTone)
	o.talks("Carol", o.carolPhone, adaTone)
	c := o.live(func(c map[string]any) bool { return c["agent_id"] == o.carol.ID })
	if transfer := c["transfer"].(map[string]any); transfer["status"] != "completed" || c["status"] != "in_progress" {
		t.Errorf("transferred call: %v", c)
	}
	o.adaPhone.Do("hangup", "")
	o.carolPhone.Wait("CALL_CLOSED", "")
	r := o.record(o.ada.Extension)
	if r.String() != "internal completed caller_hangup caller 0" || r.Agent == nil || r.Agent.ID != o.carol.ID {
		t.Errorf("record: %+v", r)
	}
	both := o.audio(o.recording(r.CallID).ID, "").PCM
	hears(t, "the right channel before the transfer", both[1], bobTone, time.Second)
	hears(t, "the right channel after the transfer", both[1], carolTone, time.Second)
}

func TestAFailedTransferGivesTheCallBack(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	dave := o.AddUser("Dave")
	path := o.call()
	o.Want(422, "POST", path+"/transfer", map[string]any{"to": "ext:" + dave.Extension}, nil) // no phone
	o.talks("Ada", o.adaPhone, bobTone)
	silent := o.phone(dave, 700, rig.PhoneOptions{})
	o.Want(200, "POST", path+"/transfer", map[string]any{"to": "ext:" + dave.Extension, "timeout_seconds": 5}, nil)
	silent.Wait("CALL_INCOMING", "")
	c := o.live(func(c map[string]any) bool {
		transfer, _ := c["transfer"].(map[string]any)
		return transfer["status"] == "failed"
	})
	if c["status"] != "in_progress" {
		t.Errorf("call after the transfer: %v", c)
	}
	o.talks("Ada", o.adaPhone, bobTone)
	o.talks("Bob", o.bobPhone, adaTone)
}

func TestAWarmTransferByRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(o *office, path string)
	}{
		{"completed", func(o *office, path string) {
			o.Want(200, "POST", path+"/transfer/complete", map[string]any{}, nil)
			o.Want(200, "POST", path+"/transfer/complete", map[string]any{}, nil)
			o.forbids(path, "transfer/cancel")
			o.bobPhone.Wait("CALL_CLOSED", "")
			o.talks("Ada", o.adaPhone, carolTone)
			o.talks("Carol", o.carolPhone, adaTone)
		}},
		{"canceled", func(o *office, path string) {
			o.Want(200, "POST", path+"/transfer/cancel", map[string]any{}, nil)
			o.Want(200, "POST", path+"/transfer/cancel", map[string]any{}, nil)
			o.forbids(path, "transfer/complete")
			o.carolPhone.Wait("CALL_CLOSED", "")
			o.talks("Ada", o.adaPhone, bobTone)
			o.talks("Bob", o.bobPhone, adaTone)
		}},
		{"joined", func(o *office, path string) {
			o.Want(200, "POST", path+"/transfer/complete", map[string]any{"mode": "conference"}, nil)
			o.talks("Ada", o.adaPhone, bobTone, carolTone)
			o.talks("Bob", o.bobPhone, adaTone, carolTone)
			o.talks("Carol", o.carolPhone, adaTone, bobTone)
		}},
		{"completed by hanging up", func(o *office, path string) {
			o.bobPhone.Do("hangup", "")
			o.talks("Ada", o.adaPhone, carolTone)
			o.talks("Carol", o.carolPhone, adaTone)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
			path := o.call()
			o.Want(200, "POST", path+"/transfer", map[string]any{"to": o.carol.Extension, "mode": "warm"}, nil)
			o.carolPhone.Wait("CALL_ESTABLISHED", "")
			o.live(func(c map[string]any) bool {
				transfer, _ := c["transfer"].(map[string]any)
				return transfer["status"] == "consulting"
			})
			o.music("Ada, waiting,", o.adaPhone)
			o.talks("Bob, consulting,", o.bobPhone, carolTone)
			o.talks("Carol, consulted,", o.carolPhone, bobTone)
			c.do(o, path)
		})
	}
}

func TestAPhoneTransfersBlindly(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	o.call()
	o.bobPhone.Do("transfer", "sip:"+o.carol.Extension+"@"+o.Server.SIP)
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	o.talks("Ada", o.adaPhone, carolTone)
	o.talks("Carol", o.carolPhone, adaTone)
}

func TestASupervisorListensWhispersAndBarges(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	_, monitor := o.supervised()
	o.talks("Ada", o.adaPhone, bobTone)
	o.talks("Bob", o.bobPhone, adaTone)
	o.Want(200, "PATCH", monitor, map[string]any{"mode": "whisper"}, nil)
	o.talks("Bob, whispered to,", o.bobPhone, adaTone, carolTone)
	o.talks("Ada, not whispered to,", o.adaPhone, bobTone)
	o.Want(200, "PATCH", monitor, map[string]any{"mode": "barge"}, nil)
	o.talks("Ada", o.adaPhone, bobTone, carolTone)
	o.talks("Bob", o.bobPhone, adaTone, carolTone)
	o.Want(204, "DELETE", monitor, nil, nil)
	o.carolPhone.Wait("CALL_CLOSED", "")
	o.talks("Ada", o.adaPhone, bobTone)
	o.talks("Bob", o.bobPhone, adaTone)
	o.adaPhone.Do("hangup", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	r := o.record(o.ada.Extension)
	both := o.audio(o.recording(r.CallID).ID, "").PCM
	hearsNot(t, "the left channel", both[0], carolTone, 200*time.Millisecond)
	hearsNot(t, "the right channel", both[1], carolTone, 200*time.Millisecond)
}

func TestAPauseLeavesTheWordsOut(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	path := o.call()
	o.Want(200, "POST", path+"/recording/pause", map[string]any{"reason": "payment"}, nil)
	o.Want(200, "POST", path+"/mute", map[string]any{}, nil) // Bob is silent, so Ada's phone marks the time
	lasts(t, 3*time.Second)
	o.talks("Ada, Bob being mute,", o.adaPhone)
	o.Want(200, "POST", path+"/unmute", map[string]any{}, nil)
	o.Want(200, "POST", path+"/recording/resume", map[string]any{}, nil)
	o.talks("Ada", o.adaPhone, bobTone)
	o.adaPhone.Do("hangup", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	r := o.record(o.ada.Extension)
	rec := o.recording(r.CallID)
	both := o.audio(rec.ID, "").PCM
	least := seconds(len(both[0])) - 3*time.Second
	hears(t, "the left channel", both[0], adaTone, 2*time.Second)
	hearsNot(t, "the left channel, less the pause,", both[0], adaTone, least)
	hearsNot(t, "the right channel, less the pause,", both[1], bobTone, least)
}

func TestARecordingCanHaveOneChannel(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	path := o.call()
	o.Want(200, "POST", path+"/recording/stop", nil, nil)
	o.Want(200, "POST", path+"/recording/start", map[string]any{"channels": 1}, nil)
	o.talks("Ada", o.adaPhone, bobTone)
	o.adaPhone.Do("hangup", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	r := o.record(o.ada.Extension)
	var page struct {
		Data []struct {
			ID, Status string
			Channels   int
		}
	}
	rig.Until(t, "both recordings", 20*time.Second, func() bool {
		o.Want(200, "GET", "/recordings?status=available&call_id="+r.CallID, nil, &page)
		return len(page.Data) == 2
	})
	if page.Data[0].Channels != 1 || page.Data[1].Channels != 2 {
		t.Errorf("recordings %+v, the newest should have one channel", page.Data)
	}
	pcm := o.audio(page.Data[0].ID, "").PCM
	if len(pcm) != 1 {
		t.Fatalf("the file has %d channels", len(pcm))
	}
	for _, hz := range []float64{adaTone, bobTone} {
		if d := presence(pcm[0], hz); d < time.Second {
			t.Errorf("the one channel has %.0f Hz for %s", hz, d)
		}
	}
}

func TestDigitsAreSentByRequest(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	path := o.call()
	var sent struct {
		Digits int `json:"digits_sent"`
		Method string
	}
	o.Want(200, "POST", path+"/dtmf", map[string]any{"digits": "1w5#"}, &sent)
	if sent.Digits != 3 || sent.Method != "rfc4733" {
		t.Errorf("digits: %+v", sent)
	}
	for _, d := range []string{"1", "5", "#"} {
		o.adaPhone.Wait("CALL_DTMF_START", d)
	}
	o.Want(200, "POST", path+"/dtmf", map[string]any{"digits": "9", "method": "inband"}, nil)
	o.Want(200, "POST", path+"/dtmf", map[string]any{"digits": "9", "method": "info"}, nil)
}

func TestAParticipantIsAddedAndLeaves(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	path := o.call()
	var leg struct{ ID string }
	o.Want(201, "POST", path+"/participants", map[string]any{"to": o.carol.Extension}, &leg)
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.talks("Ada", o.adaPhone, bobTone, carolTone)
	o.talks("Carol", o.carolPhone, adaTone, bobTone)
	o.Want(204, "DELETE", path+"/participants/"+leg.ID, nil, nil)
	o.carolPhone.Wait("CALL_CLOSED", "")
	o.talks("Ada", o.adaPhone, bobTone)
	o.talks("Bob", o.bobPhone, adaTone)
}

func TestASupervisorAndAPartyComeAfterTheAnswer(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	path := o.call()
	accepted := func(path string, body map[string]any) string {
		r := o.Do("POST", path, body, "Prefer", "respond-async")
		if x := r.JSON(); r.Status != 202 || x["status"] != "ringing" {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		return r.JSON()["id"].(string)
	}
	m := accepted(path+"/monitor", map[string]any{"user_id": o.carol.ID})
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.talks("Carol, listening,", o.carolPhone, adaTone, bobTone)
	o.Want(200, "PATCH", path+"/monitor/"+m, map[string]any{"mode": "barge"}, nil)
	o.talks("Ada", o.adaPhone, bobTone, carolTone)
	o.Want(204, "DELETE", path+"/monitor/"+m, nil, nil)
	o.carolPhone.Wait("CALL_CLOSED", "")
	leg := accepted(path+"/participants", map[string]any{"to": o.carol.Extension})
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.talks("Carol, added,", o.carolPhone, adaTone, bobTone)
	o.Want(204, "DELETE", path+"/participants/"+leg, nil, nil)
	o.carolPhone.Wait("CALL_CLOSED", "")
	o.talks("Ada", o.adaPhone, bobTone)
}
