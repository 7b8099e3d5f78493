package browser

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// In a browser without scripts, a user chooses a password, makes a key and authorises a program. axe finds no fault
// on any page.
func TestAccount_SignInKeyAndAuthorization(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{DB: rig.OwnDB(t), Load: rig.Browser, Flags: []string{"--transcriber", "off"}}) // with one organisation
	link := strings.TrimSpace(s.Command("admin", "users", "add", "ada@example.com", "--first-name", "Ada"))
	p := &person{t: t, chromium: open(t, tone(t, "440"), link), base: "http://" + s.HTTP}
	p.scripts(false)
	p.shows("Choose a password")
	p.clean()
	p.choosePassword()
	p.shows("owner of")
	p.clean()
	key := p.makeKey()
	if r := bearer(t, "GET", p.base+"/v1/me", key); r.StatusCode != 200 {
		t.Errorf("the key opens nothing: %s", r.Status)
	}
	p.visit("/account/assistants")
	p.shows("No assistant")
	p.clean()
	p.visit("/account/security")
	p.press("Set up an authenticator")
	p.shows("Read this picture")
	p.clean()
	p.press("Sign out")
	p.shows("Sign in")
	code := p.consent()
	token := p.redeem(code)
	if r := bearer(t, "GET", p.base+"/v1/calls", token); r.StatusCode != 200 {
		t.Errorf("the token does not read calls: %s", r.Status)
	}
	r := bearer(t, "POST", p.base+"/v1/calls", token)
	challenge := r.Header.Get("WWW-Authenticate")
	if r.StatusCode != 403 || !strings.Contains(challenge, `scope="calls:read calls:write"`) || !strings.Contains(challenge, `resource_metadata="`+p.base+"/.well-known/") {
		t.Errorf("what was unticked: %s, %s", r.Status, challenge)
	}
	p.visit("/account/assistants")
	p.shows("soniq-assistant", "calls:read")
	p.clean()
	p.press("Revoke")
	p.shows("No assistant")
	if r := bearer(t, "GET", p.base+"/v1/calls", token); r.StatusCode != 401 || !strings.Contains(r.Header.Get("WWW-Authenticate"), `error="invalid_token"`) {
		t.Errorf("a revoked token: %s", r.Status)
	}
}

// person is a browser on the account page.
type person struct {
	*chromium
	t    *testing.T
	base string
}

// scripts sets whether pages may run scripts.
func (p *person) scripts(run bool) {
	p.t.Helper()
	if _, err := p.command("Emulation.setScriptExecutionDisabled", map[string]any{"value": !run}); err != nil {
		p.t.Fatal(err)
	}
}

// shows waits for texts on the page.
func (p *person) shows(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		until(p.t, text+" on the page", pageTime, func() bool {
			var page string
			return p.try(&page, "document.readyState + document.body.innerText") == nil && strings.HasPrefix(page, "complete") && strings.Contains(page, text)
		})
	}
}

func (p *person) visit(path string) {
	p.t.Helper()
	if _, err := p.command("Page.navigate", map[string]any{"url": p.base + path}); err != nil {
		p.t.Fatal(err)
	}
	var at string
	until(p.t, path, pageTime, func() bool {
		return p.try(&at, "document.readyState + location.pathname") == nil && strings.HasPrefix(at, "complete/")
	})
}

func (p *person) fill(id, text string) {
	p.t.Helper()
	p.eval(nil, "void (document.getElementById(%s).value = %s)", quoted(id), quoted(text))
}

// press presses the first button with a label and waits for the page that follows.
func (p *person) press(label string) {
	p.t.Helper()
	var there bool
	p.eval(&there, "((b) => (b && b.click(), !!b))([...document.querySelectorAll('button')].find((b) => b.innerText.trim() === %s))", quoted(label))
	if !there {
		p.t.Fatalf("no button %q", label)
	}
}

// choosePassword chooses the consolePassword on the page of an invitation.
func (p *person) choosePassword() {
	p.t.Helper()
	p.shows("Choose a password")
	p.fill("password", consolePassword)
	p.fill("again", consolePassword)
	p.press("Keep it and sign in")
}

