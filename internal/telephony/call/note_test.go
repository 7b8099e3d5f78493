package call_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/calltest"
)

func TestNotes_AddListDeleteAfterEnd(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		n := o.Begin(call.Inbound)
		o.Must(o.Calls.End(context.Background(), call.Ended{New: n, At: o.At.Add(time.Minute), Outcome: call.Outcome{Reason: "no_answer"}}))
		at := "/calls/" + n.ID
		first := o.Do("POST", at+"/note", map[string]any{"body": "Called back, nobody there.", "pinned": true}).Want(201)
		o.Do("POST", at+"/note", map[string]any{"body": "Second"}).Want(201)
		for name, value := range map[string]any{"call_id": n.ID, "contact_id": nil, "pinned": true, "body": "Called back, nobody there."} {
			calltest.Want(t, first.Body, name, value)
		}
		if first.Text("author.type") != "api_key" || first.Text("author.id") != "key_test" || fmt.Sprint(first.At("crm_sync")) != "[]" {
			t.Errorf("note %s", first.Bytes)
		}
		session := optest.Admin(o.ID)
		session.Kind, session.UserID, session.UserName, session.KeyName = access.BrowserSession, "usr_1", "Dana Reed", "account page"
		written := o.API.Do(session, "POST", at+"/note", map[string]any{"body": "In the browser"}).Want(201)
		if written.Text("author.name") != "Dana Reed" || written.Text("author.type") != "user" {
			t.Errorf("the note of a session %s", written.Bytes)
		}
		o.Do("DELETE", at+"/notes/"+written.Text("id"), nil).Want(204)
		calltest.Want(t, o.Get(n.ID), "notes_count", 2.0)
		page := o.Do("GET", at+"/notes?limit=1", nil).Want(200)
		calltest.Want(t, page.Body, "has_more", true)
		next := o.Do("GET", at+"/notes?limit=1&cursor="+page.Text("next_cursor"), nil).Want(200)
		if page.At("data.0.body") != "Called back, nobody there." || next.At("data.0.body") != "Second" {
			t.Errorf("notes %s %s", page.Bytes, next.Bytes)
		}
		o.Do("DELETE", at+"/notes/"+first.Text("id"), nil).Want(204)
		o.Do("DELETE", at+"/notes/"+first.Text("id"), nil).Want(404)
		calltest.Want(t, o.Get(n.ID), "notes_count", 1.0)
		o.Do("POST", at+"/note", map[string]any{"body": " "}).Refused("validation_failed", "body invalid_length")
		o.Do("POST", at+"/note", map[string]any{"body": strings.Repeat("ä", 10_001)}).Refused("validation_failed", "body invalid_length")
		o.Do("POST", "/calls/call_none/note", map[string]any{"body": "x"}).Want(404)
		stranger := optest.Admin(db.NewID("org"))
		for _, path := range []string{at + "/notes", at + "/events", at + "/quality", at + "/trace"} {
			o.API.Do(stranger, "GET", path, nil).Want(404)
		}
	})
}

