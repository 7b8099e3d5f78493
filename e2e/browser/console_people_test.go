package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// colleague adds a user with a role and a name, who chooses a password by the invitation, and opens the console at a path in a browser of
// their own. hz is the tone of the microphone.
func colleague(office *fixture.Org, first, last, role, path, hz string) (p *consolePage, user rig.User) {
	t := office.T.(*testing.T)
	t.Helper()
	var made struct {
		rig.User
		Invitation struct{ URL string }
	}
	office.Want(201, "POST", "/users", map[string]any{"email": mailOf(t, first), "first_name": first, "last_name": last, "role": role,
		"provision_sip": false}, &made)
	return welcome(t, "http://"+office.Server.HTTP, made.Invitation.URL, role+" of", path, hz), made.User
}

// mailOf returns an e-mail address that no other test uses: organisations of a server may have people with the same address.
func mailOf(t *testing.T, first string) string {
	return strings.ToLower(first + "." + strings.ReplaceAll(t.Name(), "/", ".") + "@example.com")
}

// welcome opens the link of an invitation in a new browser, chooses a password, and opens the console at a path.
func welcome(t *testing.T, base, link, shown, path, hz string) *consolePage {
	t.Helper()
	c := open(t, tone(t, hz), link, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--lang=en-GB", "--accept-lang=en-GB")
	p := &consolePage{person: &person{t: t, chromium: c, base: base}}
	p.person.shows("Choose a password")
	p.fill("password", consolePassword)
	p.fill("again", consolePassword)
	p.press("Keep it and sign in")
	p.person.shows(shown)
	p.watch()
	p.goTo(path)
	return p
}

// write types a text into the element that has the focus.
func (p *consolePage) write(text string) {
	p.t.Helper()
	if r, err := p.command("Input.insertText", map[string]any{"text": text}); err != nil || r.Error != nil {
		p.t.Fatal(err, r.Error)
	}
}

// at waits until the page has an address.
func (p *consolePage) at(want string) {
	p.t.Helper()
	var at string
	until(p.t, "the address "+want, pageTime, func() bool {
		return p.try(&at, "location.pathname + location.search") == nil && at == want
	})
}

// asked returns method and path of the requests that the page has sent since it was watched.
func (p *consolePage) asked() (all []string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, told := range p.told {
		var e struct {
			Request struct{ Method, URL string }
		}
		if told.Method != "Network.requestWillBeSent" || json.Unmarshal(told.Params, &e) != nil {
			continue
		}
		if u, err := url.Parse(e.Request.URL); err == nil {
			all = append(all, e.Request.Method+" "+u.Path)
		}
	}
	return all
}

// answer is an answer of the server to a request of the page.
type answer struct {
	path   string
	status int
}

// answers returns the answers of the API that the page has got since it was watched.
func (p *consolePage) answers() (all []answer) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, told := range p.told {
		var e struct {
			Response struct {
				URL    string
				Status int
			}
		}
		if told.Method != "Network.responseReceived" || json.Unmarshal(told.Params, &e) != nil {
			continue
		}
		if u, err := url.Parse(e.Response.URL); err == nil && strings.HasPrefix(u.Path, "/api/") {
			all = append(all, answer{u.Path, e.Response.Status})
		}
	}
	return all
}

// attackFrame opens a page of another server that frames the console, and checks that the browser refuses to show it.
func (p *consolePage) attackFrame() {
	p.t.Helper()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>Prize</title><p>You have won<iframe src="%s/console/team" onload="window.loaded = true"></iframe>`, p.base)
	}))
	p.t.Cleanup(other.Close)
	if _, err := p.command("Page.navigate", map[string]any{"url": other.URL}); err != nil {
		p.t.Fatal(err)
	}
	p.person.shows("You have won")
	refused := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.ContainsFunc(p.told, func(told reply) bool {
			return told.Method == "Log.entryAdded" && strings.Contains(string(told.Params), "frame-ancestors")
		})
	}
	until(p.t, "the refusal of the frame", pageTime, refused)
}

// offers waits until Find offers something with a name.
func (p *consolePage) offers(name string) {
	p.t.Helper()
	until(p.t, name+" in what was found", pageTime, func() (there bool) {
		return p.try(&there, fmt.Sprintf(`[...document.querySelectorAll("[role=option] .name")].some((n) => n.innerText === %s)`, quoted(name))) == nil && there
	})
}
