package crm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// reading returns the settings of a connection that reads a directory over TLS.
func reading(d *rig.Slapd, more ...any) map[string]any {
	s := map[string]any{"url": "ldaps://" + d.Secure, "ca": d.Authority, "base_dn": d.Base, "bind_dn": d.Reader, "password": d.Password}
	for i := 0; i+1 < len(more); i += 2 {
		s[more[i].(string)] = more[i+1]
	}
	return s
}

// A person in a directory is found while the phone rings, in every format of their number, and by e-mail address.
func TestLDAP_EveryNumberFormat(t *testing.T) {
	t.Parallel()
	people := crowd("7946", "Ada", 1000)
	d := rig.StartSlapd(t, people)
	c := newCompany(rig.Shared(t, rig.Options{Env: quiet}))
	id := c.connect("ldap", "Directory", reading(d))
	c.T.Logf("slowest of 200: %d ms", c.finds("7946", "Directory", people, 5+1))
	if w := c.ask("email", "ADA77@example.com"); w.Name != "Ada 77" || w.Match != "exact" || w.External_id == "" {
		t.Errorf("by address %+v", w)
	}
	if w := c.ask("phone", "+442079461999"); w.Status != 404 || w.status("Directory") != "miss" {
		t.Errorf("nobody is %+v", w)
	}
	if x := c.connection(id); x["status"] != "active" || strings.Contains(fmt.Sprint(x), d.Password) {
		t.Errorf("shown %v", x)
	}
	var trial map[string]any
	c.Want(200, "POST", "/crm/connections/"+id+"/test", map[string]any{"phone": "+442079460008"}, &trial)
	if trial["ok"] != true || !strings.Contains(fmt.Sprint(trial["sample"]), "Ada 8") {
		t.Errorf("tried %v", trial)
	}
}

// A lookup value is escaped: it cannot inject a filter (RFC 4515).
func TestLDAP_FilterInjection(t *testing.T) {
	t.Parallel()
	d := rig.StartSlapd(t, crowd("7946", "Ada", 3))
	c := newCompany(rig.Shared(t, rig.Options{Env: quiet}))
	c.connect("ldap", "Directory", reading(d))
	for _, address := range []string{"*@example.com", "x)(mail=*)@example.com", "ada1*@example.com"} {
		if w := c.ask("email", address); w.Status == 200 {
			t.Errorf("%s finds %+v", address, w)
		}
	}
}

