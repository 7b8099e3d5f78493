package device

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestResync_NotifyCheckSync(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	c := s.Org("live")
	ada := c.AddUser("Ada")
	var page struct{ Data []struct{ ID string } }
	c.Want(200, "GET", "/devices?user_id="+ada.ID, nil, &page)
	path := "/devices/" + page.Data[0].ID + "/resync"
	c.Want(409, "POST", path, map[string]any{}, nil)
	port := rig.FreePort(t)
	s.Sipp(rig.Script{Scenario: "register", Login: &ada.SIP, Port: port}).Wait()
	phone := s.Sipp(rig.Script{Scenario: "answer_notify", Port: port})
	c.Want(202, "POST", path, map[string]any{"reboot": true}, nil)
	phone.Wait()
	if got := rig.Field(phone.Received("NOTIFY", 0), "Event"); got != "check-sync;reboot=true" {
		t.Errorf("the phone was told %q", got)
	}
}

// A phone that is configured with only the address of its configuration registers, calls and is called.
func TestProvisioning_LinphoneFromURL(t *testing.T) {
	t.Parallel()
	c := rig.NewCertificate(t)
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--https", "127.0.0.1:0", "--tls-cert", c.Cert, "--tls-key",
		c.Key}})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true})
	id, address := addPhone(o.Org, o.Bob, "linphone")
	say, _ := fixture.Tone(t, fixture.BobTone)
	bob := s.Linphone(rig.Login{}, rig.LinphoneOptions{Say: say, Auto: true, Address: address, Trust: c.Authority})
	first := provisioningOf(o.Org, id)
	if first.Status != "served" || first.LastFetchAt == "" {
		t.Errorf("provisioning: %+v", first)
	}
	bob.Dial(o.Ada.Extension)
	o.HearsOnly("Bob, who called,", bob, fixture.AdaTone)
	o.HearsOnly("Ada, who was called,", o.AdaPhone, fixture.BobTone)
	bob.Do("terminate")
	o.AdaPhone.Wait("CALL_CLOSED", "")
	o.AdaPhone.Dial(o.Bob.Extension)
	o.HearsOnly("Ada, who called,", o.AdaPhone, fixture.BobTone)
	o.AdaPhone.Do("hangup", "")
	bob.Wait(`Call \d+ with .* ended`)
}

// A phone uses the transport and encryption of its device record.
func TestProvisioning_EncryptedCalls(t *testing.T) {
	t.Parallel()
	c := rig.NewCertificate(t)
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--https", "127.0.0.1:0", "--sip-tls", "127.0.0.1:0", "--tls-cert", c.Cert, "--tls-key", c.Key}})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true})
	id, address := addPhone(o.Org, o.Bob, "linphone")
	o.Want(200, "PATCH", "/devices/"+id, map[string]any{"srtp": "required", "sip": map[string]any{"transport": "tls"}}, nil)
	say, _ := fixture.Tone(t, fixture.BobTone)
	bob := s.Linphone(rig.Login{}, rig.LinphoneOptions{Say: say, Auto: true, Address: address, Trust: c.Authority})
	var d struct{ Registration struct{ Transport string } }
	if o.Want(200, "GET", "/devices/"+id, nil, &d); d.Registration.Transport != "tls" {
		t.Errorf("it registered by %q", d.Registration.Transport)
	}
	bob.Dial(o.Ada.Extension)
	o.HearsOnly("Bob, who called,", bob, fixture.AdaTone)
	o.HearsOnly("Ada, who was called,", o.AdaPhone, fixture.BobTone)
	legs, _ := o.LiveCall(nil)["legs"].([]any)
	for _, l := range legs {
		if leg := l.(map[string]any); leg["srtp"] != (leg["user_id"] == o.Bob.ID) {
			t.Errorf("leg: %v", leg)
		}
	}
}

// After its address was given to another phone, linphonec fetches its file with the login in that file.
func TestProvisioning_LinphoneLogin(t *testing.T) {
	t.Parallel()
	c := rig.NewCertificate(t)
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--https", "127.0.0.1:0", "--tls-cert", c.Cert, "--tls-key",
		c.Key}})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	ada := o.AddUser("Ada")
	id, address := addPhone(o.Org, ada, "linphone")
	file := fetchFile(o.Org, 200, address, "Tablet/1.0")
	next := regexp.MustCompile(`name="config-uri"[^>]*>([^<]*)<`).FindStringSubmatch(file)
	if next == nil || !strings.Contains(next[1], "@127.0.0.1:") {
		t.Fatalf("no login in %s", file)
	}
	before := provisioningOf(o.Org, id)
	fetchFile(o.Org, 401, address, "Unknown")
	say, _ := fixture.Tone(t, fixture.BobTone)
	s.Linphone(rig.Login{}, rig.LinphoneOptions{Say: say, Address: next[1], Trust: c.Authority})
	if now := provisioningOf(o.Org, id); now.Status != "served" || now.LastFetchAt <= before.LastFetchAt {
		t.Errorf("provisioning was %+v and is %+v", before, now)
	}
}

// A desk phone fetches its file, registers with it, is notified of a change, and fetches again. sipp and an HTTP
// client replace the maker's firmware, because linphonec answers NOTIFY check-sync with 200 and does nothing.
func TestProvisioning_RefetchAfterNotify(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--https", "127.0.0.1:0"}})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	ada := o.AddUser("Ada")
	id, address := addPhone(o.Org, ada, "yealink")
	file := fetchFile(o.Org, 200, address+"001565abcdef.cfg", "Yealink SIP-T46S 66.86.0.15 00:15:65:ab:cd:ef")
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
	before := provisioningOf(o.Org, id)
	again := fetchFile(o.Org, 200, address+"001565abcdef.cfg", "Yealink SIP-T46S 66.86.0.15 00:15:65:ab:cd:ef")
	if setting(t, again, "linekey.2.value") != "102" || setting(t, again, "account.1.password") != login.Password {
		t.Errorf("the second file is %s", again)
	}
	if now := provisioningOf(o.Org, id); now.LastFetchAt <= before.LastFetchAt {
		t.Errorf("provisioning was %+v and is %+v", before, now)
	}
	var log struct{ Data []struct{ Request string } }
	o.Want(200, "GET", "/audit-log?operation=devices.provision&target="+id, nil, &log)
	if len(log.Data) != 2 || strings.Contains(fmt.Sprint(log.Data), address[len(address)-10:]) {
		t.Errorf("two fetches are noted as %v", log.Data)
	}
}

// setting returns a setting of a configuration file.
func setting(t *testing.T, file, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` = (.*)$`).FindStringSubmatch(file)
	if m == nil {
		t.Fatalf("no %s in %s", name, file)
	}
	return m[1]
}

// fetchFile fetches a file like a phone that checks no certificate.
func fetchFile(s *fixture.Org, status int, address, agent string) string {
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

// addPhone adds a phone of a template and returns its id and address.
func addPhone(s *fixture.Org, u rig.User, template string) (id, address string) {
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

// provisioning is the provisioning state of a device in the API.
type provisioning struct {
	Status      string
	LastFetchAt string `json:"last_fetch_at"`
}

// provisioningOf returns the provisioning state of a device.
func provisioningOf(s *fixture.Org, id string) provisioning {
	s.T.Helper()
	var d struct{ Provisioning provisioning }
	s.Want(200, "GET", "/devices/"+id, nil, &d)
	return d.Provisioning
}
