package auth_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/identity/user/usertest"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
)

func TestVerify_EnvironmentOfKeyOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		for _, c := range []struct {
			kind   access.Kind
			e      access.Environment
			prefix string
		}{
			{access.StandardKey, access.Live, "soniq_live_"}, {access.StandardKey, access.Sandbox, "soniq_test_"},
			{access.PartnerKey, access.Live, "soniq_partner_"}, {access.PartnerKey, access.Sandbox, "soniq_partner_test_"},
		} {
			k, token := h.createKey(t, auth.Request{Kind: c.kind, Environment: c.e})
			if !strings.HasPrefix(token, c.prefix) || len(token) != len(c.prefix)+36 {
				t.Errorf("token %q, want %s and 36 characters", token, c.prefix)
			}
			if k.Prefix != token[:len(c.prefix)+3] || k.Hint != token[len(token)-4:] {
				t.Errorf("shown as %q and %q of %q", k.Prefix, k.Hint, token)
			}
			p, err := h.Verify(context.Background(), token, c.e, here)
			if err != nil || p.Kind != c.kind || p.Environment != c.e || p.KeyID != k.ID || len(p.Scopes) != 2 {
				t.Errorf("%s: principal %+v, %v", c.prefix, p, err)
			}
			twin, _ := h.orgs.Twin(context.Background(), h.org.ID)
			if want := map[bool]string{true: twin, false: h.org.ID}[c.e == access.Sandbox]; p.OrgID != want {
				t.Errorf("%s acts for %s, want %s", c.prefix, p.OrgID, want)
			}
			other := map[access.Environment]access.Environment{access.Live: access.Sandbox, access.Sandbox: access.Live}[c.e]
			if got := h.code(token, other, here); got != "wrong_environment" {
				t.Errorf("%s elsewhere: %q", c.prefix, got)
			}
		}
	})
}

func TestVerify_MistypedKeyRefusedWithoutQuery(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	h := newFixture(t, d)
	_, token := h.createKey(t, auth.Request{})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range token {
		wrong := []byte(token)
		wrong[i] = map[bool]byte{true: 'y', false: 'x'}[wrong[i] == 'x']
		if got := h.code(string(wrong), access.Live, here); got != "unauthenticated" {
			t.Fatalf("character %d changed: %q", i, got)
		}
	}
	for _, wrong := range []string{"", "soniq_live_", token[1:], token + "a", strings.ToLower(token), "Bearer " + token} {
		if got := h.code(wrong, access.Live, here); got != "unauthenticated" {
			t.Errorf("%q: %q", wrong, got)
		}
	}
	if got := h.code(token, access.Live, here); got == "unauthenticated" || got == "" {
		t.Errorf("the right token asks the closed database, got %q", got)
	}
}

func TestVerify_RefusalCodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		_, expiring := h.createKey(t, auth.Request{ExpiresAt: db.At(h.now.Add(time.Hour))})
		_, bound := h.createKey(t, auth.Request{AllowedIPs: []string{"192.0.2.0/24", "2001:db8::1"}})
		_, plain := h.createKey(t, auth.Request{})
		for _, c := range []struct{ token, from, want string }{
			{expiring, "127.0.0.1", ""}, {bound, "127.0.0.1", "ip_not_allowed"}, {bound, "192.0.2.9", ""},
			{bound, "::ffff:192.0.2.9", ""}, {bound, "2001:db8::1", ""}, {bound, "2001:db8::2", "ip_not_allowed"},
		} {
			if got := h.code(c.token, access.Live, netip.MustParseAddr(c.from)); got != c.want {
				t.Errorf("from %s: %q, want %q", c.from, got, c.want)
			}
		}
		h.now = h.now.Add(time.Hour)
		if got := h.code(expiring, access.Live, here); got != "key_expired" {
			t.Errorf("after its time: %q", got)
		}
		if err := h.orgs.SetStatus(context.Background(), h.org.ID, org.Suspended); err != nil {
			t.Fatal(err)
		}
		if got := h.code(plain, access.Live, here); got != "org_suspended" {
			t.Errorf("of a suspended organisation: %q", got)
		}
	})
}

func TestRevoke_TakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		k, token := h.createKey(t, auth.Request{})
		if got := h.code(token, access.Live, here); got != "" {
			t.Fatal(got)
		}
		h.server.Do(optest.Admin(h.org.ID), "DELETE", "/api-keys/"+k.ID, nil).Want(204)
		if got := h.code(token, access.Live, here); got != "key_revoked" {
			t.Errorf("after the revocation: %q", got)
		}
		h.server.Do(optest.Admin(h.org.ID), "DELETE", "/api-keys/"+k.ID, nil).Want(204)
	})
}

