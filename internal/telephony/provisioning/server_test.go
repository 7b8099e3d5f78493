package provisioning

import (
	"context"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

const (
	yealinkAgent = "Yealink SIP-T46S 66.86.0.15 00:15:65:ab:cd:ef"
	ownFile      = "001565abcdef.cfg"
)

func TestServe_FirstPhoneBindsAddress(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, address := h.phone(`,"vendor":"Yealink"`)
		if status, at := h.provisioningState(id); status != "pending" || at != nil {
			t.Errorf("before the first fetch: %s, %v", status, at)
		}
		h.want(200, address+"y000000000028.cfg", yealinkAgent)
		if status, _ := h.provisioningState(id); status != "pending" {
			t.Errorf("a file for all phones made it %s", status)
		}
		body := h.want(200, address+ownFile, yealinkAgent)
		password, login := value(t, body, "account.1.password"), value(t, body, "static.auto_provision.server.password")
		if !h.logsIn(id, password) || len(login) < 20 || login == password {
			t.Errorf("the phone cannot log in with %q, %q", password, login)
		}
		if status, at := h.provisioningState(id); status != "served" || at == nil {
			t.Errorf("after the first fetch: %s, %v", status, at)
		}
		if mac := h.do("GET", "/devices/"+id, nil).Text("mac"); mac != "00:15:65:ab:cd:ef" {
			t.Errorf("the phone has the MAC address %q", mac)
		}
		if again := h.want(200, address+ownFile, strings.ReplaceAll(yealinkAgent, "66.86", "66.87")); value(t, again,
			"account.1.password") != password {
			t.Error("the same phone, with newer firmware, got another password")
		}
		if version := h.do("GET", "/devices/"+id, nil).Text("firmware"); version != "66.87.0.15" {
			t.Errorf("its firmware is %q", version)
		}
		h.want(401, address+ownFile, "curl/8")
		h.now = h.now.Add(24 * time.Hour)
		h.want(401, address+ownFile, yealinkAgent)
		r, _ := http.NewRequest("GET", "/", nil)
		r.SetBasicAuth(value(t, body, "account.1.user_name"), login)
		if again := h.want(200, address+ownFile, "Yealink", "Authorization", r.Header.Get("Authorization")); value(t, again, "account.1.password") != password {
			t.Error("with the login the phone got another password")
		}
	})
}

// TestServe_MACInUserAgent proves that a phone gets its configuration however its User-Agent writes the MAC address. The address of the
// file counts, and the version of the firmware is read beside it.
//
// https://github.com/fusionpbx/fusionpbx/pull/2893
func TestServe_MACInUserAgent(t *testing.T) {
	t.Parallel()
	agents := []string{"00:15:65:ab:cd:ef", "001565abcdef", "00:15:65:AB:CD:EF", "00-15-65-ab-cd-ef", ""}
	for _, first := range agents {
		h := newFixture(t, dbtest.SQLite(t))
		id, address := h.phone(`,"vendor":"Yealink"`)
		password := value(t, h.want(200, address+ownFile, "Yealink SIP-T58 58.80.0.25 "+first), "account.1.password")
		if a := h.do("GET", "/devices/"+id, nil); a.Text("mac") != "00:15:65:ab:cd:ef" || a.Text("firmware") != "58.80.0.25" {
			t.Errorf("%q: MAC address %q, firmware %q", first, a.Text("mac"), a.Text("firmware"))
		}
		for _, next := range agents {
			if body := h.want(200, address+ownFile, "Yealink SIP-T58 58.80.0.25 "+next); value(t, body, "account.1.password") != password {
				t.Errorf("%q after %q: another password", next, first)
			}
		}
	}
}

func TestServe_ForeignMACRefusedAndAudited(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, address := h.phone(`,"vendor":"Yealink","mac":"00:15:65:ab:cd:ef"`)
		foreign, unknown := h.want(404, address+"001565000000.cfg", yealinkAgent), h.want(404, "/provision/none/"+ownFile, yealinkAgent)
		if foreign != unknown {
			t.Errorf("an address that there is not is answered by %q, another phone's by %q", unknown, foreign)
		}
		if status, at := h.provisioningState(id); status != "failed" || at != nil {
			t.Errorf("after another phone's request: %s, %v", status, at)
		}
		h.want(200, address+ownFile, yealinkAgent)
		if status, _ := h.provisioningState(id); status != "served" {
			t.Errorf("after the right phone's: %s", status)
		}
		rows, err := d.Read(context.Background()).Query(context.Background(),
			`SELECT target, key_name, source, status, record_id FROM audit WHERE org_id = $1 AND operation = 'devices.provision' ORDER BY at, id`, h.org)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var got []int
		for rows.Next() {
			var target, name, source, record string
			var status int
			if err := rows.Scan(&target, &name, &source, &status, &record); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(target, "GET /provision/…/0015") || name != yealinkAgent || source != h.source || record != id {
				t.Errorf("noted: %s %s %s %s", target, name, source, record)
			}
			got = append(got, status)
		}
		if len(got) != 2 || got[0] != 404 || got[1] != 200 {
			t.Errorf("noted with status %v", got)
		}
	})
}

