package browser

import (
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// pagesOf are the links of the navigation for each role.
var pagesOf = map[string][]string{
	"viewer": {"Calls", "Team"}, "agent": {"Desk", "Calls", "Team"}, "supervisor": {"Desk", "Calls", "Team"}, "admin": {"Desk", "Calls", "Team"},
	"owner": {"Desk", "Calls", "Team"},
}

// Each role sees the pages of its scopes and no others, and every request of these pages is answered.
func TestConsole_Roles(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 4*time.Minute, "a browser for each of five roles opens every page")
	s := sharedServer(t)
	for _, role := range []string{"viewer", "agent", "supervisor", "admin", "owner"} {
		t.Run(role, func(t *testing.T) {
			office := fixture.NewOrg(s).In(t)
			bob := office.AddUser("Bob")
			office.AddQueue(nil, bob)
			p, _ := openConsole(office, role, "/console/", "440")
			p.has("navigation", "Pages")
			var links []string
			until(t, "the links", pageTime, func() bool {
				p.eval(&links, `[...document.querySelectorAll("nav li a")].map((a) => a.innerText.trim())`)
				return len(links) > 0
			})
			for _, want := range pagesOf[role] {
				if !slices.Contains(links, want) {
					t.Errorf("a %s does not see %s: %v", role, want, links)
				}
			}
			if slices.Contains(links, "Desk") != slices.Contains(pagesOf[role], "Desk") {
				t.Errorf("a %s sees %v", role, links)
			}
			for _, link := range links {
				p.click("link", link)
				p.has("heading", link)
				p.shows("Live")
			}
			p.goTo("/console/profile")
			p.has("heading", "My phones")
			p.keyWith("k", ctrl)
			p.has("dialog", "")
			p.write("Bob")
			p.offers("Bob")
			p.key("Escape")
			if !slices.Contains(links, "Desk") {
				p.goTo("/console/desk")
				p.has("heading", "There is no such page")
			}
			p.goTo("/console/team")
			p.shows("Bob")
			if may := role == "supervisor" || role == "admin" || role == "owner"; may != (len(p.nodes("button", "Set the presence of Bob")) > 0) {
				t.Errorf("a %s may choose the presence of others: %v", role, !may)
			}
			p.answered()
			p.faultless()
		})
	}
}

// answered fails for requests of the page that the server has refused.
func (p *consolePage) answered() {
	p.t.Helper()
	for _, a := range p.answers() {
		if a.status >= 400 {
			p.t.Errorf("the page asked for %s: %d", a.path, a.status)
		}
	}
}

// The page shows within seconds that its session was ended or its password changed elsewhere. It also shows that its user was suspended,
// or that the role was lowered. After signing in again the user is on the same page.
func TestConsole_SessionEndsElsewhere(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 4*time.Minute, "two browsers sign in several times")
	rig.Both(t, rig.Options{Load: rig.Browser, Flags: []string{"--transcriber", "off"}}, sessionEndsElsewhere)
}

