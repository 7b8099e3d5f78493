package op_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op"
)

func TestValidation_UnknownFieldsRefused(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	_, api, p := newThings(t, d)
	api.Do(p, "POST", "/things", map[string]any{"name": "good", "nmae": "x"}).Want(400).Refused("unknown_field", "nmae unknown_field")
	api.Do(p, "POST", "/things", map[string]any{"name": "good", "deep": map[string]any{"secrets": "x"}}).Want(400).
		Refused("unknown_field", "deep.secrets unknown_field")
	api.Do(p, "GET", "/things?limt=3", nil).Want(400).Refused("invalid_query")
	if n := rows(t, d, "things"); n != 0 {
		t.Errorf("%d things were made", n)
	}
}

func TestValidation_AllViolationsWithoutValues(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	a := api.Do(p, "POST", "/things", map[string]any{"name": "x", "n": 99, "kind": "z", "phone": "hello", "deep": map[string]any{"secret": "hunter2"}}).
		Want(422).Refused("validation_failed", "name invalid", "n invalid", "kind invalid", "phone invalid", "deep.secret invalid")
	if strings.Contains(string(a.Bytes), "hunter2") {
		t.Errorf("the answer repeats what was sent: %s", a.Bytes)
	}
	api.Do(p, "POST", "/things", map[string]any{"n": 1}).Want(422).Refused("validation_failed", "name required")
	api.Do(p, "GET", "/things?limit=0&name=toolong", nil).Want(400).Refused("invalid_query", "limit invalid", "name invalid")
	api.Do(p, "GET", "/things?since=yesterday&until=2026-13-01", nil).Want(400).
		Refused("invalid_query", "since invalid_time", "until invalid_time")
}

func TestValidation_MalformedJSON(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	for _, body := range []string{`{"name":`, `{"name" "x"}`, `hello`, `{"name":"good"} trailing`, "\xff\xfe"} {
		api.Do(p, "POST", "/things", body).Want(400).Refused("malformed_json")
	}
	api.Do(p, "POST", "/things", `"text"`).Refused("validation_failed")
	api.Do(p, "POST", "/things", `{"name":"good"}`, "Content-Type: text/plain").Want(415).Refused("unsupported_media_type")
	api.Do(p, "POST", "/things", `{"name":"`+strings.Repeat("x", 2<<20)+`"}`).Want(413).Refused("payload_too_large")
	api.Do(p, "POST", "/things", `{"name":"`+strings.Repeat("x", 2<<20)+`"}`, "Idempotency-Key: big").Want(413).Refused("payload_too_large")
}

// TestBody_AnnouncedAsTooLarge expects that a body which is announced as too large is not read.
func TestBody_AnnouncedAsTooLarge(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	body := strings.NewReader(`{"name":"` + strings.Repeat("x", 2<<20) + `"}`)
	size := body.Len()
	api.Send(p, "POST", "/things", body, "Content-Type: application/json").Want(413).Refused("payload_too_large")
	if read := size - body.Len(); read > 0 {
		t.Errorf("%d of %d bytes were read", read, size)
	}
}

func TestProblem_Members(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	a := api.Do(p, "GET", "/things/state", nil).Want(409).Refused("invalid_state")
	if a.Text("type") != "/errors/invalid_state" || a.Text("current_status") != "completed" || a.Text("allowed_actions.1") != "tag" || a.At("status") != 409.0 ||
		a.Text("title") == "" || a.Text("detail") != "it has ended" || !a.Has("", "request_id") || a.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("problem %s, %s", a.Bytes, a.Header.Get("Content-Type"))
	}
	if a := api.Do(p, "GET", "/things/used", nil).Want(409).Refused("in_use"); a.Text("used_by.1") != "flw_2" {
		t.Errorf("problem %s", a.Bytes)
	}
	if a := api.Do(p, "GET", "/things/busy", nil).Want(503).Refused("overloaded"); a.Header.Get("Retry-After") != "7" ||
		a.Text("type") != "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity" {
		t.Errorf("problem %s, Retry-After %q", a.Bytes, a.Header.Get("Retry-After"))
	}
	if a := api.Do(p, "GET", "/things/secret", nil).Want(500).Refused("internal"); strings.Contains(string(a.Bytes), "hunter2") {
		t.Errorf("the cause is shown: %s", a.Bytes)
	}
	api.Do(p, "DELETE", "/things/missing", nil).Want(404).Refused("not_found")
	if a := api.Do(p, "DELETE", "/things/there", nil).Want(204); len(a.Bytes) != 0 {
		t.Errorf("204 with a body: %s", a.Bytes)
	}
	if a := api.Do(p, "POST", "/things/later", map[string]any{}).Want(501).Refused("not_enabled"); a.Text("rollout") != "planned" {
		t.Errorf("problem %s", a.Bytes)
	}
}

