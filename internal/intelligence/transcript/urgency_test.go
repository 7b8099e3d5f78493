package transcript

import "testing"

// https://github.com/JKHeadley/instar/issues/733
func TestUrgency(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "Caller: hello this is bob": "normal", "Caller: Please call me back today, it is URGENT!": "high",
		"it is not urgent call me whenever": "low", "no rush but the deadline is friday": "low", "our server is down": "high", "a resurgent market": "normal",
		"This isn't an emergency.": "low", "Nothing is down, I only have a question.": "normal", "If it is urgent I will call again.": "normal",
		"I don't need it today.": "normal", "It is nothing important.": "low", "We cannot wait.": "high", "It is urgent, not only important.": "high",
		"Last year we had an outage.": "normal", "There is no doubt that it is urgent.": "high", "123": ""} {
		if got := urgency(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