func TestRotate_OldKeyWorksUntilGraceEnds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		k, old := h.createKey(t, auth.Request{AllowedIPs: []string{"127.0.0.1"}})
		a := h.server.Do(optest.Admin(h.org.ID), "POST", "/api-keys/"+k.ID+"/rotate", `{"grace_seconds":60}`).Want(201)
		fresh := a.Text("key")
		if a.Text("name") != k.Name || a.At("allowed_ips.0") != "127.0.0.1" || fresh == old {
			t.Errorf("the new key is not like the old one: %s", a.Bytes)
		}
		h.server.Do(optest.Admin(h.org.ID), "POST", "/api-keys/"+k.ID+"/rotate", `{}`).Want(409)
		other, gone := h.createKey(t, auth.Request{})
		h.server.Do(optest.Admin(h.org.ID), "POST", "/api-keys/"+other.ID+"/rotate", `{"grace_seconds":0}`).Want(201)
		if got := h.code(gone, access.Live, here); got != "key_revoked" {
			t.Errorf("without grace: %q", got)
		}
		for _, c := range []struct {
			after     time.Duration
			old, next string
		}{{0, "", ""}, {59 * time.Second, "", ""}, {61 * time.Second, "key_revoked", ""}} {
			start := h.now
			h.now = h.now.Add(c.after)
			if o, n := h.code(old, access.Live, here), h.code(fresh, access.Live, here); o != c.old || n != c.next {
				t.Errorf("after %s: old %q, new %q", c.after, o, n)
			}
			h.now = start
		}
	})
}

func TestCreateKey_AtMostOwnPermissions(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	p := optest.Admin(h.org.ID)
	p.Scopes = []access.Scope{access.UsersAdmin, access.CallsRead}
	h.server.Do(p, "POST", "/api-keys", `{"name":" ","kind":"partner","scopes":["calls:read","calls:write","calls:fly"],
		"allowed_ips":["here"],"expires_at":"2020-01-01T00:00:00Z","user_id":"usr_none"}`).Want(422).
		Refused("validation_failed", "name invalid_length", "kind not_allowed", "scopes not_held", "scopes unknown_scope",
			"allowed_ips invalid_network", "expires_at in_the_past")
	h.server.Do(p, "POST", "/api-keys", `{"name":"a","scopes":["calls:read"],"user_id":"usr_none"}`).Want(422).
		Refused("validation_failed", "user_id not_found")
	h.server.Do(optest.Admin(h.org.ID), "POST", "/api-keys", `{"name":"a","scopes":["partners:read"]}`).
		Refused("validation_failed", "scopes partner_scope")
	a := h.server.Do(p, "POST", "/api-keys", `{"name":"a","scopes":["calls:read"]}`).Want(201)
	if got := h.code(a.Text("key"), access.Live, here); got != "" {
		t.Errorf("the made key: %q", got)
	}
	test := p
	test.OrgID, _ = h.orgs.Twin(context.Background(), h.org.ID)
	test.Environment = access.Sandbox
	h.server.Do(test, "POST", "/api-keys", `{"name":"a","scopes":["calls:read"],"environment":"live"}`).
		Refused("validation_failed", "environment not_allowed")
	made := h.server.Do(test, "POST", "/api-keys", `{"name":"a","scopes":["calls:read"]}`).Want(201)
	if got := h.code(made.Text("key"), access.Sandbox, here); got != "" {
		t.Errorf("a test key made by a test key: %q", got)
	}
}

func TestRotate_AtMostOwnPermissions(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	strong, _ := h.createKey(t, auth.Request{Scopes: []access.Scope{access.CallsWrite}})
	p := optest.Admin(h.org.ID)
	p.Scopes = []access.Scope{access.UsersAdmin}
	h.server.Do(p, "POST", "/api-keys/"+strong.ID+"/rotate", `{}`).Refused("validation_failed", "scopes not_held")
}

func TestListKeys_WithoutSecret(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		_, live := h.createKey(t, auth.Request{})
		_, test := h.createKey(t, auth.Request{Environment: access.Sandbox})
		a := h.server.Do(optest.Admin(h.org.ID), "GET", "/api-keys", nil).Want(200)
		if strings.Contains(string(a.Bytes), live) || strings.Contains(string(a.Bytes), test) {
			t.Error("a secret is shown")
		}
		if a.Text("data.0.environment") != "test" || a.Text("data.1.environment") != "live" {
			t.Errorf("want both, newest first: %s", a.Bytes)
		}
		for _, name := range []string{"id", "name", "kind", "environment", "prefix", "key_hint", "scopes", "user_id", "allowed_ips",
			"expires_at", "last_used_at", "last_used_ip", "created_by", "created_at", "revoked_at", "rotates_to"} {
			if !a.Has("data.0", name) {
				t.Errorf("%s is missing", name)
			}
		}
		first := h.server.Do(optest.Admin(h.org.ID), "GET", "/api-keys?limit=1&include_total=true", nil).Want(200)
		if first.At("total") != float64(2) {
			t.Errorf("total of %s", first.Bytes)
		}
		second := h.server.Do(optest.Admin(h.org.ID), "GET", "/api-keys?limit=1&cursor="+first.Text("next_cursor"), nil).Want(200)
		if first.Text("data.0.environment") != "test" || second.Text("data.0.environment") != "live" || second.At("has_more") != false {
			t.Errorf("pages %s and %s", first.Bytes, second.Bytes)
		}
	})
}

