package partner_test

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/org"
	"soniq/internal/identity/partner"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
)

func code(err error) string {
	var e *op.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestSuspend_Modes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.createChild("")
		key, err := h.keys.CreateKey(ctx, auth.Request{OrgID: id, Name: "own", Scopes: []access.Scope{access.CallsRead}})
		must(t, err)
		test, err := h.keys.CreateKey(ctx, auth.Request{OrgID: id, Name: "test", Environment: access.Sandbox,
			Scopes: []access.Scope{access.CallsRead}})
		must(t, err)
		codes := func() [3]string {
			_, own := h.keys.Verify(ctx, *key.Secret, access.Live, netip.MustParseAddr("127.0.0.1"))
			_, sandbox := h.keys.Verify(ctx, *test.Secret, access.Sandbox, netip.MustParseAddr("127.0.0.1"))
			_, acting := h.keys.ActOnBehalf(ctx, h.partner(), id)
			return [3]string{code(own), code(sandbox), code(acting)}
		}
		barred := func() bool { o, _ := h.orgs.Get(ctx, id); return o.IsBlocked() }
		if got := codes(); got != [3]string{} {
			t.Fatalf("active: %v", got)
		}
		a := h.do("POST", "/partners/"+id+"/suspend", `{"reason":"unpaid","mode":"outbound_only"}`).Want(200)
		if a.Text("status") != "suspended" || a.Text("suspend_reason") != "unpaid" || a.Text("suspend_mode") != "outbound_only" || a.Text("suspended_at") == "" {
			t.Errorf("suspended: %s", a.Bytes)
		}
		if got := codes(); got != [3]string{"", "", "org_suspended"} || barred() {
			t.Errorf("outbound only: %v, barred %v", got, barred())
		}
		h.advance(time.Minute)
		if b := h.do("POST", "/partners/"+id+"/suspend", `{"reason":"still unpaid"}`).Want(200); b.Text("suspend_mode") != "all" || b.Text("suspended_at") != a.Text("suspended_at") {
			t.Errorf("suspended altogether: %s", b.Bytes)
		}
		if got := codes(); got != [3]string{"org_suspended", "org_suspended", "org_suspended"} || !barred() {
			t.Errorf("all: %v, barred %v", got, barred())
		}
		if b := h.do("POST", "/partners/"+id+"/resume", `{}`).Want(200); b.Text("status") != "active" || b.At("suspended_at") != nil || b.At("suspend_reason") != nil {
			t.Errorf("resumed: %s", b.Bytes)
		}
		if got := codes(); got != [3]string{} || barred() {
			t.Errorf("resumed: %v", got)
		}
		h.do("POST", "/partners/"+id+"/suspend", `{"reason":" "}`).Want(422).Refused("validation_failed", "reason invalid_length")
	})
}

