package mcp_test

import (
	"slices"
	"strings"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/fixture/mcpclient"
	"soniq/e2e/rig"
)

func TestCallTools_PlaceMonitorAndNote(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	place := map[string]any{"to": "ext:" + o.Bob.Extension, "user_id": o.Ada.ID, "reason": "the broken heating"}
	if _, refused := mcpclient.Connect(o.Org, "decline").Call("make_call", place); !strings.Contains(refused, `"declined"`) {
		t.Fatalf("make_call that the person declined: %q", refused)
	}
	a := mcpclient.Connect(o.Org, "accept")
	if calls := a.MustCall("get_live_calls", nil)["calls"].([]any); len(calls) != 0 {
		t.Fatalf("a declined call was placed: %v", calls)
	}
	made := a.MustCall("make_call", place)["call"].(map[string]any)
	again := a.MustCall("make_call", place)["call"].(map[string]any)
	if made["id"] != again["id"] || made["source"] != "mcp" {
		t.Errorf("the same call at once: %v, %v, source %v", made["id"], again["id"], made["source"])
	}
	o.AdaPhone.Wait("CALL_ESTABLISHED", "")
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	seen := a.MustCall("get_live_calls", nil)["calls"].([]any)
	if len(seen) != 1 || seen[0].(map[string]any)["id"] != made["id"] {
		t.Fatalf("live calls: %v", seen)
	}
	id := made["id"].(string)
	a.MustCall("monitor_call", map[string]any{"call_id": id, "user_id": o.Carol.ID})
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	o.HearsOnly("Carol, listening,", o.CarolPhone, fixture.AdaTone, fixture.BobTone)
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
	a.MustCall("add_call_note", map[string]any{"call_id": id, "body": "promised a visit on Tuesday"})
	o.AdaPhone.Do("hangup", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	o.CDR(o.Ada.Extension)
	wantRemembered(t, a, id)
}

// wantRemembered checks the results of the tools for a call that ended.
func wantRemembered(t *testing.T, a *mcpclient.Client, id string) {
	t.Helper()
	if rows := a.MustCall("get_call_history", map[string]any{"limit": 5})["records"].([]any); len(rows) != 1 || rows[0].(map[string]any)["call_id"] != id {
		t.Errorf("history: %v", rows)
	}
	detail := a.MustCall("get_call_detail", map[string]any{"call_id": id})
	var bodies []string
	for _, n := range detail["notes"].([]any) {
		note := n.(map[string]any)
		bodies = append(bodies, note["body"].(string))
		if kind := note["author"].(map[string]any)["type"]; kind != "mcp" {
			t.Errorf("author of %v: %v", note["body"], kind)
		}
	}
	if !slices.Contains(bodies, "promised a visit on Tuesday") || !slices.Contains(bodies, "the broken heating") {
		t.Errorf("notes: %v", bodies)
	}
}