func TestTags_CreateFilterRenameRemove(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		n, other := o.Begin(call.Internal), o.Begin(call.Internal)
		at := "/calls/" + n.ID
		o.Do("POST", at+"/tag", map[string]any{"tags": []string{" VIP ", "billing", "vip"}}).Want(200)
		a := o.Do("POST", at+"/tag", map[string]any{"tag": "urgent"}).Want(200)
		if fmt.Sprint(a.At("tags")) != "[vip billing urgent]" {
			t.Fatalf("tags %s", a.Bytes)
		}
		o.Do("POST", "/calls/"+other.ID+"/tag", map[string]any{"tag": "billing"}).Want(200)
		found := func(query string) string {
			t.Helper()
			a := o.Do("GET", "/calls?"+query, nil).Want(200)
			return fmt.Sprintf("%d %v", len(a.Body["data"].([]any)), a.At("data.0.id"))
		}
		if got := found("tag=vip&tag=billing"); got != "1 "+n.ID {
			t.Errorf("calls with both tags: %s", got)
		}
		if got := found("tag=nothing"); got != "0 <nil>" {
			t.Errorf("calls without the tag: %s", got)
		}
		billing := o.Do("GET", "/tags?q=BILL", nil).Want(200)
		calltest.Want(t, billing.At("data.0").(map[string]any), "uses", 2.0)
		id := billing.Text("data.0.id")
		o.Do("PATCH", "/tags/"+id, map[string]any{"name": "vip"}).Want(409).Refused("already_exists")
		o.Do("PATCH", "/tags/"+id, map[string]any{"color": "red", "name": "a,b"}).Refused("validation_failed", "color invalid_value", "name invalid_value")
		changed := o.Do("PATCH", "/tags/"+id, map[string]any{"name": "Invoices 2026", "color": "#ff0000"}).Want(200)
		calltest.Want(t, changed.Body, "name", "invoices 2026")
		if got := fmt.Sprint(o.Get(n.ID)["tags"]); got != "[vip invoices 2026 urgent]" {
			t.Errorf("after the new name: %s", got)
		}
		o.Do("DELETE", at+"/tags/vip", nil).Want(204)
		o.Do("DELETE", at+"/tags/vip", nil).Want(204)
		o.Do("DELETE", "/tags/"+id, nil).Want(204)
		o.Do("DELETE", "/tags/"+id, nil).Want(404)
		if got := fmt.Sprint(o.Get(n.ID)["tags"], o.Get(other.ID)["tags"]); got != "[urgent] []" {
			t.Errorf("after deletion: %s", got)
		}
		made := o.Do("POST", "/tags", map[string]any{"name": "Sales", "description": "for the team"}).Want(201)
		calltest.Want(t, made.Body, "uses", 0.0)
		o.Do("POST", "/tags", map[string]any{"name": "sales"}).Want(409)
		o.API.Do(optest.Admin(db.NewID("org")), "DELETE", "/tags/"+made.Text("id"), nil).Want(404)
		many := make([]string, 20)
		for i := range many {
			many[i] = fmt.Sprint("t", i)
		}
		o.Do("POST", at+"/tag", map[string]any{"tags": many}).Refused("validation_failed", "tags too_many")
		o.Do("POST", at+"/tag", map[string]any{"tag": "a", "tags": []string{"b"}}).Refused("validation_failed", "tag required")
		o.Do("POST", at+"/tag", map[string]any{"tags": []string{"a/b", strings.Repeat("x", 41)}}).
			Refused("validation_failed", "tags[0] invalid_value", "tags[1] invalid_length")
	})
}