// signIn signs in with the consolePassword.
func (p *person) signIn(email string) {
	p.t.Helper()
	p.shows("Sign in", "Password")
	p.fill("email", email)
	p.fill("password", consolePassword)
	p.press("Sign in")
}

// clean fails for everything that axe reports on the page.
func (p *person) clean() {
	p.t.Helper()
	axe, err := os.ReadFile(filepath.Join(rig.Root(), "e2e", "node", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		p.t.Fatal("no axe-core: scripts/setup test installs it")
	}
	p.scripts(true) // scripts run for axe only: the page was loaded without them
	defer p.scripts(false)
	p.eval(nil, "%s", "void (() => {"+string(axe)+"\n})()")
	var found []struct {
		ID, Help string
		Nodes    []struct{ HTML string }
	}
	var title string
	p.eval(&title, "document.title")
	p.eval(&found, "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations)")
	for _, v := range found {
		p.t.Errorf("%s: %s: %s: %v", title, v.ID, v.Help, v.Nodes)
	}
}

func (p *person) makeKey() string {
	p.t.Helper()
	p.visit("/account/keys")
	p.shows("New key", "view calls, CDR")
	p.clean()
	p.fill("name", "billing")
	p.eval(nil, "document.getElementById('calls:read').click()")
	p.press("Create key")
	p.shows("Copy it now")
	p.clean()
	var key string
	p.eval(&key, "document.getElementById('made').value")
	if !strings.HasPrefix(key, "soniq_live_") {
		p.t.Fatalf("the key is %q", key)
	}
	p.visit("/account/keys")
	var page string
	p.eval(&page, "document.documentElement.outerHTML")
	if strings.Contains(page, key) || !strings.Contains(page, "billing") {
		p.t.Error("the key is shown twice, or its record not at all")
	}
	return key
}

const codeVerifier = "a-verifier-of-more-than-forty-three-characters-0"

// consent authorises a program except for one of the scopes it requests, and returns the authorization code.
func (p *person) consent() string {
	p.t.Helper()
	answers := make(chan url.Values, 1)
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" {
			answers <- r.URL.Query()
		}
		_, _ = fmt.Fprint(w, "done")
	}))
	p.t.Cleanup(program.Close)
	sum := sha256.Sum256([]byte(codeVerifier))
	q := url.Values{"response_type": {"code"}, "client_id": {"soniq-assistant"}, "redirect_uri": {program.URL + "/callback"}, "scope": {"calls:read calls:write"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "state": {"a+b&c=d"}, "resource": {p.base}}
	p.visit("/auth/oauth/authorize?" + q.Encode())
	p.shows("Sign in")
	p.clean()
	p.fill("email", "ada@example.com")
	p.fill("password", "correct horse battery")
	p.press("Sign in")
	p.shows("soniq-assistant", strings.TrimPrefix(program.URL, "http://"), "make calls, hold, transfer")
	p.clean()
	p.eval(nil, "document.getElementById('calls:write').click()")
	p.press("Allow")
	select {
	case a := <-answers:
		if a.Get("state") != "a+b&c=d" || a.Get("iss") != p.base+"/auth" || a.Get("code") == "" {
			p.t.Fatalf("the program was told %v", a)
		}
		return a.Get("code")
	case <-time.After(limit.Hang(0)):
		p.t.Fatal("the browser was not led back")
	}
	return ""
}

func (p *person) redeem(code string) string {
	p.t.Helper()
	client := http.Client{Timeout: 30 * time.Second}
	r, err := client.PostForm(p.base+"/auth/oauth/token", url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {"soniq-assistant"}, "code_verifier": {codeVerifier}})
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	var got struct {
		Token string `json:"access_token"`
		Scope string
	}
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got.Scope != "calls:read" {
		p.t.Fatalf("%s: %+v, %v", r.Status, got, err)
	}
	return got.Token
}

// bearer sends a request with a credential.
func bearer(t *testing.T, method, address, token string) *http.Response {
	t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(`{"to":"+442079460018"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: 30 * time.Second}
	a, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	return a
}
