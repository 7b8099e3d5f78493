package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/access"
	"soniq/e2e/rig"
)

// A partner has a key for partners and one child organisation, whose own key a site uses.
type partner struct {
	*rig.Client
	child string
	site  *site
}

func newPartner(s *rig.Server) partner {
	s.T.Helper()
	org := s.Command("org", "create", "--name", "Harbor Internet", "--country", "US")
	p := partner{Client: &rig.Client{T: s.T, Server: s, Org: org, Prefix: "/api/v1"}}
	p.Key = s.Command("key", "create", "--org", org, "--scopes", "all", "--kind", "partner")
	var child struct{ ID string }
	p.Want(201, "POST", "/partners", map[string]any{"name": "Harbor Dental", "plan": "business", "admin_email": "owner@dental.example",
		"call_recording_enabled": true}, &child)
	p.child = child.ID
	var scopes []string
	for _, scope := range access.All() {
		if !scope.Partner() {
			scopes = append(scopes, string(scope))
		}
	}
	var key struct{ Key string }
	p.Want(201, "POST", "/partners/"+p.child+"/keys", map[string]any{"name": "set-up", "scopes": scopes}, &key)
	p.site = &site{Client: &rig.Client{T: s.T, Server: s, Org: p.child, Key: key.Key, Prefix: "/api/v1"}}
	p.site.hooks = p.site.Hook(nil)
	return p
}

// user adds a user to the child, as the partner.
func (p partner) user(first string) (u rig.User) {
	p.T.Helper()
	p.Want(201, "POST", "/partners/"+p.child+"/users", map[string]any{"email": strings.ToLower(first) + "@dental.example", "first_name": first}, &u)
	return u
}

// do asks for something to be done with the child, and returns its status after it.
func (p partner) do(what string, body map[string]any) string {
	p.T.Helper()
	var out struct{ Status string }
	p.Want(200, "POST", "/partners/"+p.child+"/"+what, body, &out)
	return out.Status
}

// A practice is a child organisation with two users, a telephone of the first, and a carrier.
type practice struct {
	partner
	t        *testing.T
	ada, bob rig.User
	phone    *rig.Phone
	way      carrier
}

func newPractice(t *testing.T, s *rig.Server) practice {
	t.Helper()
	p := practice{partner: newPartner(s), t: t}
	p.ada, p.bob = p.user("Ada"), p.user("Bob")
	p.way = p.site.carrier(p.ada.ID, map[string]any{"emergency_capable": true})
	say, _ := tone(t, 440)
	p.phone = s.Phone(p.ada.SIP, rig.PhoneOptions{Auto: true, Say: say})
	return p
}

// out has bob call a number that the carrier answers.
func (p practice) out(number string) {
	p.t.Helper()
	answers := p.Server.Sipp(rig.Script{Scenario: "answer", IP: p.way.ip, Port: p.way.port})
	p.Server.Sipp(rig.Script{Scenario: "call", Login: &p.bob.SIP, Number: number, Talk: 300 * time.Millisecond}).Wait()
	answers.Wait()
	if invite := answers.Received("INVITE ", 0); !strings.HasPrefix(invite, "INVITE sip:"+number+"@") {
		p.t.Errorf("the carrier got %s, want %s", head(invite), number)
	}
}

// refused has bob call in vain.
func (p practice) refused(number string, status int) {
	p.t.Helper()
	p.Server.Sipp(rig.Script{Scenario: "call_refused", Login: &p.bob.SIP, Number: number, Status: status}).Wait()
}

// in has the carrier call ada, who answers.
func (p practice) in() {
	p.t.Helper()
	p.Server.Sipp(rig.Script{Scenario: "call", IP: p.way.ip, From: "+12125550177", Number: p.way.number, Talk: 300 * time.Millisecond}).Wait()
}

func (p practice) code(r rig.Response) string {
	code, _ := r.JSON()["code"].(string)
	return code
}

func TestAPartnersStory(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	p := newPractice(t, s)
	p.out("+12125550141")
	p.in()

	p.do("suspend", map[string]any{"reason": "unpaid", "mode": "outbound_only"})
	p.refused("+12125550142", 403)
	p.in()
	p.out("911")
	if r := p.site.Do("POST", "/calls", map[string]any{"to": "+12125550149", "user_id": p.ada.ID}); r.Status != 403 || p.code(r) != "org_suspended" {
		t.Errorf("a call by a program: %d %s", r.Status, r.Body)
	}
	p.do("resume", map[string]any{})

	answers := s.Sipp(rig.Script{Scenario: "answer", IP: p.way.ip, Port: p.way.port})
	p.phone.Dial("+12125550143")
	p.do("suspend", map[string]any{"reason": "unpaid"})
	p.refused("+12125550144", 403)
	p.refused(p.ada.Extension, 403)
	s.Sipp(rig.Script{Scenario: "call_refused", IP: p.way.ip, From: "+12125550178", Number: p.way.number, Status: 480}).Wait()
	s.Phone(p.bob.SIP, rig.PhoneOptions{Refused: true})
	if r := p.site.Do("GET", "/users", nil); r.Status != 403 || p.code(r) != "org_suspended" {
		t.Errorf("the child's key: %d %s", r.Status, r.Body)
	}
	p.phone.Do("hangup", "") // the call went on until now
	answers.Wait()
	p.out("911")

	p.do("resume", map[string]any{})
	p.out("+12125550145")
	p.in()
	for number, want := range map[string]string{"+12125550143": "outbound completed caller_hangup caller 0", "+12125550144": "outbound failed blocked system 403",
		"+12125550178": "inbound missed blocked system 480"} {
		if r := p.site.record(number); r.String() != want {
			t.Errorf("the record of %s is %s, want %s", number, r, want)
		}
	}

	p.Want(202, "DELETE", "/partners/"+p.child+"?confirm=Harbor+Dental", nil, nil)
	p.refused("+12125550146", 403)
	p.out("911")
	p.do("resume", map[string]any{})
	p.out("+12125550147")
}

