package call

import (
	"slices"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// Tags and notes can be added during and after a call. They are visible at once and stay with the record.
func TestTagsAndNotes_DuringAndAfterCall(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		rings := make(chan *fixture.IncomingCall, 1)
		ada, bob := o.AddHandset("Ada", nil), o.AddHandset("Bob", rings)
		call := ada.Dial(bob.User.Extension)
		(<-rings).Answer()
		call.WaitAnswered()
		path := "/calls/" + o.LiveCall(nil)["id"].(string)
		tagged := func(body map[string]any, want ...string) {
			t.Helper()
			var got struct{ Tags []string }
			o.Want(200, "POST", path+"/tag", body, &got)
			slices.Sort(got.Tags)
			if !slices.Equal(got.Tags, want) {
				t.Errorf("%v: the call has tags %q, want %q", body, got.Tags, want)
			}
		}
		tagged(map[string]any{"tag": "VIP"}, "vip")
		tagged(map[string]any{"tags": []string{"billing", "vip"}}, "billing", "vip")
		o.Want(422, "POST", path+"/tag", map[string]any{"tags": []string{""}}, nil)
		o.Want(201, "POST", path+"/note", map[string]any{"body": "wants the invoice again"}, nil)
		if live := o.LiveCall(nil); !slices.Contains(live["tags"].([]any), any("billing")) {
			t.Errorf("the call in progress has tags %v", live["tags"])
		}
		call.HangUp()
		r := o.CDR(ada.User.Extension)
		tagged(map[string]any{"tag": "paid"}, "billing", "paid", "vip")
		o.Want(201, "POST", path+"/note", map[string]any{"body": "was paid"}, nil)
		var record struct{ Tags []string }
		o.Want(200, "GET", "/cdr/"+r.ID, nil, &record)
		if slices.Sort(record.Tags); !slices.Equal(record.Tags, []string{"billing", "paid", "vip"}) {
			t.Errorf("the record has tags %q", record.Tags)
		}
		var kept struct{ Notes []struct{ Body string } }
		o.Want(200, "GET", path+"?expand=notes", nil, &kept)
		for _, body := range []string{"wants the invoice again", "was paid"} {
			if !slices.Contains(kept.Notes, struct{ Body string }{body}) {
				t.Errorf("the call has notes %v", kept.Notes)
			}
		}
	})
}
