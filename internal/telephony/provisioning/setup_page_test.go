package provisioning

import (
	"strings"
	"testing"

	"soniq/internal/platform/db/dbtest"
)

func TestSetupPage_EmergencyWarning(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	_, address := h.phone(`,"template_id":"linphone"`)
	warned := func() bool {
		return strings.Contains(h.want(200, address, "Mozilla/5.0", "Sec-Fetch-Mode", "navigate"), "No emergency calls from this phone")
	}
	if !warned() {
		t.Error("who sets the phone up is not told")
	}
	h.emergency = true
	if warned() {
		t.Error("who sets up a phone that reaches emergency services is told that it does not")
	}
}
