package e2e

import (
	"fmt"
	"testing"

	"soniq/e2e/rig"
)

// TestWhoACallIsTransferredToIsToldWhoseItIs hands a known caller from Ada to Bob, who is told who calls and by whom, and to Carol,
// of whom that was not wanted.
func TestWhoACallIsTransferredToIsToldWhoseItIs(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	o.Want(201, "POST", "/contacts", map[string]any{"first_name": "Grace", "phones": []map[string]any{{"number": "+12125550178"}}}, nil)
	way := o.carrier(o.ada.ID, nil)
	path := ""
	told := o.stream("", func() {
		far := o.Server.Sipp(rig.Script{Scenario: "call_until_bye", IP: way.ip, From: "+12125550178", Number: way.number})
		o.adaPhone.Wait("CALL_ESTABLISHED", "")
		path = "/calls/" + o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
		to := func(body map[string]any, agent rig.User, p *rig.Phone) {
			o.Want(200, "POST", path+"/transfer", body, nil)
			p.Wait("CALL_ESTABLISHED", "")
			if body["mode"] == "warm" {
				o.Want(200, "POST", path+"/transfer/complete", map[string]any{}, nil)
			}
			o.live(func(c map[string]any) bool { return c["agent_id"] == agent.ID })
		}
		to(map[string]any{"to": "ext:" + o.bob.Extension, "mode": "warm"}, o.bob, o.bobPhone)
		to(map[string]any{"to": "user:" + o.carol.ID, "summary_to_target": false}, o.carol, o.carolPhone)
		to(map[string]any{"to": "user:" + o.bob.ID}, o.bob, o.bobPhone)
		o.Want(200, "POST", path+"/end", map[string]any{}, nil)
		far.Wait()
	}, func(e liveEvent) bool { return e.kind == "call.ended" })
	by := func(u rig.User) string { return fmt.Sprint(map[string]any{"id": u.ID, "name": u.Name}) }
	want := []struct{ user, by string }{{o.ada.ID, fmt.Sprint(nil)}, {o.bob.ID, by(o.ada)}, {o.bob.ID, by(o.carol)}}
	found := pops(told, "+12125550178")
	if len(found) != len(want) {
		t.Fatalf("told %d screen pops, want %d: %v", len(found), len(want), found)
	}
	for i, p := range found {
		contact, _ := p["contact"].(map[string]any)
		if p["user_id"] != want[i].user || "/calls/"+fmt.Sprint(p["call_id"]) != path || contact["name"] != "Grace" || fmt.Sprint(p["transferred_by"]) != want[i].by {
			t.Errorf("screen pop %d tells %v; want it for %s, by %s", i, p, want[i].user, want[i].by)
		}
	}
}
