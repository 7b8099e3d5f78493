package flow

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestHours_OpenClosedHoliday(t *testing.T) {
	t.Parallel()
	s := fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	open, closed, holiday := s.UploadTone(fixture.GreetingTone, time.Second), s.UploadTone(fixture.AgainTone, 3*time.Second),
		s.UploadTone(fixture.OtherTone, time.Second)
	day := []map[string]string{{"from": "00:00", "to": "24:00"}}
	always := map[string]any{}
	for _, d := range strings.Fields("mon tue wed thu fri sat sun") {
		always[d] = day
	}
	flow := func(zone string, hours map[string]any, holidays ...string) fixture.Carrier {
		return s.AddFlowCarrier(s.PublishFlow(map[string]any{"entry": "hours", "timezone": zone, "nodes": []map[string]any{
			fixture.Node("hours", "hours", map[string]any{"hours": hours, "holidays": holidays}, "open", "open", "closed", "closed", "holiday", "holiday"),
			fixture.Node("open", "play", map[string]any{"audio_id": open}, "done", "bye"),
			fixture.Node("closed", "play", map[string]any{"audio_id": closed}, "done", "bye"),
			fixture.Node("holiday", "play", map[string]any{"audio_id": holiday}, "done", "bye"),
			fixture.Node("bye", "hangup", nil)}}))
	}
	there, _ := time.LoadLocation("Pacific/Kiritimati")
	for from, c := range map[string]struct {
		way  fixture.Carrier
		tone float64
		want string
	}{
		"+12125550101": {flow("", map[string]any{"weekly": always}), fixture.GreetingTone, ""},
		"+12125550102": {flow("", map[string]any{"weekly": map[string]any{}}), fixture.AgainTone, "after_hours"},
		"+12125550103": {flow("Pacific/Kiritimati", map[string]any{"weekly": always}, time.Now().In(there).Format("01-02")), fixture.OtherTone, "after_hours"},
	} {
		v := s.CallIn(c.way, from)
		v.WaitTone(0, c.tone)
		if from == "+12125550102" {
			v.Line.HangUp()
		}
		v.WaitEnd()
		r := s.CDR(from)
		if c.want == "" {
			if r.String() != "inbound completed flow_ended system 0" || r.MissedReason != nil {
				t.Errorf("%s: record %s, missed %v", from, r, r.MissedReason)
			}
		} else if r.MissedReason == nil || *r.MissedReason != c.want || r.Status != "missed" {
			t.Errorf("%s: record %s, missed %v, want %s", from, r, r.MissedReason, c.want)
		}
	}
}