func TestASuspendedUserCallsNobodyButForHelp(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	p := newPractice(t, s)
	set := func(u rig.User, status string) {
		t.Helper()
		p.Want(200, "PATCH", "/partners/"+p.child+"/users/"+u.ID, map[string]any{"status": status}, nil)
	}
	set(p.bob, "suspended")
	p.refused("+12125550141", 403)
	p.refused(p.ada.Extension, 403)
	p.out("911")
	s.Phone(p.bob.SIP, rig.PhoneOptions{Refused: true})
	set(p.ada, "suspended")
	s.Sipp(rig.Script{Scenario: "call_refused", IP: p.way.ip, From: "+12125550178", Number: p.way.number, Status: 480}).Wait()
	set(p.bob, "active")
	p.out("+12125550142")
}

func TestAPlanBoundsTheCallsOfAChild(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	p := newPractice(t, s)
	p.Want(200, "PATCH", "/partners/"+p.child, map[string]any{"limits": map[string]any{"concurrent_calls": 1, "numbers": 1}}, nil)
	p.site.Want(200, "PATCH", "/organization", map[string]any{"outbound": map[string]any{"concurrent_calls": 50}}, nil)
	answers := s.Sipp(rig.Script{Scenario: "answer", IP: p.way.ip, Port: p.way.port})
	p.phone.Dial("+12125550141")
	p.refused("+12125550142", 503)
	p.phone.Do("hangup", "")
	answers.Wait()
	p.out("+12125550143")
	r := p.site.Do("POST", "/numbers", map[string]any{"number": "+12025550199", "trunk_id": p.way.trunk})
	if r.Status != 403 || p.code(r) != "plan_limit" {
		t.Errorf("a second number: %d %s", r.Status, r.Body)
	}
}

func TestNothingIsLeftOfAChildThatWasClosed(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--close-grace", "1s"}})
	p := newPractice(t, s)
	p.in()
	call := p.site.record("+12125550177").CallID
	p.site.Want(201, "POST", "/calls/"+call+"/note", map[string]any{"body": "The patient asked for Thursday."}, nil)
	p.phone.Close()
	secrets := []string{"dental.example", "Harbor Dental", "asked for Thursday", p.way.number, p.ada.SIP.Username, p.site.Key[len(p.site.Key)-12:]}
	if found := search(t, s, secrets...); len(found) < 4 { // the search can fail
		t.Fatalf("before, only %v are found", found)
	}
	if !there(t, filepath.Join(s.Data, "recordings", p.child)) {
		t.Fatal("there is no recording to erase")
	}
	p.Want(202, "DELETE", "/partners/"+p.child+"?confirm=Harbor+Dental", nil, nil)
	rig.Until(t, "the end of the child", 60*time.Second, func() bool { return p.Do("GET", "/partners/"+p.child, nil).Status == 404 })
	if r := p.site.Do("GET", "/users", nil); r.Status != 401 {
		t.Errorf("the child's key: %d %s", r.Status, r.Body)
	}
	if there(t, filepath.Join(s.Data, "recordings", p.child)) {
		t.Error("recordings are left")
	}
	s.Stop()
	if found := search(t, s, secrets...); len(found) > 0 {
		t.Errorf("in the data folder is still: %v", found)
	}
}

func there(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	return err == nil
}

// search lists which of the texts are in a file of the data folder.
func search(t *testing.T, s *rig.Server, texts ...string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(s.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, text := range texts {
			if bytes.Contains(b, []byte(text)) {
				found = append(found, text+" in "+filepath.Base(path))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAPlanWhoseStorageIsUsedUpKeepsNothingMoreButCallsGoOn(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	p := newPractice(t, s)
	limit := func(gb int) {
		t.Helper()
		p.Want(200, "PATCH", "/partners/"+p.child, map[string]any{"limits": map[string]any{"storage_gb": gb}}, nil)
	}
	full := func(r rig.Response) {
		t.Helper()
		if body := r.JSON(); r.Status != 403 || body["code"] != "plan_limit" || body["limit"] != "storage_gb" {
			t.Errorf("answered %d %s", r.Status, r.Body)
		}
	}
	limit(0)
	answers := s.Sipp(rig.Script{Scenario: "answer", IP: p.way.ip, Port: p.way.port})
	p.phone.Dial("+12125550141")
	var live struct {
		Data []struct{ ID string }
	}
	rig.Until(t, "the call", 10*time.Second, func() bool {
		p.site.Want(200, "GET", "/calls?status=in_progress", nil, &live)
		return len(live.Data) == 1
	})
	path := "/calls/" + live.Data[0].ID
	o := office{site: p.site}
	if kinds := o.kinds(path); !slices.Contains(kinds, "recording.skipped") || slices.Contains(kinds, "recording.started") {
		t.Errorf("the steps of the call: %v", kinds)
	}
	full(p.site.Do("POST", path+"/recording/start", map[string]any{}))
	full(p.site.Do("POST", "/audio", map[string]any{"text": "Hello."}))
	full(p.site.Do("POST", "/cdr/exports", map[string]any{"since": "2026-01-01", "until": "2999-01-01", "format": "csv"}))
	limit(1)
	p.site.Want(200, "POST", path+"/recording/start", map[string]any{}, nil)
	p.phone.Do("hangup", "")
	answers.Wait()
	if r := p.site.record("+12125550141"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("the record: %s", r)
	}
	p.site.recording(live.Data[0].ID) // it was made
}