// A directory is reached without TLS if the operator allows it, over TLS, and with StartTLS. Failures are reported
// with their cause.
func TestLDAP_PlainTLSAndStartTLS(t *testing.T) {
	t.Parallel()
	d := rig.StartSlapd(t, crowd("7946", "Ada", 3))
	c := newCompany(rig.Shared(t, rig.Options{Env: quiet}))
	for name, x := range map[string]struct {
		settings map[string]any
		problem  string
	}{
		"clear":          {reading(d, "url", "ldap://"+d.Address, "ca", ""), ""},
		"start tls":      {reading(d, "url", "ldap://"+d.Address, "start_tls", true), ""},
		"ldaps":          {reading(d), ""},
		"unknown issuer": {reading(d, "ca", ""), "certificate"},
		"wrong password": {reading(d, "password", "guess"), "refuses the credentials"},
		"nobody":         {reading(d, "bind_dn", "", "password", ""), "32"},
		"no such base":   {reading(d, "base_dn", "dc=elsewhere,dc=com"), "32"},
		"gone":           {reading(d, "url", "ldap://127.0.0.1:1", "ca", ""), "refused"},
	} {
		id := c.connect("ldap", name, x.settings)
		var trial struct {
			OK    bool
			Error *string
		}
		c.Want(200, "POST", "/crm/connections/"+id+"/test", map[string]any{"phone": "+442079460001"}, &trial)
		if trial.OK != (x.problem == "") || !trial.OK && !strings.Contains(*trial.Error, x.problem) {
			t.Errorf("%s: %+v %s", name, trial, deref(trial.Error))
		}
		c.Want(204, "DELETE", "/crm/connections/"+id, nil, nil)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// A directory that hangs does not delay a lookup: the response comes in time and names the time-out. When the
// directory continues, it is queried again.
func TestLDAP_HangingServer(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "a directory that hangs is given up after its time limit")
	d := rig.StartSlapd(t, crowd("7946", "Ada", 20))
	c := newCompany(rig.Shared(t, rig.Options{Env: quiet}))
	c.connect("ldap", "Directory", reading(d), "timeout_ms", 500)
	if w := c.ask("phone", e164("7946", 1)); w.Name != "Ada 1" {
		t.Fatalf("before %+v", w)
	}
	d.Freeze()
	var late []time.Duration
	for i := range 8 {
		began := time.Now()
		w := c.lookup("phone", e164("7946", 2+i), "timeout_ms=100")
		took := time.Since(began)
		if w.Status != 404 {
			t.Errorf("%d: after %s %+v", i, took, w)
		}
		if w.Lookup_ms > 200 || took > 2*time.Second {
			late = append(late, took)
		}
		if got := w.status("Directory"); got != "timeout" && got != "circuit_open" {
			t.Errorf("%d: it was %s", i, got)
		}
		if w.status("Directory") == "circuit_open" {
			break
		}
	}
	if len(late) > 1 { // one may be late because another program had the processor
		t.Errorf("lookups took %v", late)
	}
	rig.Until(t, "the breaker to open", time.Minute, func() bool {
		return c.lookup("phone", e164("7946", 15), "fresh=true").status("Directory") == "circuit_open"
	})
	d.Thaw()
	rig.Until(t, "Ada 16", time.Minute, func() bool { return c.lookup("phone", e164("7946", 16), "fresh=true").Name == "Ada 16" })
}

// The index of a copied directory answers even when the directory is down. Changes in the directory are synchronised.
func TestLDAP_CopiedAndSynchronised(t *testing.T) {
	t.Parallel()
	people := crowd("7946", "Ada", 1234)
	d := rig.StartSlapd(t, people)
	c := newCompany(rig.Shared(t, rig.Options{Env: quiet}))
	id := c.connect("ldap", "Directory", reading(d, "mode", "copy", "refresh_minutes", 1))
	c.copied(id, 1234)
	c.finds("7946", "Directory", people, 101)
	d.Change("dn: uid=Ada7," + d.Base + "\nchangetype: delete\n\ndn: uid=Ada8," + d.Base + "\nchangetype: modify\nreplace: cn\ncn: Augusta\n\n" +
		d.Entry(rig.Person{ID: "new", Name: "Bert New", Phones: []string{"020 7946 9999"}}))
	c.Want(200, "PATCH", "/crm/connections/"+id, map[string]any{"priority": 50}, nil) // reads it again
	rig.Until(t, "Bert New", time.Minute, func() bool { return c.lookup("phone", "+442079469999").Name == "Bert New" })
	rig.Until(t, "Ada 7 to be gone", time.Minute, func() bool { return c.lookup("phone", e164("7946", 7)).Status == 404 })
	if w := c.lookup("phone", e164("7946", 8)); w.Name != "Augusta" {
		t.Errorf("changed %+v", w)
	}
	d.End()
	if w := c.lookup("phone", e164("7946", 9), "fresh=true"); w.Name != "Ada 9" || w.Email != "" && w.Status != 200 {
		t.Errorf("when it is gone %+v", w)
	}
}

// If a directory is both copied and queried, the copy answers for the people it contains, and the directory for the
// others.
func TestLDAP_CopyThenDirectory(t *testing.T) {
	t.Parallel()
	d := rig.StartSlapd(t, crowd("7946", "Ada", 10))
	c := newCompany(rig.Shared(t, rig.Options{Env: quiet}))
	id := c.connect("ldap", "Directory", reading(d, "mode", "both"))
	c.copied(id, 10)
	d.Change(d.Entry(rig.Person{ID: "new", Name: "Bert New", Phones: []string{"020 7946 9999"}}))
	if w := c.ask("phone", "+442079469999"); w.Name != "Bert New" || w.status("Directory") != "hit" {
		t.Errorf("the new one %+v", w)
	}
	d.Freeze()
	// A lookup that waited for the directory would not be complete.
	if w := c.lookup("phone", e164("7946", 3), "fresh=true"); w.Name != "Ada 3" || !w.Complete || w.status("Directory") != "hit" {
		t.Errorf("from the copy %+v", w)
	}
}
