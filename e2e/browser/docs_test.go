package browser

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// The reference works without a network except to the server. An address opens its operation, every group is listed,
// and operations show examples and schemas. The search finds operations, events, schemas and error codes. The page
// requests nothing from other hosts.
func TestReference_Offline(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	p := &reference{t: t, chromium: open(t, tone(t, "440"), "http://"+s.HTTP+"/docs#/operations/users.create", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the page as it was seen last: %s", p.page[max(0, len(p.page)-3000):])
		}
	})
	p.watch()
	p.shows("add a user", "last_name", "send_invite", "curl --request POST", "http://"+s.HTTP+"/api/v1/users")
	p.shows(tagsOf(t, s)...)
	p.finds("transfer a call", "#/operations/calls.transfer")
	p.finds("insufficient_scope", "/errors/insufficient_scope")
	p.follow("calls.create", "#/operations/calls.create")
	p.shows("start an outbound call", "+442079460018", "Idempotency-Key", "client_reference", "send api request")
	p.click(`[role="tab"], button`, "403")
	p.shows("insufficient_scope")
	p.follow("call.ended", "#/webhooks/webhook.call.ended")
	p.shows("webhook-signature", "talk_duration_seconds")
	p.follow("schema callcdr", "#/schemas/CallCDR")
	p.shows("q850_cause")
	p.askedOnly("http://" + s.HTTP + "/")
}

// pageTime is the time limit for the page to show something on a busy machine.
var pageTime = limit.Hang(0)

// reference is the page of the reference in a browser.
type reference struct {
	*chromium
	t    *testing.T
	page string // the text when last read
}

// watch enables the events for errors and requests of the page, and reloads it so that they cover its beginning.
func (p *reference) watch() {
	p.t.Helper()
	for _, method := range []string{"Network.enable", "Runtime.enable", "Log.enable", "Page.reload"} {
		if _, err := p.command(method, map[string]any{}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// shows waits for texts on the page, upper and lower case alike.
func (p *reference) shows(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		until(p.t, text+" on the page", pageTime, func() bool {
			err := p.try(&p.page, "document.body.innerText + [...document.querySelectorAll('input, textarea')].map((i) => i.value).join(' ')")
			return err == nil && strings.Contains(strings.ToLower(p.page), strings.ToLower(text))
		})
	}
}

// finds types into the search until it lists an address.
func (p *reference) finds(query, want string) {
	p.t.Helper()
	var found []string
	until(p.t, "search to find "+query, pageTime, func() bool {
		p.eval(&found, `((box) => (box.value = %s, box.dispatchEvent(new Event("input")),
			[...document.querySelectorAll("#found a")].map((a) => a.getAttribute("href"))))(document.getElementById("find"))`, quoted(query))
		return strings.Contains(strings.Join(found, " "), want)
	})
}

// follow goes to an address that the search lists.
func (p *reference) follow(query, address string) {
	p.t.Helper()
	p.finds(query, address)
	p.click(`#found a[href="`+address+`"]`, "")
}

// click waits for an element that is chosen by a selector and starts with a text, and clicks it.
func (p *reference) click(selector, text string) {
	p.t.Helper()
	until(p.t, selector+" "+text+" to click", pageTime, func() (there bool) {
		p.eval(&there, `((e) => (e && e.click(), !!e))([...document.querySelectorAll(%s)].find((e) => e.innerText.trim().startsWith(%s)))`, quoted(selector), quoted(text))
		return there
	})
}

// askedOnly fails for every request of the page to another origin, and for every error that the browser reported.
func (p *reference) askedOnly(origin string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := 0
	for _, told := range p.told {
		var e struct {
			Request struct{ URL string }
			Type    string
			Entry   struct{ Level string }
		}
		_ = json.Unmarshal(told.Params, &e)
		switch told.Method {
		case "Network.requestWillBeSent":
			if asked++; !strings.HasPrefix(e.Request.URL, origin) && !strings.HasPrefix(e.Request.URL, "data:") {
				p.t.Errorf("the reference asks for %s", e.Request.URL)
			}
		case "Runtime.exceptionThrown":
			p.t.Errorf("an exception: %.700s", told.Params)
		case "Runtime.consoleAPICalled", "Log.entryAdded":
			if e.Type == "error" || e.Type == "assert" || e.Entry.Level == "error" {
				p.t.Errorf("the page complains: %.700s", told.Params)
			}
		}
	}
	if asked < 5 {
		p.t.Errorf("only %d requests were seen", asked)
	}
}

// tagsOf returns the groups of operations.
func tagsOf(t *testing.T, s *rig.Server) (names []string) {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second}
	r, err := client.Get("http://" + s.HTTP + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var d struct{ Tags []struct{ Name string } }
	if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
		t.Fatal(err)
	}
	for _, tag := range d.Tags {
		names = append(names, tag.Name)
	}
	if len(names) < 10 {
		t.Fatalf("only %d groups: %q", len(names), names)
	}
	return names
}
