package op

import (
	"encoding/json"
	"testing"
)

// An error of the decoder names the member as JSON does, also if the Go types embed one another.
func TestWrongValue_NamesNoGoType(t *testing.T) {
	t.Parallel()
	type Deep struct {
		Seconds int `json:"seconds"`
	}
	type Fields struct {
		Wait  int    `json:"wait_seconds"`
		Rules []Deep `json:"rules"`
	}
	var body struct{ Fields }
	for text, want := range map[string]string{
		`{"wait_seconds":99999999999999999999}`:        "wait_seconds",
		`{"rules":[{"seconds":99999999999999999999}]}`: "rules.seconds",
		`[]`: "body",
	} {
		err := json.Unmarshal([]byte(text), &body)
		if v := wrongValue(err.Error()); v.Field != want || v.Code != "invalid_type" {
			t.Errorf("%s: %+v, want field %q (%v)", text, v, want, err)
		}
	}
}
