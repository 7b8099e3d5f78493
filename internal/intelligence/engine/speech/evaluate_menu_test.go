package speech

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine/enginetest"
)

// evaluatedMenus lists menus and utterances of callers, each with the expected phrase, or "" if none of the menu
// matches.
var evaluatedMenus = []struct {
	phrases string
	said    [][2]string
}{
	{"sales|billing|technical support|opening hours|operator|accounts|reception|yes|no|one|two|three|new order|cancel", [][2]string{
		{"Sales.", "sales"}, {"Billing.", "billing"}, {"Technical support.", "technical support"}, {"Opening hours.", "opening hours"}, {"Operator.", "operator"},
		{"Accounts.", "accounts"}, {"Reception.", "reception"}, {"Yes.", "yes"}, {"No.", "no"}, {"One.", "one"}, {"Two.", "two"}, {"Three.", "three"},
		{"New order.", "new order"}, {"Cancel.", "cancel"}, {"Press two.", "two"}, {"I would like billing please.", "billing"}, {"Can I speak to sales?", "sales"},
		{"Operator please.", "operator"}, {"Yeah.", "yes"}, {"Nope.", "no"}, {"My cat is on the roof again.", ""}, {"What did you say?", ""},
		{"The weather is very nice today.", ""}, {"I do not know.", ""}, {"Hold on a moment.", ""}, {"It was for my sister.", ""}}},
	{"appointments|prescriptions|parking|lost and found|tickets|refund|warranty|leave a message|four|nine", [][2]string{
		{"Appointments.", "appointments"}, {"Prescriptions.", "prescriptions"}, {"Parking.", "parking"}, {"Lost and found.", "lost and found"},
		{"Tickets.", "tickets"}, {"Refund.", "refund"}, {"Warranty.", "warranty"}, {"Leave a message.", "leave a message"}, {"Four.", "four"}, {"Nine.", "nine"},
		{"Appointments please.", "appointments"}, {"I want a refund.", "refund"}, {"Let me think about it.", ""}, {"Who are you?", ""}, {"It is raining.", ""}}},
}

// TestEvaluateMenus measures how often the phrase of a caller in a menu is recognised, and how often another phrase
// is returned. It is run by `make eval`.
func TestEvaluateMenus(t *testing.T) {
	if os.Getenv("SONIQ_EVAL") == "" {
		t.Skip("set SONIQ_EVAL=1 to run")
	}
	ear := NewPhraseRecognizer(newEvaluatedRecognizer(t))
	if os.Getenv("SONIQ_EVAL_ENGINE") == "" { // the same configuration as in the server
		ear.WithFallback(newTestSphinx(t, 1))
	}
	voices := map[string]voice{"rms": fliteVoice("rms"), "slt": fliteVoice("slt"), "kal16": fliteVoice("kal16"), "ked": festival("ked_diphone"),
		"espeak en-us": espeak("en-us"), "espeak en-us+f3": espeak("en-us+f3")}
	for i, m := range evaluatedMenus {
		phrases := strings.Split(m.phrases, "|")
		right, wrong, asked, none := 0, 0, 0, 0
		for _, said := range m.said {
			for name, v := range voices {
				pcm := make(chan []int16, 1)
				pcm <- telephone(append(append(make([]float64, 3200), v(t, said[0])...), make([]float64, 12800)...))
				close(pcm)
				got := ""
				if k, ok := ear.Recognize(context.Background(), phrases, "en", pcm); ok {
					got = phrases[k]
				}
				if said[1] == "" {
					none++
				} else {
					asked++
				}
				switch {
				case got != "" && got == said[1]:
					right++
				case got != "":
					wrong++
				}
				if got != said[1] {
					t.Logf("%s: %q taken for %q", name, said[0], got)
				}
			}
		}
		enginetest.EvalRow(t, "menus", fmt.Sprintf("menu %d, %d phrases, %d voices", i+1, len(phrases), len(voices)),
			fmt.Sprintf("%d of %d understood; of these and %d that are none %d taken for another", right, asked, none, wrong), "–")
	}
}
