package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A page of the server reads, writes and follows events with the session. A request of a page at another port of the same host carries the
// cookie too. It has no effect, although CORS allows that page to use the API.
func TestSession_PagesOfThisServerOnly(t *testing.T) {
	t.Parallel()
	s := sharedServer(t, "--cors-origins", "*")
	link := strings.TrimSpace(s.Command("admin", "users", "add", "grace@example.com", "--first-name", "Grace"))
	p := &person{t: t, chromium: open(t, tone(t, "440"), link), base: "http://" + s.HTTP}
	p.choosePassword()
	p.shows("owner of")
	p.visit("/docs") // whose policy allows requests to this server
	p.asks("GET", "/api/v1/me", "", `"session"`, "200")
	p.asks("POST", "/api/v1/contacts", `{"Content-Type":"application/json","Soniq-Page":"1"}`, "Welcome", "201")
	p.asks("POST", "/api/v1/contacts", `{"Content-Type":"application/json"}`, "Soniq-Page", "401")
	p.asks("GET", "/sandbox/v1/me", "", "wrong_environment", "403")
	var told string
	p.eval(&told, `new Promise((done, failed) => {
		const events = new EventSource("/api/v1/events/stream?events=user.created");
		events.addEventListener("user.created", (e) => { events.close(); done(e.data); });
		events.onopen = () => fetch("/api/v1/users", {method: "POST", headers: {"Content-Type": "application/json", "Soniq-Page": "1"},
			body: JSON.stringify({email: "linus@example.com", first_name: "Linus", send_invite: false})})
			.then((r) => r.ok || failed(r.status), failed);
	})`)
	if !strings.Contains(told, "linus@example.com") {
		t.Errorf("EventSource got %s", told)
	}
	p.attackFrom(httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><title>Prize</title><p>You have won")
	})))
	p.visit("/docs")
	p.asks("GET", "/api/v1/contacts", "", "Welcome", "200")
	var contacts string
	p.eval(&contacts, `fetch("/api/v1/contacts").then((r) => r.text())`)
	if strings.Contains(contacts, "Eve") {
		t.Errorf("another page added a contact: %s", contacts)
	}
}

// asks sends a request from the page, and compares status and a text of the answer.
func (p *person) asks(method, address, headers, text, status string) {
	p.t.Helper()
	if headers == "" {
		headers = "{}"
	}
	body := "undefined"
	if method != "GET" {
		body = quoted(`{"first_name":"Welcome"}`)
	}
	var got string
	p.eval(&got, `fetch(%s, {method: %s, headers: %s, body: %s}).then(async (r) => r.status + " " + await r.text())`, quoted(address),
		quoted(method), headers, body)
	if !strings.HasPrefix(got, status+" ") || !strings.Contains(got, text) {
		p.t.Errorf("%s %s %s: %s, want %s with %s", method, address, headers, got, status, text)
	}
}

// attackFrom opens a page of another server and tries from there to read, to write and to follow events.
func (p *person) attackFrom(other *httptest.Server) {
	p.t.Helper()
	p.t.Cleanup(other.Close)
	if _, err := p.command("Page.navigate", map[string]any{"url": other.URL}); err != nil {
		p.t.Fatal(err)
	}
	p.shows("You have won")
	for what, request := range map[string]string{
		"a read with the cookie": `fetch(%s + "/api/v1/me", {credentials: "include"})`,
		"a write with the header": `fetch(%s + "/api/v1/contacts", {method: "POST", credentials: "include", body: '{"first_name":"Eve"}',
			headers: {"Content-Type": "application/json", "Soniq-Page": "1"}})`,
	} {
		var got string
		p.eval(&got, request+`.then((r) => "answered " + r.status, (e) => "refused by the browser")`, quoted(p.base))
		if got != "refused by the browser" {
			p.t.Errorf("%s: %s", what, got)
		}
	}
	p.eval(nil, `fetch(%s + "/api/v1/contacts", {method: "POST", mode: "no-cors", credentials: "include", body: '{"first_name":"Eve"}'})
		.then(() => null)`, quoted(p.base))
	var followed string
	p.eval(&followed, `new Promise((done) => {
		const events = new EventSource(%s + "/api/v1/events/stream", {withCredentials: true});
		events.onopen = () => done("open");
		events.onerror = () => done("refused");
	})`, quoted(p.base))
	if followed != "refused" {
		p.t.Errorf("EventSource of another page is %s", followed)
	}
	p.eval(nil, `(() => {
		document.body.innerHTML = '<form method="post" enctype="text/plain"><input name=\'{"first_name":"Eve","x":"\' value=\'"}\'></form>';
		document.forms[0].action = %s + "/api/v1/contacts";
		document.forms[0].submit();
	})()`, quoted(p.base))
	p.shows("a session counts only for pages of this server") // so the cookie was sent
}
