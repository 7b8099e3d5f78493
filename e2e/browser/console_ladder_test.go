package browser

import (
	"net/http"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// Why a call failed is found in two clicks from its page: the ladder shows the 486 of the telephone. Messages are read by mouse and by
// keyboard, as text, and as a file for Wireshark. Who may not see signalling has no such tab.
func TestConsole_ShowsSignalling(t *testing.T) {
	t.Parallel()
	limit.Budget(t, time.Minute, "a call is made, and its page is examined in three sizes and colours")
	office := newOffice(t)
	bob := office.AddUser("Bob")
	busy := office.Server.Sipp(rig.Script{Scenario: "refuse", Status: 486, Port: office.RegisterSipp(bob.SIP), From: bob.SIP.Username})
	way := office.AddCarrier(bob.ID, nil)
	if _, err := office.TryCallIn(way, "+12125550101"); err == nil {
		t.Fatal("the call was answered")
	}
	busy.Wait()
	p, _ := openConsole(office, "admin", "/console/calls", "440")
	p.click("link", "+1 212 555 0101")
	p.click("tab", "Signalling")
	p.has("heading", "INVITE from +1 212 555 0101")
	p.clickText("option", "486 No")
	p.has("heading", "486 No from Bob")
	p.shows("SIP/2.0 486 No")
	p.checked("call-signalling")
	p.key("ArrowDown")
	p.has("heading", "ACK to Bob")
	p.key("ArrowUp")
	p.has("heading", "486 No from Bob")
	var file struct {
		Status int
		Type   string
	}
	p.eval(&file, `fetch(document.querySelector("a[download$='.pcap']").href).then((r) => ({Status: r.status, Type: r.headers.get("content-type")}))`)
	if file.Status != http.StatusOK || file.Type != "application/vnd.tcpdump.pcap" {
		t.Errorf("the file for Wireshark: %+v", file)
	}
	p.click("button", "Text")
	p.shows("INVITE sip:", "SIP/2.0 486 No")
	p.checked("call-signalling-text")
	p.faultless()
}
