package transcript

import "testing"

func TestUrgency(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "Caller: hello this is bob": "normal", "Caller: Please call me back today, it is URGENT!": "high",
		"it is not urgent call me whenever": "low", "no rush but the deadline is friday": "low", "our server is down": "high", "a resurgent market": "normal"} {
		if got := urgency(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
