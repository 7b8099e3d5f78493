package sandbox

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// Lookups in every sandbox know the test numbers. For one of them a system does not answer in time.
func TestLookup_TestNumbers(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	live := fixture.NewOrg(s)
	key := s.Key(live.Org, "test", "all")
	sandbox := &fixture.Org{Client: key, Webhook: key.Hook(nil)}
	wantLookup(sandbox, "+12025550131", "Nora Lindqvist", true, "[Contacts miss Test CRM hit Test directory miss]")
	wantLookup(sandbox, "+12025550132", "Tom Okafor", false, "[Contacts miss Test CRM hit Test directory timeout]")
	for _, number := range []string{"+12025550131", "+12025550132"} {
		if r := live.Do("GET", "/contacts/lookup?phone="+url.QueryEscape(number), nil); r.Status != 404 {
			t.Errorf("%s is known outside of the sandbox: %d %s", number, r.Status, r.Body)
		}
	}
	if r := sandbox.Do("GET", "/contacts/lookup?phone=%2B12025550133", nil); r.Status != 404 || len(r.JSON()["sources"].([]any)) != 1 {
		t.Errorf("another number: %d %s", r.Status, r.Body)
	}

	user := sandbox.AddUser("Ada")
	addAnsweringPhone(sandbox, user)
	number := sandbox.AddCarrier(user.ID, nil).Number
	for from, want := range map[string]struct {
		name     string
		complete []any
	}{"+12025550131": {"Nora Lindqvist", []any{true}}, "+12025550132": {"Tom Okafor", []any{false, true}}} {
		told := sandbox.ReadStream("", func() {
			sandbox.Want(202, "POST", "/sandbox/calls/inbound", map[string]any{"from": from, "to": number, "script": []map[string]any{{"wait": 3}, {"hangup": true}}}, nil)
		}, func(e fixture.StreamEvent) bool { return e.Type == "call.ended" })
		var complete []any
		for _, p := range fixture.ScreenPops(told, from) {
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

// wantLookup checks the results of a lookup and a screen pop for a number.
func wantLookup(s *fixture.Org, number, name string, complete bool, sources string) {
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