func TestCodes_StatusAndHelp(t *testing.T) {
	t.Parallel()
	for _, c := range op.Codes() {
		status, title, help, ok := op.Help(c)
		if !ok || status < 400 || title == "" || help == "" {
			t.Errorf("%s: %d %q %q", c, status, title, help)
		}
		if p := op.AsProblem(context.Background(), op.Fail(c, "x")); p.Status != status || p.Code != c {
			t.Errorf("%s becomes %+v", c, p)
		}
	}
	if p := op.AsProblem(context.Background(), op.Fail("made_up", "secret")); p.Status != 500 || p.Code != "internal" || p.Detail != "" {
		t.Errorf("an unlisted code becomes %+v", p)
	}
}

func TestScopes_Required(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	_, api, p := newThings(t, d)
	p.Scopes = []access.Scope{access.UsersAdmin}
	api.Do(p, "GET", "/things", nil).Want(200)
	a := api.Do(p, "PATCH", "/things/x", map[string]any{}).Want(403).Refused("insufficient_scope")
	if !strings.Contains(a.Header.Get("Www-Authenticate"), `scope="flows:admin"`) || a.Text("required_scopes.0") != "flows:admin" {
		t.Errorf("%s: %s", a.Header.Get("Www-Authenticate"), a.Bytes)
	}
	p.Scopes = nil
	api.Do(p, "POST", "/things", map[string]any{"name": "good"}).Want(403)
	api.Do(access.Principal{}, "POST", "/things", map[string]any{"name": "good"}).Want(401).Refused("unauthenticated")
	if n := rows(t, d, "things"); n != 0 {
		t.Errorf("%d things were made", n)
	}
}

func TestChange_AbsentOrNull(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	for body, want := range map[string]string{
		`{}`:                      `"old" false false 7`,
		`{"name":null}`:           `"" true true 7`,
		`{"name":"new","n":null}`: `"new" true false 0`,
		`{"n":5}`:                 `"old" false false 5`,
	} {
		if a := api.Do(p, "PATCH", "/things/x", body).Want(200); a.Text("name")+" "+a.Text("n") != want {
			t.Errorf("%s gives %s %s, want %s", body, a.Text("name"), a.Text("n"), want)
		}
	}
}

func TestAudit_Writes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, api, p := newThings(t, d)
		api.Do(p, "POST", "/things", map[string]any{"name": "good"}).Want(201)
		api.Do(p, "POST", "/things", map[string]any{"name": "x"}).Want(422)
		api.Do(p, "GET", "/things", nil).Want(200)
		var operation, key, source string
		if err := d.Read(t.Context()).QueryRow(t.Context(), `SELECT operation, key_id, source FROM audit WHERE org_id = $1`, p.OrgID).
			Scan(&operation, &key, &source); err != nil || operation != "things.create" || key != p.KeyID || source != "127.0.0.1" {
			t.Errorf("audit: %s %s %s (%v)", operation, key, source, err)
		}
		if n := rows(t, d, "audit"); n != 1 {
			t.Errorf("%d audit lines, want 1", n)
		}
	})
}

func TestCursors_PagesAndForgery(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	for i := range 9 {
		api.Do(p, "POST", "/things", map[string]any{"name": "thing", "n": i%3 + 1}).Want(201)
	}
	var seen []string
	path := "/things?limit=4"
	for range 3 {
		a := api.Do(p, "GET", path, nil).Want(200)
		list, _ := a.At("data").([]any)
		for _, x := range list {
			seen = append(seen, x.(map[string]any)["id"].(string))
		}
		if a.At("has_more") != (a.At("next_cursor") != nil) {
			t.Errorf("has_more %v with next_cursor %v", a.At("has_more"), a.At("next_cursor"))
		}
		path = "/things?limit=4&cursor=" + a.Text("next_cursor")
	}
	unique := map[string]bool{}
	for _, id := range seen {
		unique[id] = true
	}
	if len(seen) != 9 || len(unique) != 9 {
		t.Errorf("%d records seen, %d different; want 9", len(seen), len(unique))
	}
	good := api.Do(p, "GET", "/things?limit=4", nil).Text("next_cursor")
	for i := range good { // changes each character once
		c := byte('A')
		if good[i] == c {
			c = 'B'
		}
		bad := good[:i] + string(c) + good[i+1:]
		if a := api.Do(p, "GET", "/things?limit=4&cursor="+bad, nil); a.Status != 400 || a.Text("code") != "invalid_cursor" {
			t.Fatalf("cursor changed at %d: %d %s", i, a.Status, a.Bytes)
		}
	}
	for _, bad := range []string{"x", "AAAA", good[:len(good)-4], good + "AAAA", "%00"} {
		api.Do(p, "GET", "/things?limit=4&cursor="+bad, nil).Want(400).Refused("invalid_cursor")
	}
}

