package op_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/op/optest"
)

// Thing is the record of the tests' operations.
type Thing struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	N    int    `json:"n"`
}

// ThingBody is the body that creates a Thing.
type ThingBody struct {
	Name  string   `json:"name" minLength:"2" maxLength:"10"`
	N     int      `json:"n,omitempty" minimum:"1" maximum:"9" default:"3"`
	Kind  string   `json:"kind,omitempty" enum:"a,b"`
	Phone string   `json:"phone,omitempty" pattern:"^\\+[0-9]+$"`
	Deep  DeepBody `json:"deep,omitempty"`
}

// DeepBody is a part of a ThingBody.
type DeepBody struct {
	Secret string `json:"secret,omitempty" maxLength:"3"`
}

// CreateThing is the input of things.create.
type CreateThing struct{ Body ThingBody }

// ListThings is the input of things.list.
type ListThings struct {
	op.Paging
	op.Span
	Name string `query:"name" maxLength:"5"`
}

// GetThing is the input of things.get.
type GetThing struct {
	ID string `path:"id"`
}

// PatchThing is the input of things.update.
type PatchThing struct {
	GetThing
	Body PatchBody
}

// PatchBody is a merge patch.
type PatchBody struct {
	Name op.Change[string] `json:"name,omitempty"`
	N    op.Change[int]    `json:"n,omitempty"`
}

// things is a small service. If fn is set, create calls it after writing its row.
type things struct {
	db *db.DB
	mu sync.Mutex // guards fn
	fn func(ctx context.Context) error
}

func (s *things) then(fn func(ctx context.Context) error) { s.mu.Lock(); s.fn = fn; s.mu.Unlock() }

func (s *things) create(ctx context.Context, in *CreateThing) (*op.Out[Thing], error) {
	x := Thing{db.NewID("thg"), in.Body.Name, in.Body.N}
	err := s.db.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `INSERT INTO things (org_id, id, name, n) VALUES ($1, $2, $3, $4)`, access.Org(ctx), x.ID, x.Name, x.N)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	fn := s.fn
	s.mu.Unlock()
	if fn != nil {
		if err := fn(ctx); err != nil {
			return nil, err
		}
	}
	return &op.Out[Thing]{Location: op.Prefix + "/things/" + x.ID, ETag: `"1"`, Body: x}, nil
}

func (s *things) list(ctx context.Context, in *ListThings) (*op.Out[op.Page[Thing]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err := in.Times(); err != nil {
		return nil, err
	}
	q, args := db.Where(`SELECT id, name, n FROM things WHERE org_id = $1`, access.Org(ctx)).Page("n", false, after.Int, after.ID, in.Limit).SQL()
	rows, err := s.db.Read(ctx).Query(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Thing
	for rows.Next() {
		var x Thing
		if err := rows.Scan(&x.ID, &x.Name, &x.N); err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return op.Paged(ctx, in.Paging, all, func(x Thing) op.Position { return op.Position{Int: int64(x.N), ID: x.ID} }), rows.Err()
}

func (s *things) get(_ context.Context, in *GetThing) (*op.Out[Thing], error) {
	switch in.ID {
	case "state":
		return nil, op.State("it has ended", "completed", "note", "tag")
	case "used":
		return nil, op.InUse("a flow uses it", "flw_1", "flw_2")
	case "busy":
		return nil, op.Unavailable("overloaded", "come back", "7")
	case "secret":
		return nil, errors.New("password hunter2 is wrong")
	}
	return nil, op.NotFound("thing")
}

func (s *things) update(_ context.Context, in *PatchThing) (*op.Out[map[string]string], error) {
	name, n := "old", 7
	in.Body.Name.Apply(&name)
	in.Body.N.Apply(&n)
	return op.OK(map[string]string{"name": fmt.Sprintf("%q %v %v", name, in.Body.Name.Set, in.Body.Name.Null), "n": fmt.Sprint(n)})
}

func (s *things) remove(_ context.Context, in *GetThing) error {
	if in.ID == "missing" {
		return op.NotFound("thing")
	}
	return nil
}

func newThings(t *testing.T, d *db.DB) (*things, *optest.Server, access.Principal) {
	t.Helper()
	s, org := &things{db: d}, db.NewID("org")
	err := d.Tx(t.Context(), func(tx db.Querier) error {
		const q = `INSERT INTO orgs (id, path, environment, name, plan, status, country, timezone, language, settings, created_at,
			updated_at)
			VALUES ($1, $2, 'live', 'Test', 'standard', 'active', 'GB', 'UTC', 'en', '{}', 0, 0)`
		if _, err := tx.Exec(t.Context(), q, org, "/"+org+"/"); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `CREATE TABLE things (org_id TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, n INTEGER NOT NULL)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	api := optest.New(t, d,
		op.New("things.create", "POST /things", access.UsersAdmin, "Make a thing", s.create).Status(201),
		op.New("things.call", "POST /things/call", access.UsersAdmin, "Make a thing outside", s.create).Status(201).WithSideEffects(),
		op.New("things.list", "GET /things", access.UsersAdmin, "List things", s.list),
		op.New("things.get", "GET /things/{id}", access.UsersAdmin, "Get a thing", s.get),
		op.New("things.update", "PATCH /things/{id}", access.Both(access.UsersAdmin, access.FlowsAdmin), "Change a thing", s.update),
		op.Delete("things.delete", "DELETE /things/{id}", access.UsersAdmin, "Delete a thing", s.remove),
		op.Planned("things.later", "POST /things/later", access.UsersAdmin, "Not yet"))
	return s, api, optest.Admin(org)
}

func rows(t *testing.T, d *db.DB, table string) (n int) {
	t.Helper()
	if err := d.Read(t.Context()).QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