func TestActOnBehalf_NeedsPartnersWrite(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.createChild("")
	for name, c := range map[string]struct {
		change func(*access.Principal)
		child  string
		want   string
	}{
		"a partner":                {func(*access.Principal) {}, id, ""},
		"a standard key":           {func(p *access.Principal) { p.Kind = access.StandardKey }, id, "insufficient_scope"},
		"who may only see figures": {func(p *access.Principal) { p.Scopes = []access.Scope{access.PartnersRead, access.CallsRead} }, id, "insufficient_scope"},
		"in itself":                {func(*access.Principal) {}, h.org, "not_found"},
		"nowhere":                  {func(*access.Principal) {}, "org_nowhere", "not_found"},
	} {
		p := h.partner()
		c.change(&p)
		in, err := h.keys.ActOnBehalf(ctx, p, c.child)
		if code(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		for _, s := range in.Scopes {
			if err == nil && s.Partner() {
				t.Errorf("%s: %s came along", name, s)
			}
		}
	}
}

// runJobs runs the jobs of partners until stop is called or the test ends.
func (h *fixture) runJobs() (stop func()) {
	h.t.Helper()
	r := &job.Runner{DB: h.d, Queue: h.jobs, Name: partner.Queue, Node: "n", Log: slog.New(slog.DiscardHandler),
		Options: job.Options{Workers: 1, Timeout: time.Minute}}
	h.Handle(r)
	must(h.t, r.Start(ctx))
	h.t.Cleanup(func() { r.Stop(ctx) })
	return func() { r.Stop(ctx) }
}

// waitFinishedJob waits until a job has run.
func (h *fixture) waitFinishedJob() {
	h.t.Helper()
	late, tick := time.After(2*time.Minute), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for h.count(`SELECT COUNT(*) FROM jobs WHERE state >= 2`) == 0 { // tenant: a test
		select {
		case <-tick.C:
		case <-late:
			h.t.Fatal("no job has run")
		}
	}
}

func TestClose_ResumeThenErase(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		keep, id := h.createChild(""), h.createChild(`,"external_reference":"x"`)
		erased := make(erasures, 2)
		h.Observe(erased)
		for _, org := range []string{keep, id} {
			h.in(org, "POST", "/users", `{"email":"bob@dental.example","first_name":"Bob"}`).Want(201)
			must(t, os.MkdirAll(filepath.Join(h.files, org, "2026"), 0o700))
			must(t, os.WriteFile(filepath.Join(h.files, org, "2026", "call.wav"), []byte("x"), 0o600))
		}
		h.do("DELETE", "/partners/"+id+"?confirm=dental", nil).Want(422).Refused("validation_failed", "confirm mismatch")
		h.do("DELETE", "/partners/"+id, nil).Want(422)
		closed := h.do("DELETE", "/partners/"+id+"?confirm=Dental", nil).Want(202)
		if closed.Text("status") != "closed" || closed.Text("erase_after") != "2026-12-21T12:00:00.000Z" {
			t.Errorf("closed: %s", closed.Bytes)
		}
		h.do("POST", "/partners/"+id+"/suspend", `{"reason":"x"}`).Want(409).Refused("invalid_state")
		h.do("PATCH", "/partners/"+id, `{"name":"x"}`).Want(409).Refused("invalid_state")
		h.advance(29 * 24 * time.Hour)
		h.do("POST", "/partners/"+id+"/resume", `{}`).Want(200)
		h.do("DELETE", "/partners/"+id+"?confirm=Dental", nil).Want(202)
		h.advance(2 * 24 * time.Hour) // the job of the first close is due
		stop := h.runJobs()
		h.waitFinishedJob()
		stop()
		twin, err := h.orgs.Twin(ctx, id)
		must(t, err)
		h.advance(29 * 24 * time.Hour)
		h.do("POST", "/partners/"+id+"/resume", `{}`).Want(409).Refused("invalid_state")
		h.runJobs()
		gone := map[string]bool{}
		for range 2 {
			select {
			case org := <-erased:
				gone[org] = true
			case <-time.After(2 * time.Minute):
				t.Fatal("not erased")
			}
		}
		if !gone[id] || !gone[twin] {
			t.Errorf("erased were %v", gone)
		}
		h.do("GET", "/partners/"+id, nil).Want(404)
		tables, err := d.TenantTables(ctx)
		must(t, err)
		if len(tables) < 20 {
			t.Fatalf("only %d tables seen", len(tables))
		}
		for _, table := range tables {
			if n := h.count(`SELECT COUNT(*) FROM `+table.Name+` WHERE org_id IN ($1, $2)`, id, twin); n != 0 { // tenant: a test
				t.Errorf("%d rows left in %s", n, table.Name)
			}
		}
		if n := h.count(`SELECT COUNT(*) FROM orgs WHERE id IN ($1, $2)`, id, twin); n != 0 {
			t.Errorf("%d organisations left", n)
		}
		if _, err := os.Stat(filepath.Join(h.files, id)); !os.IsNotExist(err) {
			t.Errorf("files are left: %v", err)
		}
		if _, err := os.Stat(filepath.Join(h.files, keep, "2026", "call.wav")); err != nil {
			t.Errorf("the other's files are gone: %v", err)
		}
		if a := h.do("GET", "/partners/"+keep, nil).Want(200); a.At("usage.users") != 2.0 {
			t.Errorf("the other is %s", a.Bytes)
		}
	})
}

func TestSetPlans_MissingPlanRefused(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.createChild("")
	one := 1
	if err := h.orgs.SetPlans(ctx, org.Plans{Plans: map[string]org.Plan{"gold": {Limits: org.Quota{Users: &one}}}}); err == nil {
		t.Error("organisations are left without limits")
	}
}

func TestSandbox_OwnChildren(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		twin, err := h.orgs.Twin(ctx, h.org)
		must(t, err)
		p := h.partner()
		p.OrgID, p.Environment = twin, access.Sandbox
		a := h.server.Do(p, "POST", "/partners", `{"name":"Try","plan":"starter","admin_email":"a@b.example"}`).Want(201)
		id := a.Text("id")
		o, err := h.orgs.Get(ctx, id)
		must(t, err)
		if own, err := h.orgs.Twin(ctx, id); err != nil || own != id || !o.Sandbox() || o.Environment != "test" {
			t.Errorf("a child of the sandbox is %+v, its twin %s, %v", o, own, err)
		}
		key := h.server.Do(p, "POST", "/partners/"+id+"/keys", `{"name":"x","scopes":["calls:read"]}`).Want(201)
		if who, err := h.keys.Verify(ctx, key.Text("key"), access.Sandbox, netip.MustParseAddr("127.0.0.1")); err != nil ||
			who.OrgID != id {
			t.Errorf("its key is of %s: %v", who.OrgID, err)
		}
		h.do("GET", "/partners/"+id, nil).Want(404)
		if n := len(h.do("GET", "/partners", nil).Want(200).At("data").([]any)); n != 0 {
			t.Errorf("live shows %d children of the sandbox", n)
		}
		h.server.Do(p, "DELETE", "/partners/"+id+"?confirm=Try", nil).Want(202)
		h.advance(31 * 24 * time.Hour)
		erased := make(erasures, 1)
		h.Observe(erased)
		h.runJobs()
		select {
		case <-erased:
		case <-time.After(2 * time.Minute):
			t.Fatal("not erased")
		}
	})
}
