package e2e

import (
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// A telephone is asked to pick up: it is rung anew, with headers that let it do so by itself. One that waits for a hand is told of, and
// can be picked up afterwards.
func TestACallIsPickedUpByRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		picks bool // while the request waits
	}{{"by itself", true}, {"by hand", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
			o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
			o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
			o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{})
			o.adaPhone.Do("dial", o.bob.Extension)
			o.bobPhone.Wait("CALL_INCOMING", "")
			path := "/calls/" + o.live(nil)["id"].(string)
			answered := make(chan rig.Response, 1)
			go func() { answered <- o.Do("POST", path+"/answer", nil) }()
			o.bobPhone.Wait("CALL_CLOSED", "")
			o.bobPhone.Wait("CALL_INCOMING", "")
			if c.picks {
				o.bobPhone.Do("accept", "")
			}
			r := <-answered
			switch {
			case c.picks && r.Status != 200:
				t.Errorf("the answer to a request that was followed: %d %s", r.Status, r.Body)
			case !c.picks && (r.Status != 504 || !strings.Contains(string(r.Body), "by hand")):
				t.Errorf("the answer to a request that was not followed: %d %s", r.Status, r.Body)
			}
			if !c.picks {
				o.bobPhone.Do("accept", "")
			}
			o.adaPhone.Wait("CALL_ESTABLISHED", "")
			o.talks("Ada", o.adaPhone, bobTone)
			o.talks("Bob", o.bobPhone, adaTone)
			o.adaPhone.Do("hangup", "")
			o.bobPhone.Wait("CALL_CLOSED", "")
			if invite := o.asked(path); !strings.Contains(invite, "answer-after=0") || !strings.Contains(invite, "info=alert-autoanswer") {
				t.Errorf("the telephone was not asked to pick up by itself:\n%s", invite)
			}
		})
	}
}

// asked is the last INVITE that was sent in a call.
func (o *office) asked(path string) (last string) {
	o.T.Helper()
	var trace traced
	o.Want(200, "GET", path+"/trace", nil, &trace)
	for _, m := range trace.Messages {
		if m.Sent && strings.HasPrefix(m.Text, "INVITE ") {
			last = m.Text
		}
	}
	return last
}
