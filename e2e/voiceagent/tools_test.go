package voiceagent

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A voice agent looks up the caller, reads the memory, requests the organisation's server, sends a message, schedules
// a callback and takes a message. The test checks the effect of each tool.
func TestTools_LookupMemoryHTTPMessageAndCallback(t *testing.T) {
	t.Parallel()
	e := fixture.NewAIServer(t)
	e.Meanings = map[float64]string{openingHoursTone: "Where is my order?", policeTone: "Call me back.", bobsTone: "I want to leave a message."}
	use := func(name string, arguments map[string]any) ([]string, map[string]any) {
		return nil, map[string]any{"name": name, "arguments": arguments}
	}
	var mu sync.Mutex
	found := map[string]string{}
	e.Reply = func(_ int, in map[string]any) ([]string, map[string]any) {
		all := in["messages"].([]any)
		last := all[len(all)-1].(map[string]any)
		text, _ := last["content"].(string)
		tools := 0
		for i := len(all) - 1; all[i].(map[string]any)["role"] != "user"; i-- {
			if all[i].(map[string]any)["role"] == "tool" {
				tools++
			}
		}
		if last["role"] == "tool" {
			mu.Lock()
			found[fmt.Sprintf("%d", len(found))] = text
			mu.Unlock()
		}
		b, _ := json.Marshal(all)
		switch said := string(b); {
		case strings.Contains(said, "leave a message"):
			return use("take_message", map[string]any{"reason": "about an order"})
		case strings.Contains(said, "Call me back"):
			if tools > 0 {
				return []string{"You are called back, there is parking. "}, nil
			}
			return use("schedule_callback", nil)
		}
		switch tools {
		case 0:
			return use("lookup_contact", nil)
		case 1:
			return use("caller_memory", nil)
		case 2:
			return use("http", map[string]any{"request": "order of Quetzal"})
		case 3:
			return use("send_sms", map[string]any{"text": "Your order is on its way."})
		}
		return []string{"It comes from nine to five. "}, nil
	}
	var asked []string
	system := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked = append(asked, r.Method+" "+string(b))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"order":"it was sent on Monday"}`)
	}))
	t.Cleanup(system.Close)
	s := rig.Start(t, e.LanguageModelOptions(nil))
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada = o.AddUser("Ada")
	queue := o.AddQueue(map[string]any{"wrap_up_seconds": 0}, o.Ada)
	o.Bob = o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	own := o.AddCarrier(o.Bob.ID, nil) // the caller has a number of the organisation, to which a message can be sent
	from := own.Number
	o.Want(201, "POST", "/contacts", map[string]any{"first_name": "Quetzal", "phones": []map[string]any{{"number": from}}}, nil)
	config := map[string]any{"instructions": "Help.", "greeting": "How can I help?", "handoff": "queue:" + queue, "mailbox": o.Ada.ID,
		"tools":      []string{"lookup_contact", "caller_memory", "http", "send_sms", "schedule_callback", "take_message"},
		"http":       map[string]any{"url": system.URL + "/orders", "method": "POST", "body": `{"ask":"{{variables.agent_request}}"}`},
		"http_about": "Knows orders."}
	way := addAgentCarrier(o, config)
	o.Want(200, "PATCH", "/numbers/"+o.NumberID(way), map[string]any{"sms_enabled": true}, nil)

	v := callInSpeaking(o.Org, way, from)
	at := v.waitSilence(v.WaitTone(v.WaitTone(0, fixture.DisclosureTone), fixture.AgentGreetingTone))
	v.say(callerTone(openingHoursTone, time.Second))
	at = v.waitSilence(v.WaitTone(at, fixture.AnswerTone))
	v.say(callerTone(policeTone, time.Second))
	at = v.waitSilence(v.WaitTone(at, fixture.SecondTone))
	v.say(callerTone(bobsTone, time.Second))
	at = v.WaitTone(at, fixture.BeepTone)
	v.say(callerTone(openingHoursTone, 3*time.Second))
	v.Since(at, 4*time.Second)
	v.Line.HangUp()

	r := o.CDR(from)
	_, steps, timeline := o.FlowPath(r.CallID)
	var used []string
	for _, x := range timelineDetails(t, timeline, "ai_agent.tool") {
		used = append(used, fmt.Sprint(x["tool"], " ", x["ok"], " ", x["error"]))
	}
	want := "lookup_contact true <nil>\ncaller_memory true <nil>\nhttp true <nil>\nsend_sms true <nil>\nschedule_callback true <nil>\ntake_message true <nil>"
	if got := strings.Join(used, "\n"); got != want {
		t.Errorf("tools (steps %+v):\n%s", steps, got)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(found["0"], "Quetzal") || !strings.Contains(found["0"], "untrusted_data") || !strings.Contains(found["1"], "calls_total") || !strings.Contains(found["2"], "sent on Monday") {
		t.Errorf("the model was told %v", found)
	}
	if len(asked) != 1 || !strings.HasPrefix(asked[0], "POST ") || !strings.Contains(asked[0], "order of Quetzal") {
		t.Errorf("the server was asked %q", asked)
	}
	var texts struct {
		Data []struct {
			To   string `json:"to_number"`
			From string `json:"from_number"`
			Body string
		}
	}
	o.Want(200, "GET", "/sms?direction=outbound", nil, &texts)
	if len(texts.Data) != 1 || texts.Data[0].To != from || texts.Data[0].From != way.Number ||
		texts.Data[0].Body != "Your order is on its way." {
		t.Errorf("messages: %+v", texts.Data)
	}
	if b := o.Do("GET", "/callbacks", nil).Body; !strings.Contains(string(b), from) || !strings.Contains(string(b), queue) {
		t.Errorf("callbacks: %s", b)
	}
	var left struct{ Data []fixture.VoicemailMessage }
	rig.Until(t, "the message", 30*time.Second, func() bool {
		o.Want(200, "GET", "/voicemail?limit=10", nil, &left)
		return len(left.Data) == 1
	})
	if left.Data[0].CallID != r.CallID || left.Data[0].From != from || left.Data[0].Seconds < 2 {
		t.Errorf("message: %+v", left.Data)
	}
}

// A caller hears that the call is recorded before the agent speaks, and the recording begins afterwards.
func TestVoiceAgent_RecordingIsAnnounced(t *testing.T) {
	t.Parallel()
	e := fixture.NewAIServer(t)
	s := rig.Start(t, e.VoiceOptions())
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Want(200, "PATCH", "/organization", map[string]any{"recording": map[string]any{"mode": "on", "announce": true}}, nil)
	way := addAgentCarrier(o, map[string]any{"instructions": faq, "greeting": "How can I help?"})
	const from = "+12125550101"
	v := callInSpeaking(o.Org, way, from)
	_, first := v.WaitAnyTone(0, fixture.OtherSpeechTone, fixture.DisclosureTone, fixture.AgentGreetingTone)
	if first != fixture.OtherSpeechTone {
		t.Errorf("the caller hears a tone of %.0f Hz first, which is not the notice", first)
	}
	v.WaitTone(0, fixture.AgentGreetingTone)
	v.Line.HangUp()
	pcm := o.RecordingAudio(o.Recording(o.CDR(from).CallID).ID, "").PCM
	for i := range pcm {
		if d := fixture.ToneDuration(pcm[i], fixture.OtherSpeechTone); d > 300*time.Millisecond {
			t.Errorf("channel %d has %s of the notice", i, d)
		}
	}
}
