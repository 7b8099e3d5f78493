package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"soniq/internal/platform/strictjson"
)

// A number without a fraction is an integer, however it is written (https://github.com/dmtrKovalenko/fff/issues/328).
func TestPlainIntegers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`5.0`: `5`, `5.000`: `5`, `5e0`: `5`, `50e-1`: `5`, `0.5E1`: `5`, `0.5E+1`: `5`, `-5.0`: `-5`, `0.0`: `0`, `-0.0`: `0`, `1E2`: `100`, `5`: `5`, `5.5`: `5.5`,
		`1e400`: `1e400`, `1e-400`: `1e-400`, `0e999999999999`: `0e999999999999`, `9223372036854775807.0`: `9223372036854775807`, `1e19`: `10000000000000000000`,
		`{"limit":5.0,"text":"5.0 and 1e2","\"5.0":[1.0,2.5,3e0,{"a":-1.0}]}`: `{"limit":5,"text":"5.0 and 1e2","\"5.0":[1,2.5,3,{"a":-1}]}`,
		`"a\\",5.0`: `"a\\",5`, `"open 5.0`: `"open 5.0`, `5.0.0`: `5.0.0`, `1-2.0`: `1-2.0`, `5.e`: `5.e`, ``: ``, `true`: `true`, `e`: `e`, `.5`: `.5`} {
		if got := string(strictjson.PlainIntegers([]byte(text))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func FuzzPlainIntegers(f *testing.F) {
	for _, text := range []string{`{"a":5.0}`, `[1e2,-0.0,"x\"1.0"]`, `1.50E1`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := strictjson.PlainIntegers([]byte(text))
		if !json.Valid([]byte(text)) {
			return
		}
		var before, after any
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			return // a number that no float can hold
		}
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q became %q: %v", text, out, err)
		}
		a, _ := json.Marshal(before)
		b, _ := json.Marshal(after)
		if strings.ReplaceAll(string(a), "-0", "0") != strings.ReplaceAll(string(b), "-0", "0") {
			t.Fatalf("%q became %q", text, out)
		}
	})
}
