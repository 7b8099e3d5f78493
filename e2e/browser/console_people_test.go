package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
)

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
