package op_test

import (
	"encoding/json"
	"strings"
	"testing"

	"soniq/internal/platform/op"
)

// Whoever may change where a connection leads may not know its secrets: they are never sent to another place.
func TestCheckMovedSettings(t *testing.T) {
	t.Parallel()
	const old = `{"lookup":{"url":"https://crm.example/find?q={{phone}}"},"auth":{"token":"abc"},"headers":{"X-Key":"k"}}`
	for change, want := range map[string]string{
		`{}`: "",
		`{"lookup":{"url":"https://crm.example/other"}}`:                                            "",
		`{"lookup":{"url":"https://CRM.example/other"},"auth":{"token":"new"}}`:                     "",
		`{"lookup":{"url":"https://evil.example/"}}`:                                                "settings.auth.token settings.headers.X-Key",
		`{"lookup":{"url":"http://crm.example/"}}`:                                                  "settings.auth.token settings.headers.X-Key",
		`{"lookup":{"url":"https://crm.example:444/"},"auth":{"token":"********"}}`:                 "settings.auth.token settings.headers.X-Key",
		`{"lookup":{"url":"https://evil.example/"},"auth":{"token":"new"}}`:                         "settings.headers.X-Key",
		`{"lookup":{"url":"https://evil.example/"},"auth":{"token":"abc"},"headers":{"X-Key":"k"}}`: "",
		`{"lookup":{"url":"https://evil.example/"},"auth":null,"headers":null}`:                     "",
		`{"search":{"url":"https://evil.example/"}}`:                                                "settings.auth.token settings.headers.X-Key",
		`{"api_url":"https://evil.example"}`:                                                        "settings.auth.token settings.headers.X-Key",
		`{"login_url":"https://evil.example"}`:                                                      "settings.auth.token settings.headers.X-Key",
		`{"host":"evil.example"}`:                                                                   "settings.auth.token settings.headers.X-Key",
	} {
		var was, now map[string]any
		if err := json.Unmarshal([]byte(old), &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(change), &now); err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, v := range op.CheckMovedSettings(was, now) {
			fields = append(fields, v.Field)
		}
		if got := strings.Join(fields, " "); got != want {
			t.Errorf("%s: %q, want %q", change, got, want)
		}
	}
}
