package sandbox

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/sandbox/softphone"
)

// testCall is a call of the sandbox to a test number.
type testCall struct {
	number, end string // of the record: see cdr.String
	body        map[string]any
	proof       func(t *testing.T, s *fixture.Org, r fixture.CDR)
}

func TestTestNumbers_BehaveAsListed(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 75*time.Second, "one of the numbers rings for 30 s")
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	live := fixture.NewOrg(s)
	sandbox := &fixture.Org{Client: s.Key(live.Org, "test", "all"), Webhook: nil}
	sandbox.Webhook = sandbox.Hook(nil)
	talks := func(least time.Duration) func(*testing.T, *fixture.Org, fixture.CDR) {
		return func(t *testing.T, s *fixture.Org, r fixture.CDR) {
			heard := s.RecordingAudio(s.Recording(r.CallID).ID, "").PCM[1]
			if spoken := speechDuration(heard); spoken < least {
				t.Errorf("%s of speech in the recording, want %s", spoken, least)
			}
			s.WantEvents(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
		}
	}
	calls := map[string]testCall{
		"talker":  {"+12025550101", "outbound completed callee_hangup callee 0", nil, talks(8 * time.Second)},
		"busy":    {"+12025550102", "outbound busy busy callee 486", nil, nil},
		"nobody":  {"+12025550103", "outbound no_answer no_answer system 480", map[string]any{"ring_timeout_seconds": 6}, nil},
		"rejects": {"+12025550104", "outbound busy rejected callee 603", nil, nil},
		"machine": {"+12025550105", "outbound completed callee_hangup callee 0", nil, func(t *testing.T, s *fixture.Org, r fixture.CDR) {
			if w := s.RecordingAudio(s.Recording(r.CallID).ID, ""); !hasBeep(w.PCM[1], w.Rate) {
				t.Error("no beep in the recording")
			}
		}},
		"invalid": {"+12025550106", "outbound failed invalid_number callee 404", nil, nil},
		"carrier": {"+12025550107", "outbound failed carrier_error system 503", nil, nil},
		"presses": {"+12025550108", "outbound completed callee_hangup callee 0", map[string]any{"metadata": map[string]string{"digits": "59#"}}, nil},
		"bad line": {"+12025550109", "outbound completed callee_hangup callee 0", nil, func(t *testing.T, s *fixture.Org, r fixture.CDR) {
			if q := s.LegQualities(r.CallID)[1].Received; q.LossRate < 2 || q.Lost < 10 || q.Jitter < 10 {
				t.Errorf("quality of what came from it: %+v", q)
			}
		}},
		"holds": {"+12025550110", "outbound completed callee_hangup callee 0", nil, func(t *testing.T, _ *fixture.Org, r fixture.CDR) {
			if r.Hold < 3 {
				t.Errorf("%d s on hold", r.Hold)
			}
		}},
	}
	for _, c := range calls {
		callTestNumber(sandbox, c)
	}
	t.Run("ends", func(t *testing.T) {
		for name, c := range calls {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				own := sandbox.In(t)
				r := own.CDR(c.number)
				if r.String() != c.end {
					t.Errorf("record: %s, want %s", r, c.end)
				}
				if c.proof != nil {
					c.proof(t, own, r)
				}
			})
		}
	})
	wantInboundCall(sandbox, t)
	for _, e := range live.Webhook.Events() {
		if e.Event != "user.created" {
			t.Errorf("the live organisation was told %s", e.Event)
		}
	}
}

// callTestNumber makes a user with a telephone call a test number.
func callTestNumber(s *fixture.Org, c testCall) {
	s.T.Helper()
	user := s.AddUser("User" + c.number[len(c.number)-2:])
	addAnsweringPhone(s, user)
	body := map[string]any{"to": c.number, "user_id": user.ID}
	for k, v := range c.body {
		body[k] = v
	}
	rig.Until(s.T, "a call within the limits", 20*time.Second, func() bool { return s.Do("POST", "/calls", body).Status == 201 })
}

// addAnsweringPhone gives a user a telephone that answers.
func addAnsweringPhone(s *fixture.Org, user rig.User) {
	s.T.Helper()
	phone, err := softphone.Open(context.Background(), softphone.Account{Registrar: s.Server.SIP, Username: user.SIP.Username,
		Domain: user.SIP.Domain, Password: user.SIP.Password}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(phone.Close)
}

// wantInboundCall simulates an inbound call to a number of the sandbox that presses digits.
func wantInboundCall(s *fixture.Org, t *testing.T) {
	user := s.AddUser("Inside")
	addAnsweringPhone(s, user)
	number := s.AddCarrier(user.ID, nil).Number
	s.Want(202, "POST", "/sandbox/calls/inbound", map[string]any{"from": "+12025550199", "to": number,
		"script": []map[string]any{{"wait": 1}, {"dtmf": "12#"}, {"wait": 1}, {"hangup": true}}}, nil)
	if r := s.CDR("+12025550199"); r.String() != "inbound completed caller_hangup caller 0" || r.To != number {
		t.Errorf("record: %s", r)
	}
	s.Want(201, "POST", "/sandbox/sms/inbound", map[string]any{"from": "+12025550199", "to": number, "body": "hello"}, nil)
	s.Webhook.Wait("sms.received", 20*time.Second, func(e rig.Event) bool { return e.Data["body"] == "hello" && e.Data["to_number"] == number })
}

// hasBeep reports whether a fifth of a second is a tone of 1000 Hz.
func hasBeep(pcm []int16, rate int) bool {
	for part := rate / 5; len(pcm) >= part; pcm = pcm[part/2:] {
		if speechDuration(pcm[:part]) == 0 {
			continue
		}
		if hz, _ := dsp.DominantFrequency(pcm[:part], rate); hz > 980 && hz < 1020 {
			return true
		}
	}
	return false
}

// speechDuration returns how long something is heard.
func speechDuration(pcm []int16) time.Duration {
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
