package contact

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/customer/crm/vendortest"
)

// hubSpot replaces HubSpot. It knows Ada and keeps the calls that are written to it.
type hubSpot struct {
	*vendortest.Vendor

	mu      sync.Mutex // guards the rest
	made    []string   // bodies of calls that were made
	changed []string   // and of those that were changed
	held    chan struct{}
	release chan struct{}
}

// newHubSpot starts a stand-in.
func newHubSpot(t testing.TB) *hubSpot {
	h := &hubSpot{Vendor: vendortest.New(t, "hubspot"), held: make(chan struct{}), release: make(chan struct{})}
	h.Respond(h.respond)
	return h
}

// object returns a CRM object of HubSpot.
func object(id string, properties map[string]any) map[string]any {
	return map[string]any{"id": id, "createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z", "properties": properties}
}

// respond answers a request to HubSpot.
func (h *hubSpot) respond(r vendortest.Request) *vendortest.Answer {
	found := func(all ...any) *vendortest.Answer {
		return &vendortest.Answer{Body: map[string]any{"total": len(all), "results": append([]any{}, all...)}}
	}
	switch {
	case r.Path == "/crm/v3/objects/contacts/search":
		return found(object("7", map[string]any{"firstname": "Ada", "lastname": "Lovelace", "company": "Analytical", "phone": "212-555-0178"}))
	case r.Path == "/crm/v3/objects/calls/search":
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.made) == 0 {
			return found()
		}
		return found(object("901", map[string]any{}))
	case r.Method == "POST" && r.Path == "/crm/v3/objects/calls":
		h.mu.Lock()
		h.made = append(h.made, r.Body)
		n := len(h.made)
		h.mu.Unlock()
		if n == 1 { // the call is stored, but its response is held back
			close(h.held)
			<-h.release
		}
	case r.Method == "PATCH" && r.Path == "/crm/v3/objects/calls/901":
		h.mu.Lock()
		h.changed = append(h.changed, r.Body)
		h.mu.Unlock()
	}
	return nil
}

// callsWritten returns how often the call was made, and whether a text was written to it.
func (h *hubSpot) callsWritten(text string) (made int, there bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, body := range h.changed {
		there = there || strings.Contains(body, text)
	}
	return len(h.made), there
}

// authorize opens an address as a browser does, and returns the last page.
func authorize(t testing.TB, browser *http.Client, at string) string {
	t.Helper()
	r, err := browser.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusOK {
		t.Fatalf("came back to %d %s", r.StatusCode, b)
	}
	return string(b)
}

// A user connects HubSpot in a browser, and a caller is shown by the name stored there. The server is killed while
// HubSpot stores the call. The call is there once, and gets its summary and its transcript later.
func TestHubSpot_LookupAndCallLogAcrossKill(t *testing.T) {
	t.Parallel()
	rig.Each(t, func() rig.Options {
		e := fixture.NewAIServer(t)
		e.Meanings = map[float64]string{fixture.CallerTone: "I was charged twice for the blue lamp and want my money back.", fixture.BobTone: "I will send it back today."}
		return e.LanguageModelOptions(map[string]string{"SONIQ_SUMMARIZER": "builtin"})
	}(), func(t *testing.T, s *rig.Server) {
		v := newHubSpot(t)
		company := fixture.NewOrg(s)
		o := &fixture.Office{Org: company}
		var c struct {
			ID, Status string
			URL        string `json:"authorize_url"`
		}
		company.Want(201, "POST", "/crm/connections", map[string]any{"provider": "hubspot", "name": "HubSpot", "settings": map[string]any{"client_id": vendortest.Client,
			"client_secret": vendortest.Secret, "login_url": v.URL, "api_url": v.URL}}, &c)
		browser := company.SignInBrowser("owner@example.com", "owner", "correct horse battery")
		if page := authorize(t, browser, c.URL); c.Status != "auth_required" || !strings.Contains(page, "HubSpot is connected") {
			t.Fatalf("%s, then %s", c.Status, page)
		}
		o.Bob = company.AddUser("Bob")
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
		way := company.AddCarrier(o.Bob.ID, nil)
		told := company.ReadStream("", func() {
			caller := company.CallIn(way, "+12125550178")
			caller.WaitTone(0, fixture.BobTone)
			o.BobPhone.Listen(3 * time.Second)
			caller.Line.HangUp()
		}, func(e fixture.StreamEvent) bool {
			return e.Type == "screen_pop" && strings.Contains(e.Data, "Ada Lovelace")
		})
		if p := fixture.ScreenPops(told, "+12125550178"); len(p) == 0 || p[0]["user_id"] != o.Bob.ID {
			t.Errorf("popped %v", told)
		}
		var found map[string]any
		company.Want(200, "GET", "/contacts/lookup?phone=%2B12125550178", nil, &found)
		if found["url"] != "https://app-eu1.hubspot.com/contacts/62515/record/0-1/7" || found["company"] != "Analytical" {
			t.Errorf("found %v", found)
		}
		<-v.held
		s.Kill()
		close(v.release)
		s.Start()
		rig.Until(t, "the call with what was said", 2*time.Minute, func() bool { _, there := v.callsWritten("blue lamp"); return there })
		if made, _ := v.callsWritten(""); made != 1 {
			t.Errorf("the call was made %d times", made)
		}
		var syncs struct {
			Data []struct{ Kind, Status, External_id string }
		}
		rig.Until(t, "a synced call", time.Minute, func() bool {
			company.Want(200, "GET", "/crm/sync-jobs", nil, &syncs)
			return len(syncs.Data) == 1 && syncs.Data[0].Status == "synced"
		})
		if x := syncs.Data[0]; x.Kind != "call" || x.External_id != "901" {
			t.Errorf("synced %+v", x)
		}
	})
}