func sessionEndsElsewhere(t *testing.T, s *rig.Server) {
	office := fixture.NewOrg(s)
	p, user := colleague(office, "Dana", "Reed", "supervisor", "/console/team?q=dana", "440")
	p.shows("Live", "Dana Reed")

	office.Want(200, "PATCH", "/users/"+user.ID, map[string]any{"role": "viewer"}, nil)
	p.shows("Your role is now: Viewer.")
	p.hasNot("link", "Desk")
	p.click("button", "Close")
	p.at("/console/team?q=dana")
	office.Want(200, "PATCH", "/users/"+user.ID, map[string]any{"role": "supervisor"}, nil)
	p.shows("Your role is now: Supervisor.")
	p.has("link", "Desk")

	other := &person{t: t, base: p.base, chromium: open(t, tone(t, "440"), p.base+"/account/login", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")}
	other.signIn(mailOf(p.t, "Dana"))
	other.shows("supervisor of")
	other.visit("/account/security")
	other.eval(nil, `void document.querySelector("form[action^='/account/sessions/'] button").click()`)
	p.has("heading", "You are signed out")
	p.signInAgain(consolePassword)
	p.at("/console/team?q=dana")
	p.shows("Live")

	other.visit("/account/security")
	other.shows("Change password")
	other.fill("current", consolePassword)
	other.fill("password", nextPassword)
	other.fill("again", nextPassword)
	other.press("Change password")
	p.has("heading", "You are signed out")
	p.signInAgain(nextPassword)
	p.at("/console/team?q=dana")

	office.Want(200, "PATCH", "/users/"+user.ID, map[string]any{"status": "suspended"}, nil)
	p.has("heading", "You are signed out")
	p.checked("signed-out")
	office.Want(200, "PATCH", "/users/"+user.ID, map[string]any{"status": "active"}, nil)
	p.signInAgain(nextPassword)
	p.at("/console/team?q=dana")
}

// nextPassword is a password that a user changes to.
const nextPassword = "staple battery horse"

// signInAgain signs in on the page that says that the session has ended.
func (p *consolePage) signInAgain(password string) {
	p.t.Helper()
	if _, err := p.command("Network.clearBrowserCookies", map[string]any{}); err != nil { // the session might count again
		p.t.Fatal(err)
	}
	p.click("link", "Sign in")
	p.person.shows("Sign in", "Password")
	p.fill("email", mailOf(p.t, "Dana"))
	p.fill("password", password)
	p.press("Sign in")
	p.has("heading", "")
}

// hostile are texts of outsiders: markup, script, directions of writing, and great length.
var hostile = []string{`<img src=x onerror="window.hit=1">`, `"><script>window.hit=1</script>`, "Ada\u202egnp.exe\u2066", "{{constructor.constructor('window.hit=1')()}}",
	`javascript:window.hit=1`}

// Names and notes of outsiders are shown as text. No other page may frame the console, and a sign-in leads to no other host.
func TestConsole_Attacks(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 3*time.Minute, "a browser opens several pages with hostile texts")
	office := newOffice(t)
	p, user := colleague(office, "Dana", "Reed", "admin", "/console/team", "440")
	for i, text := range hostile {
		office.Want(201, "POST", "/contacts", map[string]any{"first_name": text, "last_name": "Hostile",
			"phones": []map[string]any{{"number": "+1212555010" + string(rune('1'+i))}}}, nil)
	}
	var bad rig.User
	office.Want(201, "POST", "/users", map[string]any{"email": "eve@example.com", "first_name": hostile[0], "last_name": strings.Repeat("W", 120),
		"send_invite": false}, &bad)
	office.AddQueue(map[string]any{"name": hostile[1]}, user, bad)
	office.Want(200, "PUT", "/agents/"+bad.ID+"/presence", map[string]any{"status": "away", "reason": hostile[2]}, nil)
	p.shows(hostile[0], hostile[1])
	p.checked("team-hostile")
	p.keyWith("k", ctrl)
	p.has("dialog", "")
	p.write("Hostile")
	p.offers(hostile[0] + " Hostile")
	p.checked("find-hostile")
	p.write(strings.Repeat("<b>", 30))
	p.shows("Nothing was found for “Hostile<b>")
	p.key("Escape")
	p.goTo("/console/team?q=%3Cimg%20src%3Dx%20onerror%3Dwindow.hit%3D1%3E")
	p.shows("Nobody matches these filters.")
	var hit bool
	p.eval(&hit, "window.hit !== undefined || document.querySelector('img[src=x]') !== null")
	if hit {
		t.Error("a text of an outsider became markup")
	}
	p.faultless()

	p.attackFrame()
	for _, next := range []string{"//evil.example/", "https://evil.example/", `/\evil.example`, "/account@evil.example/", "javascript:alert(1)"} {
		if _, err := p.command("Network.clearBrowserCookies", map[string]any{}); err != nil {
			t.Fatal(err)
		}
		p.visit("/account/login?next=" + strings.ReplaceAll(strings.ReplaceAll(next, `\`, "%5C"), ":", "%3A"))
		p.person.shows("Sign in")
		p.fill("email", mailOf(p.t, "Dana"))
		p.fill("password", consolePassword)
		p.press("Sign in")
		p.person.shows("admin of")
		var at string
		p.eval(&at, "location.href")
		if !strings.HasPrefix(at, p.base+"/account") {
			t.Errorf("next=%s leads to %s", next, at)
		}
	}
}
