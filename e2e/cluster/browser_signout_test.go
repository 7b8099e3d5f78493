package cluster

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// browserLogin is the part of a browser's token that the test needs.
type browserLogin struct {
	WSURL            string `json:"ws_url"`
	Username, Domain string
}

// requestBrowserLogin gets a token in a browser session, as the console does.
func requestBrowserLogin(t *testing.T, browser *http.Client, s *rig.Server) (l browserLogin) {
	t.Helper()
	do := func(method, path string, out any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.HTTP+"/api/v1"+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Soniq-Page", "1")
		r.Header.Set("Content-Type", "application/json")
		a, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Body.Close() }()
		if err := json.NewDecoder(a.Body).Decode(out); err != nil || a.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %v", method, path, a.StatusCode, err)
		}
	}
	var me struct {
		User struct{ ID string }
	}
	do("GET", "/me", &me)
	do("POST", "/users/"+me.User.ID+"/webrtc-token", &l)
	return l
}

// TestNodes_SignOutEndsBrowserAtOtherNode connects a browser's phone at one node and signs the browser out at another. The
// first node closes the connection at its next request. After a new sign-in the phone registers there again.
func TestNodes_SignOutEndsBrowserAtOtherNode(t *testing.T) {
	t.Parallel()
	const email, password = "ada@example.com", "correct horse battery"
	options := rig.Options{Env: fixture.NoSpeech}
	first := rig.Node(t, options)
	second := rig.Node(t, options, first)
	o := fixture.NewOrg(first)
	browser := o.SignInBrowser(email, "agent", password)
	connectAt := func(s *rig.Server) (*fixture.SIPWebSocket, browserLogin) {
		t.Helper()
		l := requestBrowserLogin(t, browser, first)
		_, query, _ := strings.Cut(l.WSURL, "?")
		line, err := fixture.ConnectSIPWebSocket(t, "ws://"+s.HTTP+"/ws/sip?"+query)
		if err != nil {
			t.Fatal(err)
		}
		if got := line.Request("REGISTER", l.Username, l.Username, l.Domain); got != "SIP/2.0 200 OK" {
			t.Fatalf("registering: %s", got)
		}
		return line, l
	}
	line, l := connectAt(second)
	o.SubmitForm(browser, "http://"+first.HTTP+"/account", url.Values{}) // the first form of the page signs out
	// The node remembers the phone's account for three seconds.
	rig.Until(t, "the connection of the ended session is closed", 4*time.Second, func() bool {
		return line.Request("REGISTER", l.Username, l.Username, l.Domain) == "closed"
	})
	o.SubmitForm(browser, "http://"+first.HTTP+"/account/login", url.Values{"email": {email}, "password": {password}})
	line, l = connectAt(second)
	if got := line.Request("REGISTER", l.Username, l.Username, l.Domain); got != "SIP/2.0 200 OK" {
		t.Errorf("registering in the new session: %s", got)
	}
}
