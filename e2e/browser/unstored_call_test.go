package browser

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestBrowser_ReadsCallBeforeItIsStored requests a call by the id in the INVITE while the database of the server is locked. No request is
// answered before the call is stored. Then the organisation and the called agent get the call, and an agent without a part in it gets 404.
//
// https://github.com/Abilityai/trinity/issues/1445
func TestBrowser_ReadsCallBeforeItIsStored(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Load: rig.Browser, Flags: []string{"--web-origins", "*"}, Env: fixture.NoSpeech})
	office := fixture.NewOrg(s)
	ada, bob, carol := office.AddUser("Ada"), office.AddUser("Bob"), office.AddUser("Carol")
	a := newWebPhone(t, s, ada.SIP, "440", false)
	b := newWebPhone(t, s, bob.SIP, "1000", false)
	keys := map[string]string{"organisation": office.Key, "called agent": agentKey(office, bob), "other agent": agentKey(office, carol)}
	want := map[string]int{"organisation": 200, "called agent": 200, "other agent": 404}

	unlock := fixture.LockDatabase(t, s)
	a.dial(bob.Extension)
	b.wait("call of INVITE ")
	id := strings.TrimPrefix(b.callsNamed()[0], "call of INVITE ")
	type answer struct {
		who    string
		status int
	}
	answers := make(chan answer, len(keys))
	for who, key := range keys {
		go func() { answers <- answer{who, statusOf(office, key, "/calls/"+id)} }()
	}
	select {
	case got := <-answers:
		t.Fatalf("%s is answered %d before the call is stored", got.who, got.status)
	case <-time.After(300 * time.Millisecond): // without the wait of the server, the answer 404 comes within milliseconds
	}
	unlock()
	for range keys {
		if got := <-answers; got.status != want[got.who] {
			t.Errorf("%s: status %d, want %d", got.who, got.status, want[got.who])
		}
	}
	a.eval(nil, "session.terminate()")
	b.wait("failed")
}

// agentKey returns a key of a user that reads calls.
func agentKey(office *fixture.Org, u rig.User) string {
	office.T.Helper()
	var made struct{ Key string }
	office.Want(201, "POST", "/api-keys", map[string]any{"name": u.ID, "scopes": []string{"calls:read"}, "user_id": u.ID}, &made)
	return made.Key
}

// statusOf returns the status of a request with another key.
func statusOf(office *fixture.Org, key, path string) int {
	own := *office.Client
	own.Key = key
	return own.Do("GET", path, nil).Status
}
