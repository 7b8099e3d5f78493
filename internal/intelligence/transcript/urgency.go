package transcript

import "strings"

// Urgency of a voicemail message.
const (
	urgencyLow    = "low"
	urgencyNormal = "normal"
	urgencyHigh   = "high"
)

// urgentPhrases and patientPhrases are phrases of urgent and not urgent messages. Patient phrases take precedence,
// because they contain urgent ones: "it is not urgent".
var (
	urgentPhrases = []string{"urgent", "emergency", "as soon as possible", "a s a p", "asap", "immediately", "right away", "at once",
		"today", "tonight",
		"deadline", "critical", "help me", "outage", "not working at all", "is down", "are down", "cannot wait", "can't wait"}
	patientPhrases = []string{"not urgent", "no rush", "no hurry", "not in a hurry", "whenever", "when you have time",
		"when you get a chance", "at your convenience", "nothing important", "not important", "take your time", "just wanted to say"}
)

// urgency returns the urgency of a message by its words; "" if there are none.
func urgency(text string) string {
	words := " " + strings.Join(strings.FieldsFunc(strings.ToLower(text), func(c rune) bool {
		return c != '\'' && (c < 'a' || c > 'z')
	}), " ") + " "
	if len(words) <= 2 {
		return ""
	}
	for _, p := range patientPhrases {
		if strings.Contains(words, " "+p+" ") {
			return urgencyLow
		}
	}
	for _, p := range urgentPhrases {
		if strings.Contains(words, " "+p+" ") {
			return urgencyHigh
		}
	}
	return urgencyNormal
}
