package op_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op"
	"soniq/internal/platform/op/optest"
)

// Dial is a record with updated_at.
type Dial struct {
	ID        string  `json:"id"`
	N         int     `json:"n"`
	UpdatedAt db.Time `json:"updated_at"`
}

// Face is the same record without updated_at.
type Face struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

// DialIn is the input that changes a Dial.
type DialIn struct {
	GetThing
	Body DialBody
}

// DialBody is the change of a Dial.
type DialBody struct {
	By int `json:"by"`
}

// dials is a service without version code.
type dials struct{ db *db.DB }

func (s dials) read(ctx context.Context, id string) (d Dial, err error) {
	const q = `SELECT id, n, updated_at FROM dials WHERE org_id = $1 AND id = $2`
	if err = s.db.Read(ctx).QueryRow(ctx, q, access.Org(ctx), id).Scan(&d.ID, &d.N, &d.UpdatedAt); db.IsNone(err) {
		return d, op.NotFound("dial")
	}
	return d, err
}

func (s dials) get(ctx context.Context, in *GetThing) (*op.Out[Dial], error) {
	d, err := s.read(ctx, in.ID)
	return &op.Out[Dial]{Body: d}, err
}

func (s dials) face(ctx context.Context, in *GetThing) (*op.Out[Face], error) {
	d, err := s.read(ctx, in.ID)
	return &op.Out[Face]{Body: Face{d.ID, d.N}}, err
}

func (s dials) make(ctx context.Context, _ *struct{}) (*op.Out[Dial], error) {
	d := Dial{db.NewID("dia"), 0, db.At(time.Now())}
	err := s.db.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `INSERT INTO dials (org_id, id, n, updated_at) VALUES ($1, $2, $3, $4)`, access.Org(ctx), d.ID, d.N, d.UpdatedAt)
		return err
	})
	return &op.Out[Dial]{Body: d, Location: op.Prefix + "/dials/" + d.ID}, err
}

func (s dials) turn(ctx context.Context, in *DialIn) (*op.Out[Dial], error) {
	d, err := s.read(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	d.N, d.UpdatedAt = d.N+in.Body.By, db.At(time.Now())
	err = s.db.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `UPDATE dials SET n = $3, updated_at = $4 WHERE org_id = $1 AND id = $2`, access.Org(ctx), d.ID, d.N, d.UpdatedAt)
		return err
	})
	return &op.Out[Dial]{Body: d}, err
}

func (s dials) remove(ctx context.Context, in *GetThing) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `DELETE FROM dials WHERE org_id = $1 AND id = $2`, access.Org(ctx), in.ID)
		return err
	})
}

