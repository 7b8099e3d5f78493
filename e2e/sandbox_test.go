package e2e

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
	"soniq/robot"
)

// testCall is a call of the sandbox to a test number.
type testCall struct {
	number, end string // of the record: see cdr.String
	body        map[string]any
	proof       func(t *testing.T, s *site, r cdr)
}

func TestTestNumbersBehaveAsTheirListSays(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	live := newSite(s)
	sandbox := &site{Client: s.Key(live.Org, "test", "all"), hooks: nil}
	sandbox.hooks = sandbox.Hook(nil)
	talks := func(least time.Duration) func(*testing.T, *site, cdr) {
		return func(t *testing.T, s *site, r cdr) {
			heard := s.audio(s.recording(r.CallID).ID, "").PCM[1]
			if spoken := loud(heard); spoken < least {
				t.Errorf("%s of speech in the recording, want %s", spoken, least)
			}
			s.inOrder(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
		}
	}
	calls := map[string]testCall{
		"talker":  {"+12025550101", "outbound completed callee_hangup callee 0", nil, talks(8 * time.Second)},
		"busy":    {"+12025550102", "outbound busy busy callee 486", nil, nil},
		"nobody":  {"+12025550103", "outbound no_answer no_answer system 480", map[string]any{"ring_timeout_seconds": 6}, nil},
		"rejects": {"+12025550104", "outbound busy rejected callee 603", nil, nil},
		"machine": {"+12025550105", "outbound completed callee_hangup callee 0", nil, func(t *testing.T, s *site, r cdr) {
			if w := s.audio(s.recording(r.CallID).ID, ""); !beeps(w.PCM[1], w.Rate) {
				t.Error("no beep in the recording")
			}
		}},
		"invalid": {"+12025550106", "outbound failed invalid_number callee 404", nil, nil},
		"carrier": {"+12025550107", "outbound failed carrier_error system 503", nil, nil},
		"presses": {"+12025550108", "outbound completed callee_hangup callee 0", map[string]any{"metadata": map[string]string{"digits": "59#"}}, nil},
		"bad line": {"+12025550109", "outbound completed callee_hangup callee 0", nil, func(t *testing.T, s *site, r cdr) {
			if q := s.sounded(r.CallID)[1].Received; q.LossRate < 2 || q.Lost < 10 || q.Jitter < 10 {
				t.Errorf("quality of what came from it: %+v", q)
			}
		}},
		"holds": {"+12025550110", "outbound completed callee_hangup callee 0", nil, func(t *testing.T, _ *site, r cdr) {
			if r.Hold < 3 {
				t.Errorf("%d s on hold", r.Hold)
			}
		}},
	}
	for _, c := range calls {
		sandbox.calls(c)
	}
	t.Run("ends", func(t *testing.T) {
		for name, c := range calls {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				own := sandbox.in(t)
				r := own.record(c.number)
				if r.String() != c.end {
					t.Errorf("record: %s, want %s", r, c.end)
				}
				if c.proof != nil {
					c.proof(t, own, r)
				}
			})
		}
	})
	sandbox.calledFromOutside(t)
	for _, e := range live.hooks.Events() {
		if e.Event != "user.created" {
			t.Errorf("the live organisation was told %s", e.Event)
		}
	}
}

// calls has a user with a telephone call a test number.
func (s *site) calls(c testCall) {
	s.T.Helper()
	user := s.AddUser("User" + c.number[len(c.number)-2:])
	s.telephone(user)
	body := map[string]any{"to": c.number, "user_id": user.ID}
	for k, v := range c.body {
		body[k] = v
	}
	rig.Until(s.T, "a call within the limits", 20*time.Second, func() bool { return s.Do("POST", "/calls", body).Status == 201 })
}