func TestServe_UnusedAddressExpires(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id, address := h.phone(`,"vendor":"Yealink"`)
	h.now = h.now.Add(24 * time.Hour)
	h.want(404, address+ownFile, yealinkAgent)
	h.want(404, address+"qr.png", "curl")
	if status, _ := h.provisioningState(id); status != "none" {
		t.Errorf("it is %s", status)
	}
	a := h.do("PATCH", "/devices/"+id, `{"provisioning":{"status":"pending"}}`).Want(200)
	next := strings.TrimPrefix(a.Text("provisioning_url"), "https://voice.example.com")
	if next == address || a.Text("provisioning.url") != a.Text("provisioning_url") {
		t.Fatalf("a new address: %s", a.Bytes)
	}
	h.want(404, address+ownFile, yealinkAgent)
	h.want(200, next+ownFile, yealinkAgent)
	h.do("PATCH", "/devices/"+id, `{"provisioning":{"status":"none"}}`).Want(200)
	h.want(404, next+ownFile, yealinkAgent)
	h.do("PATCH", "/devices/"+id, `{"provisioning":{"status":"served"},"template_id":"acme"}`).
		Refused("validation_failed", "provisioning.status invalid_value", "template_id invalid_value")
}

func TestServe_NewAddressReplacesPassword(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, address := h.phone(`,"vendor":"Yealink"`)
		old := value(t, h.want(200, address+ownFile, yealinkAgent), "account.1.password")
		rotated := h.do("POST", "/users/"+h.user+"/sip-credentials/rotate", `{"device_id":"`+id+`"}`).Want(200).Text("password")
		if got := value(t, h.want(200, address+ownFile, yealinkAgent), "account.1.password"); got != rotated || got == old {
			t.Errorf("after the password was replaced the phone is given %q", got)
		}
		next := strings.TrimPrefix(h.do("PATCH", "/devices/"+id, `{"provisioning":{"status":"pending"}}`).Want(200).Text("provisioning_url"), "https://voice.example.com")
		if !h.logsIn(id, rotated) {
			t.Error("the old phone is out before the new one has come")
		}
		if got := value(t, h.want(200, next+ownFile, yealinkAgent), "account.1.password"); got == rotated || !h.logsIn(id, got) {
			t.Error("the new phone has the old one's password, or none that is good")
		}
	})
}

func TestServe_DisabledDeviceOrUserNotFound(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id, address := h.phone(`,"vendor":"Yealink"`)
	for _, c := range []struct{ path, body string }{{"/devices/" + id, `{"status":"disabled"}`}, {"/users/" + h.user, `{"status":"suspended"}`}} {
		h.do("PATCH", c.path, c.body).Want(200)
		h.want(404, address+ownFile, yealinkAgent)
		h.do("PATCH", c.path, `{"status":"active"}`).Want(200)
	}
	h.want(200, address+ownFile, yealinkAgent)
	h.do("DELETE", "/devices/"+id, nil).Want(204)
	h.want(404, address+ownFile, yealinkAgent)
}

func TestServe_TokenGuessesLimited(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	_, address := h.phone(`,"vendor":"Yealink"`)
	for range tokenPolicy.Quota {
		h.want(404, "/provision/guess/"+ownFile, "guesser")
	}
	h.want(429, "/provision/guess/"+ownFile, "guesser")
	h.want(429, address+ownFile, yealinkAgent)
	h.source = "192.0.2.2"
	h.want(200, address+ownFile, yealinkAgent)
	h.source = "192.0.2.1"
	h.now = h.now.Add(time.Minute)
	h.want(200, address+ownFile, yealinkAgent)
}

func TestServe_WrongLoginsLimited(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id, address := h.phone(`,"vendor":"Yealink"`)
	body := h.want(200, address+ownFile, yealinkAgent)
	r, _ := http.NewRequest("GET", "/", nil)
	r.SetBasicAuth(value(t, body, "account.1.user_name"), "wrong")
	for range loginPolicy.Quota {
		h.want(401, address+ownFile, "curl", "Authorization", r.Header.Get("Authorization"))
	}
	h.want(429, address+ownFile, "curl", "Authorization", r.Header.Get("Authorization"))
	if status, _ := h.provisioningState(id); status != "failed" {
		t.Errorf("it is %s", status)
	}
}