func TestTimeline_LiveAndStored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, x := newOrgWithSwitch(t, d)
		p := o.place()
		p.writeAnswer()
		at := time.Now()
		timeline := call.Timeline{Steps: []call.TimelineEntry{{At: at, Kind: "leg.ringing", LegID: "leg_1"}, {At: at.Add(time.Second), Kind: "api.hold", Detail: map[string]any{"key": "key_1"}}},
			Messages: []call.Message{{At: at, Sent: true, Transport: "udp", Local: "192.0.2.1:5060", Remote: "192.0.2.2:5060", Text: "INVITE sip:1 SIP/2.0\r\n\r\n"},
				{At: at, Transport: "ws", Local: "[2001:db8::1]:443", Remote: "[2001:db8::2]:4000", Text: "SIP/2.0 200 OK\r\n\r\n"}}}
		x.Stored = timeline
		kinds := func() string {
			var all []string
			for _, e := range o.Do("GET", "/calls/"+p.ID+"/events", nil).Want(200).Body["data"].([]any) {
				all = append(all, e.(map[string]any)["kind"].(string))
			}
			return strings.Join(all, " ")
		}
		const steps = "event.call.started event.call.answered leg.ringing api.hold"
		if got := kinds(); got != steps {
			t.Errorf("while it runs: %s", got)
		}
		p.Must(p.Calls.End(context.Background(), call.Ended{New: p.New, Revision: 1, State: p.next.Row, At: at,
			AnsweredAt: p.next.Row.AnsweredAt, Outcome: call.Outcome{Reason: "api"}, Recording: "rec_1"}))
		bye := call.Message{At: at.Add(2 * time.Second), Sent: true, Transport: "udp", Local: "192.0.2.1:5060", Remote: "192.0.2.2:5060", Text: "BYE sip:1 SIP/2.0\r\n\r\n"}
		timeline.Messages = append(timeline.Messages, bye)
		nobody := call.CallTimeline{Org: p.testOrg.ID, CallID: db.NewID("call"), Timeline: timeline}
		for range 2 {
			p.Must(p.Calls.WriteTimelines(context.Background(), []call.CallTimeline{nobody,
				{Org: p.testOrg.ID, CallID: p.ID, Timeline: timeline}}))
		}
		x.Stored = call.Timeline{}
		if got := strings.Replace(kinds(), " event.call.ended", "", 1); got != steps {
			t.Errorf("afterwards: %s", got)
		}
		page := o.Do("GET", "/calls/"+p.ID+"/events?limit=2", nil).Want(200)
		next := o.Do("GET", "/calls/"+p.ID+"/events?limit=2&cursor="+page.Text("next_cursor"), nil).Want(200)
		if page.Text("data.1.kind") != "event.call.answered" || next.At("data.1.kind") == nil || page.At("has_more") != true {
			t.Errorf("pages %s %s", page.Bytes, next.Bytes)
		}
		trace := o.Do("GET", "/calls/"+p.ID+"/trace", nil).Want(200)
		if trace.At("messages.0.sent") != true || trace.Text("messages.1.text") != "SIP/2.0 200 OK\r\n\r\n" ||
			trace.Text("messages.2.text") != bye.Text || trace.At("messages.3") != nil {
			t.Errorf("trace %s", trace.Bytes)
		}
		raw := o.Do("GET", "/calls/"+p.ID+"/trace?format=pcap", nil).Want(200).Bytes
		if binary.LittleEndian.Uint32(raw) != 0xa1b2c3d4 || !strings.Contains(string(raw), "INVITE sip:1") {
			t.Errorf("capture %q", raw)
		}
		gone, err := o.Calls.SweepTimelines(context.Background(), time.Now().Add(time.Hour))
		o.Must(err)
		if gone != 1 || len(o.Do("GET", "/calls/"+p.ID+"/trace", nil).Want(200).Body["messages"].([]any)) != 0 {
			t.Errorf("swept %d timelines", gone)
		}
	})
}

func TestQuality_BothDirections(t *testing.T) {
	t.Parallel()
	o := newTestOrg(t, dbtest.SQLite(t))
	p := o.place()
	p.writeAnswer()
	text, err := json.Marshal(call.LegQuality{Received: &call.Quality{MOSAverage: 4.1, MOSMin: 3.2, Packets: 100, Codec: "OPUS"}})
	o.Must(err)
	p.next.Legs[0].Quality = text
	p.writeChange()
	a := o.Do("GET", "/calls/"+p.ID+"/quality", nil).Want(200)
	if a.At("legs.0.received.mos_min") != 3.2 || a.At("legs.0.sent") != nil || a.At("legs.1.received") != nil || fmt.Sprint(a.At("legs.0.received.samples")) != "[]" {
		t.Errorf("quality %s", a.Bytes)
	}
}

// Tags that name an erased number, however it is written, go from all calls. Others stay.
func TestEraseTagsWith_NumberInName(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		at := "/calls/" + o.Begin(call.Internal).ID
		o.Do("POST", at+"/tag", map[string]any{"tags": []string{"vip", "ring +44 (20) 7946-0018", "442079460018"}}).Want(200)
		o.Do("POST", "/tags", map[string]any{"name": "asked", "description": "for +442079460018"}).Want(201)
		erase := func() (n int) {
			o.Must(d.Tx(context.Background(), func(tx db.Querier) (err error) {
				n, err = o.Calls.EraseTagsWith(context.Background(), tx, o.ID, "+442079460018")
				return err
			}))
			return n
		}
		if n := erase(); n != 3 {
			t.Errorf("%d tags have the number", n)
		}
		if n := erase(); n != 0 {
			t.Errorf("%d tags have the number still", n)
		}
		if got := fmt.Sprint(o.Do("GET", at, nil).Want(200).At("tags")); got != "[vip]" {
			t.Errorf("tags of the call %s", got)
		}
		if a := o.Do("GET", "/tags", nil).Want(200); len(a.At("data").([]any)) != 2 || strings.Contains(string(a.Bytes), "7946") || strings.Contains(string(a.Bytes), "442079") {
			t.Errorf("tags %s", a.Bytes)
		}
	})
}
