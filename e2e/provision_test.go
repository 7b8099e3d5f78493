package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// A phone that knows nothing but the address of its configuration registers, calls and is called.
func TestAnAddressIsAllThatLinphoneNeeds(t *testing.T) {
	t.Parallel()
	c := rig.NewCertificate(t)
	s := rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--https", "127.0.0.1:0", "--tls-cert", c.Cert, "--tls-key", c.Key}})
	o := &office{site: newSite(s)}
	o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Auto: true})
	id, address := o.address(o.bob, "linphone")
	say, _ := tone(t, bobTone)
	bob := s.Linphone(rig.Login{}, rig.LinphoneOptions{Say: say, Auto: true, Address: address, Trust: c.Authority})
	first := o.provisioning(id)
	if first.Status != "served" || first.LastFetchAt == "" {
		t.Errorf("provisioning: %+v", first)
	}
	bob.Dial(o.ada.Extension)
	o.talks("Bob, who called,", bob, adaTone)
	o.talks("Ada, who was called,", o.adaPhone, bobTone)
	bob.Do("terminate")
	o.adaPhone.Wait("CALL_CLOSED", "")
	o.adaPhone.Dial(o.bob.Extension)
	o.talks("Ada, who called,", o.adaPhone, bobTone)
	o.adaPhone.Do("hangup", "")
	bob.Wait(`Call \d+ with .* ended`)
}

// What the record says of transport and encryption is what the phone does.
func TestAnAddressSetsUpEncryptedCalls(t *testing.T) {
	t.Parallel()
	c := rig.NewCertificate(t)
	s := rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--https", "127.0.0.1:0", "--sip-tls", "127.0.0.1:0", "--tls-cert", c.Cert, "--tls-key", c.Key}})
	o := &office{site: newSite(s)}
	o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Auto: true})
	id, address := o.address(o.bob, "linphone")
	o.Want(200, "PATCH", "/devices/"+id, map[string]any{"srtp": "required", "sip": map[string]any{"transport": "tls"}}, nil)
	say, _ := tone(t, bobTone)
	bob := s.Linphone(rig.Login{}, rig.LinphoneOptions{Say: say, Auto: true, Address: address, Trust: c.Authority})
	var d struct{ Registration struct{ Transport string } }
	if o.Want(200, "GET", "/devices/"+id, nil, &d); d.Registration.Transport != "tls" {
		t.Errorf("it registered by %q", d.Registration.Transport)
	}
	bob.Dial(o.ada.Extension)
	o.talks("Bob, who called,", bob, adaTone)
	o.talks("Ada, who was called,", o.adaPhone, bobTone)
	legs, _ := o.live(nil)["legs"].([]any)
	for _, l := range legs {
		if leg := l.(map[string]any); leg["srtp"] != (leg["user_id"] == o.bob.ID) {
			t.Errorf("leg: %v", leg)
		}
	}
}

// Once an address is another phone's, linphonec gets its file by the login that is in it.
func TestLinphoneLogsInToItsAddress(t *testing.T) {
	t.Parallel()
	c := rig.NewCertificate(t)
	s := rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--https", "127.0.0.1:0", "--tls-cert", c.Cert, "--tls-key", c.Key}})
	o := &office{site: newSite(s)}
	ada := o.AddUser("Ada")
	id, address := o.address(ada, "linphone")
	file := o.fetch(200, address, "Tablet/1.0")
	next := regexp.MustCompile(`name="config-uri"[^>]*>([^<]*)<`).FindStringSubmatch(file)
	if next == nil || !strings.Contains(next[1], "@127.0.0.1:") {
		t.Fatalf("no login in %s", file)
	}
	before := o.provisioning(id)
	o.fetch(401, address, "Unknown")
	say, _ := tone(t, bobTone)
	s.Linphone(rig.Login{}, rig.LinphoneOptions{Say: say, Address: next[1], Trust: c.Authority})
	if now := o.provisioning(id); now.Status != "served" || now.LastFetchAt <= before.LastFetchAt {
		t.Errorf("provisioning was %+v and is %+v", before, now)
	}
}

