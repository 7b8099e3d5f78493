package access_test

import (
	"net/http"
	"testing"

	"soniq/internal/platform/access"
)

// The scheme of a credential has no case (https://github.com/BerriAI/litellm/issues/34743).
func TestBearer(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"Bearer k": "k", "bearer k": "k", "BEARER k": "k", "bEaReR   k": "k", "Bearer\tk": "k",
		" Bearer k ": "k", "Bearer a b": "a b"} {
		r := &http.Request{Header: http.Header{"Authorization": {value}}}
		if got, ok := access.Bearer(r); !ok || got != want {
			t.Errorf("%q: %q, %v, want %q", value, got, ok, want)
		}
	}
	for _, value := range []string{"", "Bearer", "Bearerk", "k", "Basic k", "Bearer,k", "Token Bearer k", "Bearer: k"} {
		r := &http.Request{Header: http.Header{"Authorization": {value}}}
		if got, ok := access.Bearer(r); ok {
			t.Errorf("%q was read as the credential %q", value, got)
		}
	}
}
