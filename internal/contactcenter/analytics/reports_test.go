package analytics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

func (o *fixture) get(path string, header ...string) *optest.Answer {
	o.t.Helper()
	return o.api.Do(optest.Admin("org_a"), "GET", path, nil, header...).Want(200)
}

// addInsight stores the analysis of a call.
func (o *fixture) addInsight(n int, phone, sentiment, outcome, topics string) {
	o.t.Helper()
	o.exec(`INSERT INTO memory_calls (org_id, call_id, phone, at, direction, status, talk_seconds, tags, summary, outcome, sentiment,
		topics, action_items)
		VALUES ('org_a', $1, $2, 0, 'inbound', 'completed', 1, '[]', '', $3, $4, $5, '[]')`,
		fmt.Sprintf("call_%06d", n), phone, outcome, db.Null(sentiment), topics)
}

func TestInsights_TopicsSentimentAndRepeatCallers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newFixture(t, d)
		for i, c := range []struct{ phone, sentiment, outcome, topics, queue string }{
			{"+12025550101", "negative", "unresolved", `["billing","refund"]`, "que_1"}, {"+12025550101", "positive", "resolved", `["billing"]`, "que_1"},
			{"+12025550102", "neutral", "follow_up", `["delivery"]`, "que_2"}, {"+12025550103", "", "", `[]`, ""},
		} {
			o.add(pastCall{at: now.Add(-time.Duration(i+1) * time.Hour), direction: "inbound", queue: c.queue, other: c.phone,
				answered: true})
			o.addInsight(o.n, c.phone, c.sentiment, c.outcome, c.topics)
		}
		o.add(pastCall{at: now.Add(-time.Hour), direction: "inbound", other: "+12025550109"}) // a call without analysis
		o.add(pastCall{at: now.AddDate(-1, 0, 0), direction: "inbound", other: "+12025550109"})
		o.addInsight(o.n, "+12025550109", "mixed", "resolved", `["old"]`)
		a := o.get("/analytics/insights?group_by=queue_id")
		for path, want := range map[string]any{"totals.calls": 4.0, "totals.positive": 1.0, "totals.negative_rate": 33.0, "totals.resolved_rate": 33.0,
			"totals.unique_callers": 3.0, "totals.repeat_callers": 1.0, "topics.0.topic": "billing", "topics.0.calls": 2.0, "topics.0.negative": 1.0,
			"repeat_callers.0.phone": "+12025550101", "repeat_callers.0.calls": 2.0, "repeat_callers.0.unresolved": 1.0, "repeat_callers.1": nil,
			"groups.0.by.queue_id": "que_1", "groups.0.calls": 2.0, "groups.1.follow_up": 1.0, "groups.2": nil} {
			if got := a.At(path); got != want {
				t.Errorf("%s is %v, want %v", path, got, want)
			}
		}
		if a := o.get("/analytics/insights?queue_id=que_2"); a.At("totals.calls") != 1.0 || a.Text("topics.0.topic") != "delivery" {
			t.Errorf("of a queue: %s", a.Bytes)
		}
		csv := string(o.get("/analytics/insights?group_by=queue_id", "Accept: text/csv").Bytes)
		if !strings.HasPrefix(csv, "queue_id,calls,positive,") || !strings.Contains(csv, "\r\nque_1,2,1,0,1,") || strings.Count(csv, "\r\n") != 3 {
			t.Errorf("table\n%s", csv)
		}
		p := optest.Admin("org_a")
		p.Scopes = []access.Scope{access.CallsRead}
		o.api.Do(p, "GET", "/analytics/insights", nil).Want(403)
		if a := o.api.Do(optest.Admin("org_a"), "GET", "/analytics/insights?since=2026-11-21&interval=hour", nil).Want(200); a.At("series.11.calls") != 1.0 || a.At("series.12.calls") != 0.0 {
			t.Errorf("by the hour: %s", a.Bytes)
		}
	})
}

