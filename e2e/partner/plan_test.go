package partner

import (
	"slices"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestPlan_ConcurrentCallsAndNumbers(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	p := newPractice(t, s)
	p.Want(200, "PATCH", "/partners/"+p.child, map[string]any{"limits": map[string]any{"concurrent_calls": 1, "numbers": 1}}, nil)
	p.site.Want(200, "PATCH", "/organization", map[string]any{"outbound": map[string]any{"concurrent_calls": 50}}, nil)
	answers := s.Sipp(rig.Script{Scenario: "answer", IP: p.way.IP, Port: p.way.Port})
	p.phone.Dial("+12125550141")
	p.callRefused("+12125550142", 503)
	p.phone.Do("hangup", "")
	answers.Wait()
	p.callOut("+12125550143")
	r := p.site.Do("POST", "/numbers", map[string]any{"number": "+12025550199", "trunk_id": p.way.Trunk})
	if r.Status != 403 || p.errorCode(r) != "plan_limit" {
		t.Errorf("a second number: %d %s", r.Status, r.Body)
	}
}

func TestPlan_StorageLimit(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	p := newPractice(t, s)
	limit := func(gb int) {
		t.Helper()
		p.Want(200, "PATCH", "/partners/"+p.child, map[string]any{"limits": map[string]any{"storage_gb": gb}}, nil)
	}
	full := func(r rig.Response) {
		t.Helper()
		if body := r.JSON(); r.Status != 403 || body["code"] != "plan_limit" || body["limit"] != "storage_gb" {
			t.Errorf("answered %d %s", r.Status, r.Body)
		}
	}
	limit(0)
	answers := s.Sipp(rig.Script{Scenario: "answer", IP: p.way.IP, Port: p.way.Port})
	p.phone.Dial("+12125550141")
	var live struct {
		Data []struct{ ID string }
	}
	rig.Until(t, "the call", 10*time.Second, func() bool {
		p.site.Want(200, "GET", "/calls?status=in_progress", nil, &live)
		return len(live.Data) == 1
	})
	path := "/calls/" + live.Data[0].ID
	o := fixture.Office{Org: p.site}
	if kinds := o.TimelineSteps(path); !slices.Contains(kinds, "recording.skipped") || slices.Contains(kinds, "recording.started") {
		t.Errorf("the steps of the call: %v", kinds)
	}
	full(p.site.Do("POST", path+"/recording/start", map[string]any{}))
	full(p.site.Do("POST", "/audio", map[string]any{"text": "Hello."}))
	full(p.site.Do("POST", "/cdr/exports", map[string]any{"since": "2026-01-01", "until": "2999-01-01", "format": "csv"}))
	limit(1)
	p.site.Want(200, "POST", path+"/recording/start", map[string]any{}, nil)
	p.phone.Do("hangup", "")
	answers.Wait()
	if r := p.site.CDR("+12125550141"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("the record: %s", r)
	}
	p.site.Recording(live.Data[0].ID) // it was made
}
