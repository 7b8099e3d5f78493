package call

import (
	"strings"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A request to answer rings the phone again, with the headers for automatic answer (Alert-Info, Call-Info). If the phone
// does not support them, the request fails with that reason, and the user can still answer the call.
func TestPickUp_ByRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		picks bool // while the request waits
	}{{"by itself", true}, {"by hand", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
			o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
			o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
			o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{})
			o.AdaPhone.Do("dial", o.Bob.Extension)
			o.BobPhone.Wait("CALL_INCOMING", "")
			path := "/calls/" + o.LiveCall(nil)["id"].(string)
			answered := make(chan rig.Response, 1)
			go func() { answered <- o.Do("POST", path+"/answer", nil) }()
			o.BobPhone.Wait("CALL_CLOSED", "")
			o.BobPhone.Wait("CALL_INCOMING", "")
			if c.picks {
				o.BobPhone.Do("accept", "")
			}
			r := <-answered
			switch {
			case c.picks && r.Status != 200:
				t.Errorf("the answer to a request that was followed: %d %s", r.Status, r.Body)
			case !c.picks && (r.Status != 504 || !strings.Contains(string(r.Body), "by hand")):
				t.Errorf("the answer to a request that was not followed: %d %s", r.Status, r.Body)
			}
			if !c.picks {
				o.BobPhone.Do("accept", "")
			}
			o.AdaPhone.Wait("CALL_ESTABLISHED", "")
			o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
			o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
			o.AdaPhone.Do("hangup", "")
			o.BobPhone.Wait("CALL_CLOSED", "")
			if invite := lastInvite(o, path); !strings.Contains(invite, "answer-after=0") || !strings.Contains(invite, "info=alert-autoanswer") {
				t.Errorf("the telephone was not asked to pick up by itself:\n%s", invite)
			}
		})
	}
}

// lastInvite returns the last INVITE that was sent in a call.
func lastInvite(o *fixture.Office, path string) (last string) {
	o.T.Helper()
	var trace fixture.Trace
	o.Want(200, "GET", path+"/trace", nil, &trace)
	for _, m := range trace.Messages {
		if m.Sent && strings.HasPrefix(m.Text, "INVITE ") {
			last = m.Text
		}
	}
	return last
}