// telephone gives a user a telephone that answers.
func (s *site) telephone(user rig.User) {
	s.T.Helper()
	phone, err := robot.Open(context.Background(), robot.Account{Registrar: s.Server.SIP, Username: user.SIP.Username, Domain: user.SIP.Domain,
		Password: user.SIP.Password}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(phone.Close)
}

// calledFromOutside has somebody call a number of the sandbox and press digits.
func (s *site) calledFromOutside(t *testing.T) {
	user := s.AddUser("Inside")
	s.telephone(user)
	number := s.carrier(user.ID, nil).number
	s.Want(202, "POST", "/sandbox/calls/inbound", map[string]any{"from": "+12025550199", "to": number,
		"script": []map[string]any{{"wait": 1}, {"dtmf": "12#"}, {"wait": 1}, {"hangup": true}}}, nil)
	if r := s.record("+12025550199"); r.String() != "inbound completed caller_hangup caller 0" || r.To != number {
		t.Errorf("record: %s", r)
	}
	s.Want(201, "POST", "/sandbox/sms/inbound", map[string]any{"from": "+12025550199", "to": number, "body": "hello"}, nil)
	s.hooks.Wait("sms.received", 20*time.Second, func(e rig.Event) bool { return e.Data["body"] == "hello" && e.Data["to_number"] == number })
}

// beeps reports whether a fifth of a second is a tone of 1000 Hz.
func beeps(pcm []int16, rate int) bool {
	for part := rate / 5; len(pcm) >= part; pcm = pcm[part/2:] {
		if loud(pcm[:part]) == 0 {
			continue
		}
		if hz, _ := media.Dominant(pcm[:part], rate); hz > 980 && hz < 1020 {
			return true
		}
	}
	return false
}

// loud is how long something is to be heard.
func loud(pcm []int16) time.Duration {
	frames := 0
	for ; len(pcm) >= 160; pcm = pcm[160:] {
		sum := 0
		for _, x := range pcm[:160] {
			sum += max(int(x), -int(x))
		}
		if sum/160 > 300 {
			frames++
		}
	}
	return time.Duration(frames) * 20 * time.Millisecond
}

func TestTelephonesWriteToEachOther(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	office := newSite(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	desk := office.carrier(ada.ID, nil)
	var page struct{ Data []struct{ ID string } }
	office.Want(200, "GET", "/numbers", nil, &page)
	office.Want(200, "PATCH", "/numbers/"+page.Data[0].ID, map[string]any{"sms_enabled": true}, nil)
	one, two := s.Linphone(ada.SIP, rig.LinphoneOptions{}), s.Linphone(bob.SIP, rig.LinphoneOptions{})
	one.Do("chat sip:" + bob.Extension + "@" + s.SIP + " lunch at noon")
	two.Wait("(?i)message.*lunch at noon|lunch at noon")
	office.hooks.Wait("sms.received", 30*time.Second, func(e rig.Event) bool {
		return e.Data["body"] == "lunch at noon" && e.Data["from_number"] == ada.Extension && e.Data["to_number"] == bob.Extension
	})
	var m struct{ ID, Status string }
	office.Want(201, "POST", "/sms", map[string]any{"from": desk.number, "to": "ext:" + bob.Extension, "body": "the door is open"}, &m)
	two.Wait("the door is open")
	rig.Until(t, "delivery", 20*time.Second, func() bool {
		office.Want(200, "GET", "/sms/"+m.ID, nil, &m)
		return m.Status == "delivered"
	})
	office.hooks.Wait("sms.sent", 20*time.Second, func(e rig.Event) bool { return e.Data["message_id"] == m.ID })
	var found struct {
		Results []struct {
			Kind      string
			MessageID string `json:"message_id"`
		}
	}
	office.Want(200, "POST", "/memory/search", map[string]any{"query": "an open door", "kinds": []string{"sms"}}, &found)
	if len(found.Results) == 0 || found.Results[0].MessageID != m.ID || found.Results[0].Kind != "sms" {
		t.Errorf("the search for the message found %+v, want %s", found.Results, m.ID)
	}
	if r := office.Do("POST", "/sms", map[string]any{"from": desk.number, "to": "+14155550100", "body": "x"}); r.Status != 422 ||
		!strings.Contains(string(r.Body), "destination_not_allowed") {
		t.Errorf("to the outside: %d %s", r.Status, r.Body)
	}
}