func TestCursors_Expire(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	at := clock.Func(func() time.Time { return now })
	c := op.Cursors{Key: []byte("k"), Clock: at}
	text := op.EncodeCursor(c, op.Position{Int: 5, ID: "x"})
	now = now.Add(24 * time.Hour)
	if p, err := op.DecodeCursor(c, text); err != nil || p.Int != 5 || p.ID != "x" {
		t.Errorf("after 24 h: %+v, %v", p, err)
	}
	now = now.Add(time.Second)
	if _, err := op.DecodeCursor(c, text); err == nil {
		t.Error("a cursor of 24 h and 1 s is accepted")
	}
	if _, err := op.DecodeCursor(op.Cursors{Key: []byte("other"), Clock: at}, op.EncodeCursor(c, op.Position{})); err == nil {
		t.Error("a cursor of another server is accepted")
	}
}

func TestPage_SparseFields(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	api.Do(p, "POST", "/things", map[string]any{"name": "good"}).Want(201)
	a := api.Do(p, "GET", "/things?fields=n", nil).Want(200)
	var page struct{ Data []map[string]json.RawMessage }
	if err := json.Unmarshal(a.Bytes, &page); err != nil || len(page.Data[0]) != 2 || page.Data[0]["id"] == nil ||
		string(page.Data[0]["n"]) != "3" {
		t.Errorf("record %s", a.Bytes)
	}
}

func TestAudit_PartnerInBothOrgs(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, api, p := newThings(t, d)
		home, child := p.OrgID, db.NewID("org")
		if err := d.Tx(t.Context(), func(tx db.Querier) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO orgs (id, parent_id, path, environment, name, plan, status, country, timezone,
					language, settings, created_at, updated_at)
				SELECT $1, id, path, environment, name, plan, status, country, timezone, language, settings, 0, 0
					FROM orgs WHERE id = $2`, child, home)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		api.Do(p.ActingIn(child, p.Scopes), "POST", "/things", map[string]any{"name": "good"}).Want(201)
		const text = `SELECT operation, key_id, actor_org_id, on_behalf_of FROM audit WHERE org_id = $1`
		for _, org := range []string{home, child} {
			var operation, key, actor, of string
			if err := d.Read(t.Context()).QueryRow(t.Context(), text, org).Scan(&operation, &key, &actor, &of); err != nil ||
				operation != "things.create" ||
				key != p.KeyID || actor != home || of != child {
				t.Errorf("in %s: %s by %s of %s for %s: %v", org, operation, key, actor, of, err)
			}
		}
	})
}

// cutBody is a body that ends in an error, such as a malformed chunk.
type cutBody struct{ text string }

func (c *cutBody) Read(b []byte) (int, error) {
	if c.text == "" {
		return 0, errors.New("invalid byte in chunk length")
	}
	n := copy(b, c.text)
	c.text = c.text[n:]
	return n, nil
}

// A body that cannot be read is the fault of who sent it, not of the server.
func TestBody_Unreadable(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	_, api, admin := newThings(t, d)
	a := api.Send(admin, "POST", "/things", &cutBody{`{"name":"abc"`}, "Content-Type: application/json")
	a.Want(400).Refused("malformed_json", "body malformed")
	if n := rows(t, d, "things"); n != 0 {
		t.Errorf("%d things were made", n)
	}
}

// Clocks in Chile go forward at midnight: the day begins at one, and not at eleven of the day before.
//
// https://github.com/Restcomm/Restcomm-Connect/issues/1703
func TestSpan_DateBeginsAtFirstMoment(t *testing.T) {
	t.Parallel()
	ctx := access.With(t.Context(), access.Principal{Timezone: "America/Santiago"})
	since, until, err := op.Span{Since: "2026-09-06", Until: "2026-09-07"}.In(ctx).Times()
	if err != nil || since.UTC().Format(time.RFC3339) != "2026-09-06T04:00:00Z" || until.UTC().Format(time.RFC3339) != "2026-09-07T03:00:00Z" {
		t.Errorf("from %v to %v, %v", since, until, err)
	}
}
