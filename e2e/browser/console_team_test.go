package browser

import (
	"testing"
	"time"

	"soniq/e2e/limit"
)

// Two people see each other on the team page, live: presence, the call with its time, queues. A favourite is kept on the server. A
// supervisor chooses the presence of a member of their queue; an agent is not offered that.
func TestConsole_Team(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 3*time.Minute, "two browsers call each other, and a page is examined in three sizes and colours")
	office := newOffice(t)
	dana, danaUser := openConsole(office, "supervisor", "/console/team", "440")
	ruth, ruthUser := colleague(office, "Ruth", "Byron", "agent", "/console/team", "1000")
	office.AddQueue(map[string]any{"name": "Billing"}, danaUser, ruthUser)
	dana.shows("Live")
	ruth.click("button", "Turn on the phone")
	ruth.has("button", "Phone ready")
	dana.shows("Ruth Byron", "Billing")
	dana.click("button", "Turn on the phone")
	dana.has("button", "Phone ready")
	ruth.hasNot("button", "Set the presence of Dana Reed")
	dana.clickInMenu("Set the presence of Ruth Byron", "menuitemradio", "Away")
	ruth.has("button", "Presence: Away")
	dana.clickInMenu("Set the presence of Ruth Byron", "menuitemradio", "Available")
	ruth.has("button", "Presence: Available")

	dana.click("button", "Ruth Byron is a favourite")
	dana.has("heading", "Favourites")
	dana.click("button", "Call Ruth Byron")
	ruth.click("button", "Answer")
	dana.has("button", "Mute")
	dana.shows("In a call")
	dana.checked("team")
	dana.click("button", "Hang up")
	ruth.hasNot("button", "Hang up")
	dana.selectOption("Now", "Do not disturb")
	dana.shows("Nobody matches these filters.")
	dana.goTo("/console/team?q=ruth")
	dana.has("heading", "Favourites")
	dana.hasNot("heading", "Everybody else")
	var kept struct{ Favourites []string }
	dana.eval(&kept, `fetch("/api/v1/me/preferences").then((r) => r.json())`)
	if len(kept.Favourites) != 1 || kept.Favourites[0] != ruthUser.ID {
		t.Errorf("the server keeps %+v", kept)
	}
	dana.faultless()
	ruth.faultless()
}
