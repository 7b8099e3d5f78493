package flow

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestFlow_CallKeepsVersion(t *testing.T) {
	t.Parallel()
	s := fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	first, old, fresh := s.UploadTone(fixture.GreetingTone, 700*time.Millisecond), s.UploadTone(fixture.AgainTone, time.Second),
		s.UploadTone(fixture.OtherTone, time.Second)
	nodes := func(then string) []map[string]any {
		return []map[string]any{
			fixture.Node("menu", "menu", map[string]any{"prompt": first, "digits": map[string]any{"1": "x"}, "timeout_seconds": 20}, "1", "then", "timeout", "bye", "invalid", "bye"),
			fixture.Node("then", "play", map[string]any{"audio_id": then}, "done", "bye"), fixture.Node("bye", "hangup", nil)}
	}
	f := s.AddFlow(nodes(old)...)
	way := s.AddFlowCarrier(f)
	v := s.CallIn(way, "+12125550101")
	at := v.WaitTone(0, fixture.GreetingTone)
	s.Want(200, "PATCH", "/flows/"+f, map[string]any{"nodes": nodes(fresh), "entry": "menu"}, nil)
	s.Want(200, "POST", "/flows/"+f+"/publish", map[string]any{}, nil)
	w := s.CallIn(way, "+12125550102")
	w.Press("1") // before the prompt has been heard
	w.WaitTone(0, fixture.OtherTone)
	v.Press("1")
	v.WaitTone(at, fixture.AgainTone)
	v.WaitEnd()
	w.WaitEnd()
	for from, version := range map[string]int{"+12125550101": 1, "+12125550102": 2} {
		if r := s.CDR(from); r.FlowVersion == nil || *r.FlowVersion != version {
			t.Errorf("%s: version %v of the flow, want %d", from, r.FlowVersion, version)
		}
	}
}
