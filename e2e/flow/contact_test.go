package flow

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestFlow_ContactLookupAndSMS(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Bob = o.AddUser("Bob")
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
		vip, stranger := o.UploadTone(fixture.GreetingTone, time.Second), o.UploadTone(fixture.AgainTone, time.Second)
		o.Want(200, "PATCH", "/organization", map[string]any{"recording": map[string]any{"mode": "off"}}, nil)
		// the caller has a number of the organisation, to which a message can be sent
		way, own := o.AddCarrier("", nil), o.AddCarrier(o.Bob.ID, nil)
		o.Want(200, "PATCH", "/numbers/"+o.NumberID(way), map[string]any{"sms_enabled": true}, nil)
		o.Want(201, "POST", "/contacts", map[string]any{"first_name": "Vera", "phones": []map[string]any{{"number": own.Number}}, "vip": true,
			"custom": map[string]string{"tier": "gold"}}, nil)
		o.RouteToFlow(way, o.AddFlow(
			fixture.Node("who", "contact_lookup", map[string]any{"timeout_ms": 500, "variable": "them"}, "hit", "vip", "miss", "stranger"),
			fixture.Node("vip", "condition", map[string]any{"expression": `contact.vip && variables.them.tier == "gold" && memory.calls_total < 5`}, "true", "hello", "false", "stranger"),
			fixture.Node("hello", "play", map[string]any{"audio_id": vip}, "done", "text"),
			fixture.Node("text", "sms", map[string]any{"from": way.Number, "body": "Hello {{contact.first_name}}, you called {{caller.called}}."}, "sent", "record", "failed", "bye"),
			fixture.Node("record", "record", map[string]any{"action": "start"}, "done", "bob"),
			fixture.Node("bob", "transfer", map[string]any{"to": "user:" + o.Bob.ID}, "failed", "bye"),
			fixture.Node("stranger", "play", map[string]any{"audio_id": stranger}, "done", "bye"),
			fixture.Node("bye", "hangup", nil)))
		v := o.CallIn(way, own.Number)
		at := v.WaitTone(0, fixture.GreetingTone)
		v.WaitTone(at, fixture.BobTone)
		o.BobPhone.Since(o.BobPhone.Mark(), time.Second)
		v.Line.HangUp()
		r := o.CDR(own.Number)
		if got, steps, _ := o.FlowPath(r.CallID, "who:hit vip:true hello:done text:sent record:done bob:answered"); got != "who:hit vip:true hello:done text:sent record:done bob:answered" {
			t.Errorf("way of the caller: %s %+v", got, steps)
		}
		recording := o.Recording(r.CallID).ID
		fixture.Hears(t, "the recording of the caller", fixture.Narrowband(o.RecordingAudio(recording, "?channel=caller")), fixture.CallerTone, 600*time.Millisecond)
		fixture.Hears(t, "the recording of Bob", fixture.Narrowband(o.RecordingAudio(recording, "?channel=agent")), fixture.BobTone, 600*time.Millisecond)
		var page struct {
			Data []struct {
				To   string `json:"to_number"`
				Body string
			}
		}
		o.Want(200, "GET", "/sms?direction=outbound", nil, &page)
		if len(page.Data) != 1 || page.Data[0].To != own.Number || page.Data[0].Body != "Hello Vera, you called "+way.Number+"." {
			t.Errorf("messages: %+v", page.Data)
		}
		w := o.CallIn(way, "+12125550102")
		w.WaitTone(0, fixture.AgainTone)
		w.WaitEnd()
		if got, _, _ := o.FlowPath(o.CDR("+12125550102").CallID, "who:miss stranger:done bye"); got != "who:miss stranger:done bye" {
			t.Errorf("way of a stranger: %s", got)
		}
	})
}