// A desk phone fetches its file, registers with it, is told that something changed, and fetches again. What the maker's firmware does
// is done by sipp and an HTTP client: linphonec takes NOTIFY check-sync with 200, and does nothing.
func TestAPhoneThatIsToldToFetchesAgain(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--https", "127.0.0.1:0"}})
	o := &office{site: newSite(s)}
	ada := o.AddUser("Ada")
	id, address := o.address(ada, "yealink")
	file := o.fetch(200, address+"001565abcdef.cfg", "Yealink SIP-T46S 66.86.0.15 00:15:65:ab:cd:ef")
	login := rig.Login{Username: setting(t, file, "account.1.user_name"), Password: setting(t, file, "account.1.password")}
	if got := setting(t, file, "account.1.sip_server.1.port"); !strings.HasSuffix(s.SIP, ":"+got) {
		t.Errorf("it is to register at port %s of %s", got, s.SIP)
	}
	port := rig.FreePort(t)
	s.Sipp(rig.Script{Scenario: "register", Login: &login, Port: port}).Wait()
	for _, c := range []struct {
		reboot bool
		event  string
	}{{false, "check-sync;reboot=false"}, {true, "check-sync;reboot=true"}} {
		phone := s.Sipp(rig.Script{Scenario: "answer_notify", Port: port, Event: c.event})
		o.Want(202, "POST", "/devices/"+id+"/resync", map[string]any{"reboot": c.reboot}, nil)
		phone.Wait()
	}
	o.Want(200, "PATCH", "/devices/"+id, map[string]any{"line_keys": []any{map[string]any{"position": 2, "type": "blf", "value": "102", "label": "Bob"}}}, nil)
	before := o.provisioning(id)
	again := o.fetch(200, address+"001565abcdef.cfg", "Yealink SIP-T46S 66.86.0.15 00:15:65:ab:cd:ef")
	if setting(t, again, "linekey.2.value") != "102" || setting(t, again, "account.1.password") != login.Password {
		t.Errorf("the second file is %s", again)
	}
	if now := o.provisioning(id); now.LastFetchAt <= before.LastFetchAt {
		t.Errorf("provisioning was %+v and is %+v", before, now)
	}
	var log struct{ Data []struct{ Request string } }
	o.Want(200, "GET", "/audit-log?operation=devices.provision&target="+id, nil, &log)
	if len(log.Data) != 2 || strings.Contains(fmt.Sprint(log.Data), address[len(address)-10:]) {
		t.Errorf("two fetches are noted as %v", log.Data)
	}
}

func setting(t *testing.T, file, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` = (.*)$`).FindStringSubmatch(file)
	if m == nil {
		t.Fatalf("no %s in %s", name, file)
	}
	return m[1]
}

// fetch asks for a file as a phone does that minds no certificate.
func (s *site) fetch(status int, address, agent string) string {
	s.T.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	r, err := http.NewRequest("GET", address, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	r.Header.Set("User-Agent", agent)
	answer, err := client.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		s.T.Fatalf("%s: %d, want %d (%v): %s", address, answer.StatusCode, status, err, body)
	}
	return string(body)
}

// address adds a phone of a template and returns its id and address.
func (s *site) address(u rig.User, template string) (id, address string) {
	s.T.Helper()
	var d struct {
		ID      string
		Address string `json:"provisioning_url"`
	}
	s.Want(201, "POST", "/devices", map[string]any{"user_id": u.ID, "name": "App", "kind": "softphone", "template_id": template, "codecs": []string{"pcmu"}}, &d)
	if !strings.HasPrefix(d.Address, "https://127.0.0.1:") {
		s.T.Fatalf("the address is %q", d.Address)
	}
	return d.ID, d.Address
}

type provisioning struct {
	Status      string
	LastFetchAt string `json:"last_fetch_at"`
}

func (s *site) provisioning(id string) provisioning {
	s.T.Helper()
	var d struct{ Provisioning provisioning }
	s.Want(200, "GET", "/devices/"+id, nil, &d)
	return d.Provisioning
}
