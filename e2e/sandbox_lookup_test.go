package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"soniq/e2e/rig"
)

// The test numbers of lookups are known in every sandbox: of one a system does not answer in time.
func TestLookupsOfTestNumbersHitAndTimeOut(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	live := newSite(s)
	key := s.Key(live.Org, "test", "all")
	sandbox := &site{Client: key, hooks: key.Hook(nil)}
	sandbox.who("+12025550131", "Nora Lindqvist", true, "[Contacts miss Test CRM hit Test directory miss]")
	sandbox.who("+12025550132", "Tom Okafor", false, "[Contacts miss Test CRM hit Test directory timeout]")
	for _, number := range []string{"+12025550131", "+12025550132"} {
		if r := live.Do("GET", "/contacts/lookup?phone="+url.QueryEscape(number), nil); r.Status != 404 {
			t.Errorf("%s is known outside of the sandbox: %d %s", number, r.Status, r.Body)
		}
	}
	if r := sandbox.Do("GET", "/contacts/lookup?phone=%2B12025550133", nil); r.Status != 404 || len(r.JSON()["sources"].([]any)) != 1 {
		t.Errorf("another number: %d %s", r.Status, r.Body)
	}

	user := sandbox.AddUser("Ada")
	sandbox.telephone(user)
	number := sandbox.carrier(user.ID, nil).number
	for from, want := range map[string]struct {
		name     string
		complete []any
	}{"+12025550131": {"Nora Lindqvist", []any{true}}, "+12025550132": {"Tom Okafor", []any{false, true}}} {
		told := sandbox.stream("", func() {
			sandbox.Want(202, "POST", "/sandbox/calls/inbound", map[string]any{"from": from, "to": number, "script": []map[string]any{{"wait": 3}, {"hangup": true}}}, nil)
		}, func(e liveEvent) bool { return e.kind == "call.ended" })
		var complete []any
		for _, p := range pops(told, from) {
			complete = append(complete, p["complete"])
			if c, _ := p["contact"].(map[string]any); c["name"] != want.name || c["source"] != "Test CRM" {
				t.Errorf("screen pop of %s: %v", from, p)
			}
		}
		if !slices.Equal(complete, want.complete) {
			t.Errorf("screen pops of %s are complete %v, want %v", from, complete, want.complete)
		}
	}
}

// who checks what a lookup and a screen pop say of a number.
func (s *site) who(number, name string, complete bool, sources string) {
	s.T.Helper()
	var found struct {
		Name, Source string
		Complete     bool
		Sources      []struct{ Source, Status string }
	}
	s.Want(200, "GET", "/contacts/lookup?phone="+url.QueryEscape(number), nil, &found)
	said := []string{}
	for _, x := range found.Sources {
		said = append(said, x.Source, x.Status)
	}
	if found.Name != name || found.Source != "Test CRM" || found.Complete != complete || fmt.Sprint(said) != sources {
		s.T.Errorf("%s is %+v", number, found)
	}
	var pop struct {
		Complete bool
		Contact  struct{ Name string }
	}
	s.Want(200, "GET", "/contacts/screen-pop?phone="+url.QueryEscape(number), nil, &pop)
	if pop.Contact.Name != name || pop.Complete != complete {
		s.T.Errorf("screen pop of %s: %+v", number, pop)
	}
}
