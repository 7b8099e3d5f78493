package api_test

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// browserToken holds the credentials with which a page connects.
type browserToken struct {
	Token    string
	WSURL    string `json:"ws_url"`
	Username string
	Domain   string
	Device   string `json:"device_id"`
	ICE      []struct {
		URLs                 []string
		Username, Credential string
	} `json:"ice_servers"`
	ExpiresAt time.Time `json:"expires_at"`
}

// TestBrowserToken_RegisterAndCall registers and calls over a WebSocket with a token as the only credential.
func TestBrowserToken_RegisterAndCall(t *testing.T) {
	t.Parallel()
	flags := []string{"--transcriber", "off", "--ice-servers", "stun:stun.example.com:3478,turn:turn.example.com:3478", "--turn-secret", "shared"}
	rig.Each(t, rig.Options{Flags: flags}, func(t *testing.T, s *rig.Server) {
		st := &stage{Server: s, doc: readDocument(t, s)}
		admin := st.org(t, "live")
		ada, bob := admin.AddUser("Ada"), admin.AddUser("Bob")
		var k browserToken
		admin.want(t, 200, "POST", "/users/"+ada.ID+"/webrtc-token", map[string]any{"device_name": "Desk page"}, &k)
		if left := time.Until(k.ExpiresAt); left < 9*time.Minute || left > 10*time.Minute || len(k.ICE) != 2 || k.ICE[0].Credential != "" ||
			k.ICE[1].Credential == "" {
			t.Errorf("the token is %+v", k)
		}
		line, err := fixture.ConnectSIPWebSocket(t, k.WSURL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fixture.ConnectSIPWebSocket(t, k.WSURL); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("a token connects twice: %v", err)
		}
		if got := line.Request("REGISTER", bob.SIP.Username, bob.SIP.Username, k.Domain); got != "SIP/2.0 403 Forbidden" {
			t.Errorf("registering as somebody else: %s", got)
		}
		if got := line.Request("REGISTER", k.Username, k.Username, k.Domain); got != "SIP/2.0 200 OK" {
			t.Fatalf("registering: %s", got)
		}
		var d struct {
			Name, Kind   string
			UserID       string `json:"user_id"`
			Registration struct{ Status, Transport string }
		}
		admin.want(t, 200, "GET", "/devices/"+k.Device, nil, &d)
		if d.Name != "Desk page" || d.Kind != "webrtc" || d.UserID != ada.ID || d.Registration.Status != "registered" || d.Registration.Transport != "ws" {
			t.Errorf("the telephone is %+v", d)
		}
		if got := line.Request("INVITE", bob.SIP.Username, bob.Extension, k.Domain); got != "SIP/2.0 480 Temporarily Unavailable" {
			t.Errorf("calling: %s", got)
		}
		var calls struct {
			Data []struct {
				From string `json:"from_number"`
			}
		}
		admin.want(t, 200, "GET", "/calls", nil, &calls)
		if len(calls.Data) != 1 || calls.Data[0].From != ada.Extension {
			t.Errorf("the call is %+v, want one from %s", calls.Data, ada.Extension)
		}
		var again browserToken
		admin.want(t, 200, "POST", "/users/"+ada.ID+"/webrtc-token", map[string]any{"device_name": "Desk page"}, &again)
		if again.Device != k.Device || again.Token == k.Token {
			t.Errorf("a second token is %+v", again)
		}
		var third browserToken
		admin.want(t, 200, "POST", "/users/"+ada.ID+"/webrtc-token", map[string]any{"device_name": "Desk page"}, &third)
		plain, _, _ := strings.Cut(third.WSURL, "?")
		quiet, err := fixture.ConnectSIPWebSocket(t, plain, "token."+third.Token)
		if err != nil || quiet.Request("REGISTER", k.Username, k.Username, k.Domain) != "SIP/2.0 200 OK" {
			t.Errorf("with the token as a subprotocol: %v", err)
		}
		if _, err := fixture.ConnectSIPWebSocket(t, plain, "token."+third.Token); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("a token as a subprotocol connects twice: %v", err)
		}
		if log := s.Log(); strings.Contains(log, third.Token) || strings.Contains(log, k.Token) {
			t.Error("a token is in the log")
		}
		tokenRights(t, admin, ada, bob)
		for _, url := range []string{strings.Replace(k.WSURL, "token=wt_", "token=wt_x", 1),
			strings.Replace(k.WSURL, k.Token, ada.SIP.Password, 1)} {
			if _, err := fixture.ConnectSIPWebSocket(t, url); err == nil || !strings.Contains(err.Error(), "401") {
				t.Errorf("connected by %s: %v", url, err)
			}
		}
		admin.want(t, 200, "PATCH", "/users/"+ada.ID, map[string]any{"status": "suspended"}, nil)
		if got := line.Request("REGISTER", k.Username, k.Username, k.Domain); got != "SIP/2.0 403 Forbidden" {
			t.Errorf("registering, suspended: %s", got)
		}
		if got := line.Request("INVITE", k.Username, bob.Extension, k.Domain); !strings.HasPrefix(got, "SIP/2.0 403") {
			t.Errorf("calling, suspended: %s", got)
		}
		if _, err := fixture.ConnectSIPWebSocket(t, again.WSURL); err == nil {
			t.Error("a token of a user who is suspended connects")
		}
		admin.refused(t, 409, "invalid_state", "POST", "/users/"+ada.ID+"/webrtc-token", map[string]any{})
	})
}

// tokenRights requests tokens with a key of one user that lacks the scope for it.
func tokenRights(t *testing.T, admin desk, ada, bob rig.User) {
	t.Helper()
	own := mint(t, admin, map[string]any{"user_id": ada.ID, "scopes": []string{"calls:read"}})
	hers := desk{&rig.Client{T: t, Server: admin.Server, Key: own.Key, Prefix: prefix}, admin.doc}
	hers.want(t, 200, "POST", "/users/"+ada.ID+"/webrtc-token", map[string]any{}, nil)
	hers.refused(t, 403, "insufficient_scope", "POST", "/users/"+bob.ID+"/webrtc-token", map[string]any{})
}
