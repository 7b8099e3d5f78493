package sip

import (
	"testing"
	"time"
)

func TestGrantedDuration_UpToTwoHours(t *testing.T) {
	t.Parallel()
	for expires, want := range map[string]time.Duration{"": time.Hour, "7200": 2 * time.Hour, "86400": 2 * time.Hour, "nonsense": time.Hour, "0": 0} {
		r := subscribeRequest{expires: expires}
		if got, status := r.grantedDuration(); got != want || status != 200 {
			t.Errorf("Expires %q: %s, %d; want %s", expires, got, status, want)
		}
	}
	if _, status := (&subscribeRequest{expires: "5"}).grantedDuration(); status != 423 {
		t.Errorf("Expires 5: %d, want 423", status)
	}
}