func TestServe_PlainHTTPRefused(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id, address := h.phone(`,"vendor":"Yealink"`)
	h.private = false
	h.want(403, address+ownFile, yealinkAgent)
	h.want(403, "/provision/none/"+ownFile, yealinkAgent)
	if status, _ := h.provisioningState(id); status != "pending" {
		t.Errorf("it is %s", status)
	}
	h.server.cfg.Plain = []netip.Prefix{netip.MustParsePrefix(h.source + "/32")}
	h.want(200, address+ownFile, yealinkAgent)
}

func TestServe_QRCodeAndPageAreNoFetch(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id, address := h.phone(`,"template_id":"linphone"`)
	if !strings.HasSuffix(address, "/linphone.xml") {
		t.Fatalf("the address is %s", address)
	}
	folder := strings.TrimSuffix(address, "linphone.xml")
	picture, err := png.Decode(h.get(folder+"qr.png", "Mozilla/5.0").Body)
	if err != nil || picture.Bounds().Dx() < 200 {
		t.Errorf("the picture: %v", err)
	}
	if body := h.want(200, folder+"qr.svg", "Mozilla/5.0"); elementsOf(t, []byte(body)) == "" {
		t.Error("the drawing is empty")
	}
	if body := h.want(200, address, "Mozilla/5.0", "Sec-Fetch-Mode", "navigate"); strings.Contains(body, "passwd") || !strings.Contains(body, "qr.svg") {
		t.Errorf("a person sees %s", body)
	}
	for _, agent := range []string{"Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", "WhatsApp/2.23.20.0", "facebookexternalhit/1.1"} {
		if body := h.want(200, address, agent); strings.Contains(body, "passwd") {
			t.Errorf("%s sees %s", agent, body)
		}
	}
	if status, _ := h.provisioningState(id); status != "pending" {
		t.Errorf("it is %s", status)
	}
	h.want(200, address, "LinphoneAndroid/5.2.5")
	h.want(200, folder, "LinphoneAndroid/5.2.5 (the abbot)")
}

func TestHTTPAuth_DigestRFC7616(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	d := newHTTPAuth("soniq", func() time.Time { return now })
	answer := func(password, nonce string) *http.Request {
		r := httptest.NewRequest("GET", "/provision/t/f.cfg", nil)
		response := md5hex(md5hex("u1:soniq:"+password) + ":" + nonce + ":00000001:abc:auth:" + md5hex("GET:/provision/t/f.cfg"))
		r.Header.Set("Authorization", `Digest username="u1", realm="soniq", nonce="`+nonce+`", uri="/provision/t/f.cfg", qop=auth, nc=00000001, cnonce="abc", response="`+response+`", algorithm=MD5`)
		return r
	}
	nonce := d.nonce()
	for name, c := range map[string]struct {
		r    *http.Request
		want authResult
	}{
		"right": {answer("secret", nonce), authOK}, "wrong password": {answer("guess", nonce), authWrong}, "a nonce of another": {answer("secret", "made.up"), authStale},
		"none": {httptest.NewRequest("GET", "/", nil), authMissing},
	} {
		if got := d.check(c.r, "u1", "secret"); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	other := answer("secret", nonce)
	other.URL.Path = "/provision/t/g.cfg"
	if d.check(other, "u1", "secret") != authWrong {
		t.Error("a login for one file opens another")
	}
	now = now.Add(nonceLife + time.Second)
	if d.check(answer("secret", nonce), "u1", "secret") != authStale {
		t.Error("an old nonce is still good")
	}
}

func TestServe_ConcurrentFetchesShareOnePassword(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, address := h.phone(`,"vendor":"Yealink"`)
		const many = 8
		bodies := make(chan string, many)
		var all sync.WaitGroup
		for range many {
			all.Go(func() { bodies <- h.want(200, address+ownFile, yealinkAgent) })
		}
		all.Wait()
		close(bodies)
		given := map[string]bool{}
		for body := range bodies {
			given[value(t, body, "account.1.password")+" "+value(t, body, "static.auto_provision.server.password")] = true
			if !h.logsIn(id, value(t, body, "account.1.password")) {
				t.Error("a phone cannot log in")
			}
		}
		if len(given) != 1 {
			t.Errorf("%d passwords were given out", len(given))
		}
	})
}
