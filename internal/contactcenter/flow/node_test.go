package flow

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"soniq/internal/platform/strictjson"
)

// fullConfigs has a config with every member, by type.
var fullConfigs = map[string]string{
	"play":       `{"text":"Hi","audio_id":"aud_1","voice":"v","lang":"en","interrupt":true}`,
	"menu":       `{"prompt":{"text":"Hi","audio_id":"aud_1","voice":"v","lang":"en"},"digits":{"1":"a"},"speech":true,"timeout_seconds":9,"retries":3}`,
	"collect":    `{"prompt":{"text":"Hi"},"min":2,"max":4,"terminator":"*","variable":"n","mask":true,"timeout_seconds":9}`,
	"hours":      `{"hours":{"timezone":"Europe/Berlin","weekly":{"mon":[{"from":"09:00","to":"17:00"}]}},"holidays":["12-25"]}`,
	"condition":  `{"expression":"true"}`,
	"set":        `{"variables":{"A":"x","a":{"A":1,"a":2}}}`,
	"hunt_group": `{"members":[{"user_id":"usr_1"},{"number":"+12125550100"}],"strategy":"sequential","ring_timeout_seconds":9}`,
	"queue":      `{"queue_id":"que_1","priority":2,"max_wait_seconds":60}`,
	"ai_agent": `{"instructions":"x","voice":"v","language":"en","greeting":"g","tools":["http"],"handoff":"queue:que_1","max_minutes":3,"interruptible":false,
		"sms_from":"+12125550100","mailbox":"usr_1","callback_queue_id":"que_1","http_about":"x",
		"http":{"url":"https://a.example","method":"GET","body":"b","headers":{"A":"1","a":"2"},"timeout_ms":9,"signed":true,"variable":"v"}}`,
	"contact_lookup": `{"timeout_ms":300,"variable":"v"}`,
	"http":           `{"url":"https://a.example","method":"GET","body":"b","headers":{"A":"1"},"timeout_ms":9,"signed":true,"variable":"v"}`,
	"transfer":       `{"to":"ext:101","timeout_seconds":9}`,
	"voicemail":      `{"mailbox":"flow","greeting_audio_id":"aud_1","max_seconds":9}`,
	"callback":       `{"queue_id":"que_1","confirm_number":true}`,
	"sms":            `{"from":"+12125550100","body":"b"}`,
	"record":         `{"action":"start","announce":true}`,
	"tag":            `{"tags":["a"]}`,
	"hangup":         `{"reason":"busy"}`,
}

// TestParse_EveryMember reads every member of every type, and refuses it in another case.
//
// https://github.com/golang/go/issues/14750
func TestParse_EveryMember(t *testing.T) {
	t.Parallel()
	if len(fullConfigs) != 18 {
		t.Fatalf("%d types", len(fullConfigs))
	}
	for kind, text := range fullConfigs {
		var given, stored map[string]any
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		c, err := Node{ID: "a", Type: kind, Config: given}.parse()
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		known := slices.Sorted(maps.Keys(strictjson.Names(reflect.TypeOf(c).Elem())))
		if names := slices.Sorted(maps.Keys(given)); !slices.Equal(names, known) {
			t.Errorf("%s: tried %q of %q", kind, names, known)
		}
		b, err := json.Marshal(c)
		if err == nil {
			err = json.Unmarshal(b, &stored)
		}
		if err != nil || !reflect.DeepEqual(stored, given) {
			t.Errorf("%s: stored %s of %s, %v", kind, b, text, err)
		}
		for name, v := range given {
			variant := map[string]any{strings.ToUpper(name): v}
			if _, err := (Node{ID: "a", Type: kind, Config: variant}).parse(); err == nil || !strings.Contains(err.Error(), "known are "+strings.Join(known, ", ")) {
				t.Errorf("%s: %s in capitals: %v", kind, name, err)
			}
		}
	}
}

// TestPlay_Members has defaults for members that are not given, and no other members than its own.
func TestPlay_Members(t *testing.T) {
	t.Parallel()
	c, err := Node{Type: "play", Config: map[string]any{"text": "Hi", "interrupt": true}}.parse()
	if p, ok := c.(*Play); err != nil || !ok || p.Text != "Hi" || !p.Interrupt {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := (Node{Type: "menu", Config: map[string]any{"prompt": map[string]any{"text": "Hi", "interrupt": true}}}).parse(); err == nil {
		t.Error("a prompt has no interrupt")
	}
}