func TestQuality_GroupedByTrunkAndDevice(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newFixture(t, d)
		leg := func(trunk, device, quality string) {
			o.add(pastCall{at: now.Add(-time.Hour), direction: "outbound", other: "+12025550101", answered: true})
			o.exec(`INSERT INTO legs (org_id, id, call_id, role, trunk_id, device_id, number, status, sip_call_id, started_at, quality)
				VALUES ('org_a', $1, $2, 'callee', $3, $4, '1', 'ended', 'x', 0, $5)`,
				fmt.Sprintf("leg_%d", o.n), fmt.Sprintf("call_%06d", o.n), db.Null(trunk), db.Null(device), db.Null(quality))
		}
		const good, bad = `{"mos_min":4.1,"mos_average":4.3,"packets":900,"lost":100,"jitter_ms_average":2,"jitter_ms_max":9,"rtt_ms":20,"codec":"PCMU","post_dial_delay_ms":400}`,
			`{"mos_min":1.5,"mos_average":3.1,"packets":1000,"lost":0,"jitter_ms_average":4,"jitter_ms_max":30,"rtt_ms":0,"codec":"PCMU","post_dial_delay_ms":400,"one_way_audio":true}`
		leg("trk_1", "", `{"received":`+good+`,"sent":`+bad+`}`)
		leg("", "dev_1", `{"received":`+strings.Replace(good, "400", "800", 1)+`,"sent":null}`)
		leg("", "dev_1", "")
		leg("", "dev_1", `{"received":null,"sent":null}`)
		a := o.get("/analytics/quality?group_by=trunk_id")
		for path, want := range map[string]any{"totals.legs": 2.0, "totals.mos_average": 3.9, "totals.mos_min": 1.5, "totals.poor_legs": 1.0, "totals.poor_rate": 50.0,
			"totals.packets": 2800.0, "totals.lost": 200.0, "totals.loss_rate": 6.67, "totals.jitter_ms_average": 2.67, "totals.jitter_ms_max": 30.0, "totals.rtt_ms_average": 20.0,
			"totals.post_dial_delay_ms_average": 600.0, "totals.post_dial_delay_ms_max": 800.0, "totals.one_way_audio_legs": 1.0,
			"groups.0.by.trunk_id": "trk_1", "groups.0.mos_average": 3.7, "groups.1": nil} {
			if got := a.At(path); got != want {
				t.Errorf("%s is %v, want %v", path, got, want)
			}
		}
		if csv := string(o.get("/analytics/quality?group_by=device_id,codec", "Accept: text/csv").Bytes); !strings.Contains(csv, "\r\ndev_1,PCMU,1,4.3,4.1,0,") {
			t.Errorf("table\n%s", csv)
		}
		if a := o.get("/analytics/quality?direction=inbound"); a.At("totals.legs") != 0.0 || a.At("totals.mos_average") != nil || a.At("totals.loss_rate") != nil {
			t.Errorf("of nothing: %s", a.Bytes)
		}
	})
}

func TestMessages_CountedWithReplies(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newFixture(t, d)
		for i, thread := range []string{"thr_1", "thr_2", "thr_3"} {
			o.exec(`INSERT INTO conversations (org_id, id, number_id, org_number, peer_number, status, unread_count, tags, last_message,
				last_message_at, created_at, updated_at)
				VALUES ('org_a', $1, $2, '+1', $1, 'open', 0, $3, '{}', 0, 0, 0)`, thread, fmt.Sprintf("num_%d", i%2), []string{`["vip"]`, `[]`, `["vips"]`}[i])
		}
		n := 0
		message := func(thread, direction, status, user string, ago time.Duration) {
			n++
			var sent db.Time
			if direction == "outbound" && status != "scheduled" && status != "failed" {
				sent = db.At(now.Add(-ago))
			}
			o.exec(`INSERT INTO messages (org_id, id, conversation_id, direction, status, from_number, to_number, body, segments, encoding,
				media, source, created_at, sent_at, metadata, sandbox, carrier, automatic, user_id)
				VALUES ('org_a', $1, $2, $3, $4, '+1', '+2', 'x', 2, 'gsm7', '[]', 'api', $5, $6, '{}', FALSE, 'c', FALSE, $7)`,
				fmt.Sprintf("sms_%d", n), thread, direction, status, db.At(now.Add(-ago)), sent, db.Null(user))
		}
		message("thr_1", "inbound", "received", "", 50*time.Hour)
		message("thr_1", "outbound", "delivered", "usr_1", 49*time.Hour)
		message("thr_1", "outbound", "delivered", "usr_1", 48*time.Hour)
		message("thr_1", "inbound", "received", "", 2*time.Hour)
		message("thr_2", "outbound", "undelivered", "usr_2", 3*time.Hour)
		message("thr_3", "outbound", "failed", "", 3*time.Hour)
		message("thr_3", "outbound", "scheduled", "", time.Hour)
		a := o.get("/analytics/sms?group_by=agent_id&since=2026-11-19")
		for path, want := range map[string]any{"totals.total": 7.0, "totals.inbound": 2.0, "totals.outbound": 5.0, "totals.segments": 14.0, "totals.sent": 3.0,
			"totals.delivered": 2.0, "totals.failed": 2.0, "totals.pending": 1.0, "totals.delivery_rate": 50.0, "totals.conversations": 3.0,
			"totals.written_conversations": 2.0, "totals.replied_conversations": 1.0, "totals.reply_rate": 50.0, "groups.0.by.agent_id": "usr_1",
			"groups.0.reply_rate": 100.0, "groups.1.reply_rate": 0.0, "series.0.replied_conversations": 1.0, "series.2.inbound": 1.0} {
			if got := a.At(path); got != want {
				t.Errorf("%s is %v, want %v", path, got, want)
			}
		}
		for query, want := range map[string]float64{"direction=outbound": 5, "number_id=num_1": 1, "agent_id=usr_1": 2, "tag=vip": 4, "tag=vip,vips": 0, "queue_id=que_1": 0} {
			if a := o.get("/analytics/sms?" + query); a.At("totals.total") != want {
				t.Errorf("%s: %v, want %v", query, a.At("totals.total"), want)
			}
		}
		if a := o.get("/analytics/sms?direction=outbound&agent_id=usr_1"); a.At("totals.reply_rate") != 100.0 {
			t.Errorf("a reply is one although it is not counted: %s", a.Bytes)
		}
		if csv := string(o.get("/analytics/sms?group_by=agent_id", "Accept: text/csv").Bytes); !strings.Contains(csv, "\r\nusr_1,2,0,2,4,2,2,0,") {
			t.Errorf("table\n%s", csv)
		}
	})
}

