package call

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/platform/db"
)

func TestPlacedCall_ForUser(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := fixture.NewOffice(s)
		var made map[string]any
		o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Bob.Extension, "user_id": o.Ada.ID, "reason": "called back",
			"metadata": map[string]string{"order": "7"}}, &made)
		if made["status"] != "queued" && made["status"] != "ringing" {
			t.Errorf("placed call: %v", made)
		}
		o.AdaPhone.Wait("CALL_ESTABLISHED", "")
		o.BobPhone.Wait("CALL_ESTABLISHED", "")
		c := o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
		o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
		o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
		o.BobPhone.Do("hangup", "")
		o.AdaPhone.Wait("CALL_CLOSED", "")
		r := o.CDRs(1, "")[0]
		if r.CallID != c["id"] || r.String() != "internal completed agent_hangup agent 0" {
			t.Errorf("record: %+v", r)
		}
		o.WantEvents(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
	})
}

func TestPlacedCall_RingingLegShown(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	dave := o.AddUser("Dave")
	silent := o.Phone(dave, 700, rig.PhoneOptions{})
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + dave.Extension, "user_id": o.Ada.ID}, nil)
	silent.Wait("CALL_INCOMING", "")
	o.LiveCall(func(c map[string]any) bool {
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

// TestPlacedCall_DatabaseRefusal makes the database refuse the row of a call that is already ringing. The request fails, the phone stops
// ringing, and the call is not visible to others.
func TestPlacedCall_DatabaseRefusal(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Start(t, rig.Options{Env: fixture.NoSpeech, Upset: true}))
	refuseCalls(t, o.Server, "not to be written")
	var problem map[string]any
	o.Want(500, "POST", "/calls", map[string]any{"to": "ext:" + o.Bob.Extension, "user_id": o.Ada.ID,
		"metadata": map[string]string{"order": "not to be written"}}, &problem)
	if problem["code"] != "internal" {
		t.Errorf("problem %v", problem)
	}
	rig.Until(t, "nobody is on a call", 10*time.Second, func() bool {
		var live struct{ Data []map[string]any }
		o.Want(200, "GET", "/calls/live", nil, &live)
		return len(live.Data) == 0
	})
	if all := o.CDRs(0, ""); len(all) != 0 {
		t.Errorf("records of it: %v", all)
	}
	o.ConnectCall() // the telephones are idle, and the next call succeeds
}

// refuseCalls makes the database refuse calls whose metadata contains a text.
func refuseCalls(t *testing.T, s *rig.Server, text string) {
	t.Helper()
	ctx := context.Background()
	d, err := db.Open(ctx, filepath.Join(s.Data, "soniq.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `CREATE TRIGGER refuse BEFORE INSERT ON calls WHEN NEW.metadata LIKE '%`+text+`%' BEGIN SELECT RAISE(ABORT, 'refused'); END`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
