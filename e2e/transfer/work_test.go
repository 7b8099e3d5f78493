package transfer

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// work holds the figures of a person.
type work struct {
	Answered int
	Talk     int `json:"talk_seconds"`
}

// TestTransfer_EachHasOwnSeconds proves that after a transfer both people have the call as answered, with their own
// seconds, which together are at most the call's.
//
// https://github.com/asterisk/asterisk/issues/607
func TestTransfer_EachHasOwnSeconds(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	for _, mode := range []string{"blind", "warm"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			o := fixture.NewOffice(s)
			path := o.ConnectCall()
			o.BobPhone.Since(o.BobPhone.Mark(), 2*time.Second)
			o.Want(200, "POST", path+"/transfer", map[string]any{"to": o.Carol.Extension, "mode": mode}, nil)
			o.CarolPhone.Wait("CALL_ESTABLISHED", "")
			if mode == "warm" {
				o.Want(200, "POST", path+"/transfer/complete", map[string]any{}, nil)
			}
			o.BobPhone.Wait("CALL_CLOSED", "")
			o.CarolPhone.Since(o.CarolPhone.Mark(), 3*time.Second)
			o.CarolPhone.Do("hangup", "")
			var c struct {
				Status string
				Talk   int `json:"talk_duration_seconds"`
			}
			rig.Until(t, "the call has ended", 10*time.Second, func() bool {
				o.Want(200, "GET", path, nil, &c)
				return c.Status == "completed"
			})
			var bob, carol work
			o.Want(200, "GET", "/agents/"+o.Bob.ID+"/stats", nil, &bob)
			o.Want(200, "GET", "/agents/"+o.Carol.ID+"/stats", nil, &carol)
			if bob.Answered != 1 || carol.Answered != 1 || bob.Talk < 1 || carol.Talk < 2 || bob.Talk+carol.Talk > c.Talk {
				t.Errorf("Bob %+v, Carol %+v, the call %d s", bob, carol, c.Talk)
			}
			var r struct {
				Data []struct {
					ID      string `json:"agent_id"`
					Handled int
					Talk    int `json:"talk_seconds"`
				}
			}
			o.Want(200, "GET", "/analytics/agents", nil, &r)
			for _, a := range r.Data {
				if want := map[string]work{o.Bob.ID: bob, o.Carol.ID: carol}[a.ID]; a.Handled != want.Answered || a.Talk != want.Talk {
					t.Errorf("analytics %+v, statistics %+v", a, want)
				}
			}
			if len(r.Data) != 2 {
				t.Errorf("analytics %+v", r.Data)
			}
		})
	}
}