func TestKeys_OtherOrganisationNotFound(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	k, _ := h.createKey(t, auth.Request{})
	other, err := h.orgs.Create(context.Background(), "Other", "DE")
	if err != nil {
		t.Fatal(err)
	}
	p := optest.Admin(other.ID)
	h.server.Do(p, "DELETE", "/api-keys/"+k.ID, nil).Want(404)
	h.server.Do(p, "POST", "/api-keys/"+k.ID+"/rotate", `{}`).Want(404)
	if a := h.server.Do(p, "GET", "/api-keys", nil).Want(200); a.At("data.0") != nil {
		t.Errorf("sees %s", a.Bytes)
	}
}

func TestLastUse_WrittenByFlush(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		_, token := h.createKey(t, auth.Request{})
		for range 3 {
			if got := h.code(token, access.Live, netip.MustParseAddr("::ffff:192.0.2.7")); got != "" {
				t.Fatal(got)
			}
		}
		if err := h.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		a := h.server.Do(optest.Admin(h.org.ID), "GET", "/api-keys", nil).Want(200)
		if a.Text("data.0.last_used_at") != "2026-11-21T12:00:00.000Z" || a.Text("data.0.last_used_ip") != "192.0.2.7" {
			t.Errorf("got %s", a.Bytes)
		}
	})
}

func TestMe_DescribesCredential(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	_, token := h.createKey(t, auth.Request{Environment: access.Sandbox})
	p, err := h.Verify(context.Background(), token, access.Sandbox, here)
	if err != nil {
		t.Fatal(err)
	}
	a := h.server.Do(p, "GET", "/me", nil).Want(200)
	if a.Text("environment") != "test" || a.Text("organization.name") != "Acme" || a.Text("credential.kind") != "standard" ||
		a.At("scopes.0") != "calls:read" || a.At("limits.reads_per_minute") != float64(600) || !a.Has("", "user") {
		t.Errorf("got %s", a.Bytes)
	}
	if a := h.server.Do(access.Principal{}, "GET", "/me", nil); a.Status != 401 {
		t.Errorf("without a credential: %d", a.Status)
	}
}

func TestUserKey_EndsWithUser(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ctx, b := context.Background(), bus.New()
		outbox := &event.Outbox{DB: d, Bus: b, Clock: clock.Func(func() time.Time { return h.now })}
		users := usertest.New(d, h.orgs, outbox, b, func() time.Time { return h.now })
		ada, err := users.Create(ctx, h.org.ID, user.Fresh{Email: "ada@example.com", FirstName: "Ada", LastName: "L"})
		if err != nil {
			t.Fatal(err)
		}
		_, token := h.createKey(t, auth.Request{UserID: ada.ID})
		_, other := h.createKey(t, auth.Request{})
		p, err := h.Verify(ctx, token, access.Live, here)
		if err != nil || p.UserID != ada.ID {
			t.Fatalf("principal %+v, %v", p, err)
		}
		if a := h.server.Do(p, "GET", "/me", nil).Want(200); a.Text("user.name") != "Ada L" || a.Text("user.role") != "agent" {
			t.Errorf("me: %s", a.Bytes)
		}
		if err := d.Tx(ctx, func(tx db.Querier) error { return h.RemoveUser(ctx, tx, h.org.ID, ada.ID) }); err != nil {
			t.Fatal(err)
		}
		if got := h.code(token, access.Live, here); got != "key_revoked" {
			t.Errorf("her key: %q", got)
		}
		if got := h.code(other, access.Live, here); got != "" {
			t.Errorf("another key: %q", got)
		}
	})
}

func TestParseScopes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list string
		kind access.Kind
		want int
	}{{"all", access.StandardKey, 13}, {"all", access.PartnerKey, 15}, {"calls:read, users:admin,calls:read", access.StandardKey, 2}} {
		if got, err := auth.ParseScopes(c.list, c.kind); err != nil || len(got) != c.want {
			t.Errorf("%s for %s: %v, %v", c.list, c.kind, got, err)
		}
	}
	if _, err := auth.ParseScopes("calls:fly", access.StandardKey); err == nil {
		t.Error("an unknown scope is accepted")
	}
}

func BenchmarkVerify(b *testing.B) {
	d := dbtest.SQLite(b)
	s, _ := seal.New()
	wires := bus.New()
	orgs := org.New(d, wires, time.Now)
	o, err := orgs.Create(context.Background(), "Acme", "GB")
	if err != nil {
		b.Fatal(err)
	}
	keys := auth.New(d, orgs, s, wires, time.Now, "soniq")
	k, err := keys.CreateKey(context.Background(), auth.Request{OrgID: o.ID, Name: "bench", Scopes: access.All()[:3]})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := keys.Verify(context.Background(), *k.Secret, access.Live, here); err != nil {
			b.Fatal(err)
		}
	}
}