func newDials(t *testing.T, d *db.DB) (*optest.Server, access.Principal) {
	t.Helper()
	_, _, p := newThings(t, d)
	err := d.Tx(t.Context(), func(tx db.Querier) error {
		_, err := tx.Exec(t.Context(), `CREATE TABLE dials (org_id TEXT NOT NULL, id TEXT NOT NULL, n INTEGER NOT NULL, updated_at BIGINT NOT NULL)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s := dials{d}
	return optest.New(t, d,
		op.New("dials.make", "POST /dials", access.UsersAdmin, "Make", s.make).Status(201),
		op.New("dials.get", "GET /dials/{id}", access.UsersAdmin, "Get", s.get),
		op.New("dials.turn", "PATCH /dials/{id}", access.UsersAdmin, "Turn", s.turn),
		op.Delete("dials.delete", "DELETE /dials/{id}", access.UsersAdmin, "Delete", s.remove),
		op.New("faces.get", "GET /faces/{id}", access.UsersAdmin, "Get", s.face),
		op.New("faces.turn", "PATCH /faces/{id}", access.UsersAdmin, "Turn", s.turn)), p
}

func TestRecord_ETags(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		api, p := newDials(t, d)
		made := api.Do(p, "POST", "/dials", nil).Want(201)
		for _, path := range []string{"/dials/" + made.Text("id"), "/faces/" + made.Text("id")} {
			first := api.Do(p, "GET", path, nil).Want(200).Header.Get("ETag")
			if first == "" || path[1] == 'd' && first != made.Header.Get("ETag") {
				t.Errorf("%s was made as %q and is %q", path, made.Header.Get("ETag"), first)
			}
			if a := api.Do(p, "GET", path, nil, "If-None-Match: "+first).Want(304); len(a.Bytes) > 0 || a.Header.Get("ETag") != first {
				t.Errorf("304 with %q and body %q", a.Header.Get("ETag"), a.Bytes)
			}
			second := api.Do(p, "PATCH", path, `{"by":1}`, "If-Match: "+first).Want(200).Header.Get("ETag")
			if second == first || second != api.Do(p, "GET", path, nil).Header.Get("ETag") {
				t.Errorf("%s changed from %q to %q", path, first, second)
			}
			api.Do(p, "PATCH", path, `{"by":1}`, "If-Match: "+first).Want(412).Refused("version_conflict")
			api.Do(p, "PATCH", path, `{"by":1}`, "If-Match: W/"+second).Want(412) // weak tags never match
			api.Do(p, "PATCH", path, `{"by":1}`, "If-Match: *").Want(200)
			api.Do(p, "PATCH", "/dials/none", `{"by":1}`, "If-Match: *").Want(404)
		}
		api.Do(p, "DELETE", "/dials/"+made.Text("id"), nil, `If-Match: "x"`).Want(412)
		if a := api.Do(p, "GET", "/dials/"+made.Text("id"), nil).Want(200); a.At("n") != 4.0 {
			t.Errorf("refused changes changed it: %s", a.Bytes)
		}
		api.Do(p, "DELETE", "/dials/"+made.Text("id"), nil, "If-Match: *").Want(204)
	})
}

func TestRecord_ConcurrentIfMatch(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		api, p := newDials(t, d)
		made := api.Do(p, "POST", "/dials", nil).Want(201)
		path := "/dials/" + made.Text("id")
		statuses := make([]int, 16)
		var all sync.WaitGroup
		for i := range statuses {
			all.Go(func() {
				statuses[i] = api.Do(p, "PATCH", path, `{"by":1}`, "If-Match: "+made.Header.Get("ETag")).Status
			})
		}
		all.Wait()
		count := map[int]int{}
		for _, s := range statuses {
			count[s]++
		}
		if n := api.Do(p, "GET", path, nil).At("n"); count[200] != 1 || count[412] != 15 || n != 1.0 {
			t.Errorf("answers %v, turned %v times; want one 200 and 15 times 412", count, n)
		}
		for i := range statuses { // without If-Match no change is lost
			all.Go(func() { statuses[i] = api.Do(p, "PATCH", path, `{"by":1}`).Status })
		}
		all.Wait()
		if n := api.Do(p, "GET", path, nil).At("n"); n != 17.0 {
			t.Errorf("turned to %v by 17 changes", n)
		}
	})
}

func TestDeprecate_Headers(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := dials{d}
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	mux := http.NewServeMux()
	old := op.New("faces.get", "GET /faces/{id}", access.UsersAdmin, "Get", s.face).Deprecate(since, since.AddDate(0, 1, 0), "https://example.org/faces")
	doc := op.NewAPI(mux, &op.Pipeline{DB: d}, []op.Operation{old}).OpenAPI()
	if get := doc.Paths[op.Prefix+"/faces/{id}"].Get; !get.Deprecated || get.Extensions["x-sunset"] != "2027-03-01" {
		t.Errorf("description: %v %v", get.Deprecated, get.Extensions)
	}
	a := optest.New(t, d, old).Do(access.Principal{}, "GET", "/faces/x", nil).Want(401) // error responses have the headers as well
	for name, want := range map[string]string{"Deprecation": fmt.Sprintf("@%d", since.Unix()), "Sunset": "Mon, 01 Mar 2027 12:00:00 GMT",
		"Link": `<https://example.org/faces>; rel="deprecation"; type="text/html"`} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestOperation_CodesDefined(t *testing.T) {
	t.Parallel()
	none := func(context.Context, *struct{}) (*op.Out[Face], error) { return nil, nil }
	o := op.New("x.make", "POST /x", access.UsersAdmin, "Make", none).Status(201).Fails("extension_taken")
	announced := map[string]bool{}
	for _, c := range o.Codes() {
		announced[c] = true
		if _, _, _, ok := op.Help(c); !ok {
			t.Errorf("%s is no code", c)
		}
	}
	for _, c := range []string{"extension_taken", "rate_limited", "malformed_json", "idempotency_key_reused", "insufficient_scope", "plan_limit"} {
		if !announced[c] {
			t.Errorf("%s is not announced", c)
		}
	}
	if announced["version_conflict"] || announced["invalid_cursor"] {
		t.Error("codes are announced that cannot be")
	}
}
