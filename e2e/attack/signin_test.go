package attack

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// Wrong passwords elsewhere do not lock the victim's own browser out.
func TestSignIn_KnownBrowserGoesOn(t *testing.T) {
	t.Parallel()
	const email, password = "victim@example.com", "correct horse battery"
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	o := fixture.NewOrg(s)
	known := o.SignInBrowser(email, "agent", password)
	login := "http://" + s.HTTP + "/account/login"
	jar, _ := cookiejar.New(nil)
	attacker := &http.Client{Jar: jar}
	for range 5 {
		o.SubmitForm(attacker, login, url.Values{"email": {email}, "password": {"a wrong password"}})
	}
	if a := o.SubmitForm(attacker, login, url.Values{"email": {email},
		"password": {password}}); a.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the attacker goes on: %d", a.StatusCode)
	}
	o.SubmitForm(known, "http://"+s.HTTP+"/account", url.Values{}) // the first form of the page signs out
	if a := o.SubmitForm(known, login, url.Values{"email": {email}, "password": {password}}); a.Request.URL.Path != "/account" {
		t.Errorf("the victim is locked out: %d at %s", a.StatusCode, a.Request.URL.Path)
	}
}
