package signin_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/signin"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db/dbtest"
)

// Wrong passwords from another address, however many, do not lock out a person whose browser is known. A new browser elsewhere signs in
// too, until very many addresses have guessed.
func TestSignIn_VictimOfGuessesGoesOn(t *testing.T) {
	eachDB(t, func(p *fixture) {
		known := p.signedInBrowser("ada@example.com", "agent")
		known.send("/account/logout")
		attacker := p.newBrowser()
		for range 5 {
			attacker.signIn("ada@example.com", "wrong password")
		}
		attacker.signIn("ada@example.com", good)
		if attacker.wantText("Try again in"); attacker.status != 429 {
			p.t.Errorf("guesses go on: %d", attacker.status)
		}
		if known.signIn("ada@example.com", good); known.path != "/account" {
			p.t.Errorf("the known browser is locked out: %s", known.text)
		}
		known.send("/account/logout")
		for range 5 {
			known.signIn("ada@example.com", "wrong password")
		}
		if known.signIn("ada@example.com", good); known.status != 429 {
			p.t.Errorf("guesses in a known browser go on: %d at %s", known.status, known.path)
		}
		p.from = netip.MustParseAddr("198.51.100.7")
		if v := p.newBrowser(); v.signIn("ada@example.com", good).path != "/account" {
			p.t.Errorf("a new browser at another address: %s", v.text)
		}
		refused := 0
		for i := range 30 { // 30 addresses with four guesses each
			p.from = netip.AddrFrom4([4]byte{203, 0, 113, byte(i)})
			for range 4 {
				if v := p.newBrowser(); v.signIn("ada@example.com", "wrong password").status == 429 {
					refused++
				}
			}
		}
		if refused < 15 {
			p.t.Errorf("of 120 guesses from many addresses %d were refused", refused)
		}
	})
}

// A device cookie of one person says nothing about another, and a made-up one is worth nothing.
func TestSignIn_DeviceOfAnotherIsUnknown(t *testing.T) {
	eachDB(t, func(p *fixture) {
		p.signedInBrowser("ada@example.com", "agent").send("/account/logout")
		eve := p.signedInBrowser("eve@example.com", "agent")
		eve.send("/account/logout")
		for range 5 {
			eve.signIn("ada@example.com", "wrong password")
		}
		if v := p.newBrowser(); v.signIn("ada@example.com", good).status != 429 {
			p.t.Error("the guesses of another person's browser were not counted for the address")
		}
		if eve.signIn("eve@example.com", good); eve.path != "/account" {
			p.t.Errorf("eve at %s", eve.path)
		}
	})
}

func TestSession_AbsoluteLifetime(t *testing.T) {
	eachDB(t, func(p *fixture) {
		v := p.signedInBrowser("ada@example.com", "agent")
		for range 13 {
			p.now = p.now.Add(12 * time.Hour)
			if v.get("/account"); v.path != "/account" {
				p.t.Fatalf("a used session ended at %s", p.now)
			}
		}
		p.now = p.now.Add(13 * time.Hour)
		if v.get("/account"); v.path != "/account/login" {
			p.t.Error("a session lasts longer than a week")
		}
	})
}

// Fifteen minutes after the sign-in, keys and the second factor need the password again.
func TestSession_LastingAccessNeedsPassword(t *testing.T) {
	eachDB(t, func(p *fixture) {
		v := p.signedInBrowser("ada@example.com", "admin")
		p.now = p.now.Add(16 * time.Minute)
		keys := func() int {
			all, err := p.keys.VisibleKeys(context.Background(), access.Principal{OrgID: p.org.ID, UserID: v.user.ID, Scopes: access.All()})
			if err != nil {
				p.t.Fatal(err)
			}
			return len(all)
		}
		v.get("/account/keys")
		v.send("/account/keys", "name", "stolen", "kind", "standard", "environment", "live", "scope", "calls:read", "current", "")
		if v.wantText("Enter your current password"); keys() != 0 || v.status != 403 {
			p.t.Errorf("a key was made without a password: %d", v.status)
		}
		v.send("/account/keys", "name", "stolen", "kind", "standard", "environment", "live", "scope", "calls:read", "current", "wrong password")
		if v.wantText("password is wrong"); keys() != 0 {
			p.t.Error("a key was made with a wrong password")
		}
		v.get("/account/security")
		v.send("/account/totp/start", "current", "")
		if v.status != 403 || strings.Contains(v.text, "data:image/png") {
			p.t.Errorf("the second factor was begun without a password: %d", v.status)
		}
		v.get("/account/keys")
		v.send("/account/keys", "name", "mine", "kind", "standard", "environment", "live", "scope", "calls:read", "current", good)
		if keys() != 1 {
			p.t.Errorf("no key with the password: %s", v.text)
		}
		v.get("/account/keys")
		v.send("/account/keys/key_", "current", "")
		if keys() != 1 || v.status != 403 {
			p.t.Errorf("a key was rotated without a password: %d", v.status)
		}
	})
}

// An invalid request of a client on another host does not redirect the browser there: not before the sign-in, and not after.
func TestConsent_NoOpenRedirect(t *testing.T) {
	eachDB(t, func(p *fixture) {
		client := p.registerClient("https://client.example/cb")
		bad := "/auth/oauth/authorize?" + p.request("client_id", client, "redirect_uri", "https://client.example/cb", "code_challenge_method", "plain").Encode()
		for _, v := range []*testBrowser{p.newBrowser(), p.signedInBrowser("ada@example.com", "admin")} {
			v.get(bad)
			if v.redirectedTo != "" || v.status != 400 {
				p.t.Errorf("led to %q: %d", v.redirectedTo, v.status)
			}
			v.wantText("client.example", "go back", "invalid_request")
		}
	})
}

// A password that is known does not make guesses of the second factor free: they are counted from all addresses together.
func TestSignIn_GuessesOfCodesAreCounted(t *testing.T) {
	eachDB(t, func(p *fixture) {
		v := p.signedInBrowser("ada@example.com", "admin")
		v.get("/account/security")
		v.send("/account/totp/start")
		v.send("/account/totp/confirm", "code", signin.Code(seedOn(v.text), p.now))
		attacker, refused := p.newBrowser(), 0
		for i := range 30 { // 30 addresses with four guesses each, after another sign-in with the password at each tenth
			p.from = netip.AddrFrom4([4]byte{203, 0, 113, byte(i)})
			if i%10 == 0 {
				p.from = netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})
				attacker = p.newBrowser()
				attacker.signIn("ada@example.com", good)
			}
			for range 4 {
				attacker.get("/account/login")
				if attacker.send("/account/code", "code", "000000"); attacker.status == 429 {
					refused++
				}
			}
		}
		if refused < 10 {
			p.t.Errorf("of 120 guesses of a code %d were refused", refused)
		}
	})
}

// TestSignIn_AttemptsOfAnAddress checks that an address has 60 attempts in ten minutes, over all accounts together.
func TestSignIn_AttemptsOfAnAddress(t *testing.T) {
	t.Parallel()
	p := newFixture(t, dbtest.SQLite(t))
	v := p.newBrowser()
	for i := range 60 {
		if v.signIn(fmt.Sprintf("guess%d@example.com", i), "wrong password"); v.status != 401 {
			t.Fatalf("attempt %d: %d", i, v.status)
		}
	}
	if v.signIn("another@example.com", "wrong password"); v.status != 429 {
		t.Errorf("attempt 61: %d", v.status)
	}
	p.from = netip.MustParseAddr("198.51.100.7")
	if v.signIn("another@example.com", "wrong password"); v.status != 401 {
		t.Errorf("another address: %d", v.status)
	}
}