// The figures of a queue are those of its callers: a short abandon and the call that is placed for a callback count for
// nothing. The queue has its name.
func TestQueues_SameDefinitionsAsStats(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newFixture(t, d)
		o.exec(`INSERT INTO queues (org_id, id, name, settings, created_at, updated_at)
			VALUES ('org_a', 'que_1', 'Support', '{"short_abandon_seconds":5,"service_level_seconds":20}', 0, 0)`)
		for i, e := range []struct {
			status           string
			connected, exits time.Duration
			callback         any
		}{{"completed", 10 * time.Second, 30 * time.Second, nil}, {"abandoned", 0, 3 * time.Second, nil}, {"abandoned", 0, 40 * time.Second, nil},
			{"completed", 60 * time.Second, 90 * time.Second, `{"status":"completed"}`}, {"overflowed", 0, time.Minute, nil}} {
			at := now.Add(-time.Hour)
			o.add(pastCall{at: at, direction: "inbound", queue: "que_1", answered: e.connected > 0, other: "+12025550001", talk: 20})
			var connected, talk any
			if e.connected > 0 {
				connected, talk = db.At(at.Add(e.connected)), 20
			}
			o.exec(`INSERT INTO queue_entries (org_id, id, queue_id, call_id, status, priority, place, from_number, skills, entered_at,
					offers, connected_at, exited_at, talk_seconds, callback, node, lease_until)
				VALUES ('org_a', $1, 'que_1', $2, $3, 0, 0, '+12025550001', '{}', $4, 1, $5, $6, $7, $8, 'n', 0)`, fmt.Sprintf("qen_%d", i),
				fmt.Sprintf("call_%06d", o.n), e.status, db.At(at), connected, db.At(at.Add(e.exits)), talk, e.callback)
		}
		o.add(pastCall{at: now.Add(-time.Minute), direction: "outbound", queue: "que_1", answered: true, other: "+12025550001", talk: 20})
		for _, filter := range []string{"", "&queue_id=que_1", "&direction=inbound"} {
			a := o.get("/analytics/queues?since=2026-11-21" + filter)
			for path, want := range map[string]any{"data.0.queue_id": "que_1", "data.0.name": "Support", "data.0.offered": 5.0, "data.0.answered": 2.0,
				"data.0.abandoned": 1.0, "data.0.missed": 2.0, "data.0.answer_rate": 67.0, "data.0.service_level_rate": 33.0,
				"data.0.average_wait_seconds": 35.0, "data.0.average_talk_seconds": 20.0, "data.1": nil} {
				if got := a.At(path); got != want {
					t.Errorf("%q: %s is %v, want %v", filter, path, got, want)
				}
			}
		}
		if a := o.get("/analytics/queues?since=2026-11-21&direction=outbound"); a.At("data.0") != nil {
			t.Errorf("the call of a callback is a caller: %s", a.Bytes)
		}
	})
}
