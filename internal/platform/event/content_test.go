package event_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"soniq/internal/platform/event"
)

// spoken matches the names of fields that hold what people said, or what was derived from it.
var spoken = regexp.MustCompile(`^(text|words|transcript|.*summary|topics|action_items|sentiment|mood|note)$`)

// Every field of a payload that can hold words declares it, so that a new event cannot keep words of a transcript that was deleted.
func TestContent_WordsAreDeclared(t *testing.T) {
	t.Parallel()
	n := 0
	for _, p := range everyPayload() {
		for i := range reflect.TypeOf(p).NumField() {
			f := reflect.TypeOf(p).Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); spoken.MatchString(name) {
				n++
				if f.Tag.Get("content") != string(event.Words) {
					t.Errorf("%s of %s does not declare its content", name, p.Kind())
				}
			}
		}
	}
	if n < 7 {
		t.Errorf("only %d fields hold words", n)
	}
}

func everyPayload() (all []event.Payload) {
	all = append(all, event.Payloads...)
	for _, p := range event.StreamPayloads {
		all = append(all, p)
	}
	return all
}

func TestWithout_RemovesContent(t *testing.T) {
	t.Parallel()
	word, summary := "my secret is <b>", "the secret of the caller"
	transcription := event.CallTranscription{CallID: "call_1", Text: &word, AISummary: &summary, Topics: []string{"secret"},
		ActionItems: []event.ActionItem{{Text: "tell the secret"}}, Sentiment: &word, Status: "completed"}
	for _, p := range []event.Payload{transcription, event.CallEnded{CallID: "call_1", AISummary: &summary, Status: "completed"},
		event.VoicemailReceived{CallID: "call_1", Text: &word, FromNumber: "+12125550100"}} {
		body, err := event.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		without, changed, err := event.Without(p.Kind(), string(body), event.Words)
		if err != nil || !changed || strings.Contains(without, "secret") || !strings.Contains(without, "call_1") {
			t.Errorf("%s: %s, changed %v, %v", p.Kind(), without, changed, err)
		}
		if again, changed, err := event.Without(p.Kind(), without, event.Words); err != nil || changed || again != without {
			t.Errorf("%s again: %s, changed %v, %v", p.Kind(), again, changed, err)
		}
	}
	body, err := event.Encode(event.CallMissed{CallID: "call_1"})
	if without, changed, other := event.Without("call.missed", string(body), event.Words); err != nil || other != nil || changed ||
		without != string(body) {
		t.Errorf("an event without words: %s %v %v", without, err, other)
	}
}
