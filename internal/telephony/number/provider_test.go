package number_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// testClock is a clock that tests advance.
type testClock struct {
	mu sync.Mutex // guards at
	at time.Time
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// useSandbox switches the fixture to the organisation's sandbox with its provider. It returns the provider's clock,
// and a function that runs the job which follows an order.
func (h *fixture) useSandbox(t *testing.T) (c *testClock, follow func(id string) error) {
	t.Helper()
	twin, err := h.orgs.Twin(context.Background(), h.org)
	if err != nil {
		t.Fatal(err)
	}
	h.org = twin
	c = &testClock{at: time.Now()}
	h.providers[number.ProviderSandbox] = trunk.NewSandboxMarket(c.now)
	return c, func(id string) error {
		args, _ := json.Marshal(map[string]string{"id": id})
		return h.FollowOrder(context.Background(), job.Job{Org: h.org, Args: args, Attempt: 1, MaxAttempts: 25})
	}
}

// allocated counts the number.allocated events of a number.
func (h *fixture) allocated(t *testing.T, e164 string) (n int) {
	t.Helper()
	row := h.db.Read(context.Background()).QueryRow(context.Background(),
		`SELECT COUNT(*) FROM events WHERE org_id = $1 AND kind = 'number.allocated' AND body LIKE $2`, h.org, "%"+e164+"%")
	if err := row.Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func asRetry(err error, to **job.Retry) bool { return errors.As(err, to) }

func TestSandboxProvider_SearchAndOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		if a := h.do("GET", "/numbers/search?country=US", nil).Want(200); a.Has("data.0", "number") || a.Text("searched.0.provider") != "own" || a.Has("searched.1", "provider") {
			t.Errorf("outside of the sandbox: %s", a.Bytes)
		}
		c, follow := h.useSandbox(t)
		a := h.do("GET", "/numbers/search?country=US&limit=3", nil).Want(200)
		if a.Text("data.0.number") != "+12025550121" || a.Text("data.2.number") != "+12025550123" || a.Text("data.0.provider") != "sandbox" ||
			a.Text("searched.1.status") != "ok" || a.Has("data.3", "number") {
			t.Errorf("found %s", a.Bytes)
		}
		if a := h.do("GET", "/numbers/search?country=US&area_code=415&contains=555017", nil).Want(200); a.Text("data.0.number") != "+14155550170" {
			t.Errorf("found %s", a.Bytes)
		}
		if a := h.do("GET", "/numbers/search?type=mobile", nil).Want(200); !strings.HasPrefix(a.Text("data.0.number"), "+447") || a.Text("data.0.type") != "mobile" {
			t.Errorf("found %s", a.Bytes)
		}
		h.do("GET", "/numbers/search?country=XX&contains=x&provider=nobody", nil).Want(400).Refused("invalid_query", "country invalid_country", "contains invalid_value", "provider not_found")

		once := h.do("POST", "/numbers", `{"number":"+12025550121"}`).Want(201)
		if once.Text("status") != "active" || once.Text("provider") != "sandbox" || h.allocated(t, "+12025550121") != 1 || once.At("monthly_cost.amount") != 0.0 {
			t.Errorf("at once: %s", once.Bytes)
		}
		h.do("POST", "/numbers", `{"number":"+12025550121"}`).Want(409).Refused("number_unavailable")
		h.do("POST", "/numbers", `{"number":"+12025550123"}`).Want(409).Refused("number_unavailable")
		later := h.do("POST", "/numbers", `{"number":"+12025550122","label":"Later"}`).Want(202)
		id := later.Text("id")
		if later.Text("status") != "pending" || later.At("allocated_at") != nil || h.allocated(t, "+12025550122") != 0 {
			t.Errorf("pending: %s", later.Bytes)
		}
		var retry *job.Retry
		if err := follow(id); !asRetry(err, &retry) || retry.After > 10*time.Second {
			t.Errorf("asked too early: %v", err)
		}
		c.advance(11 * time.Second)
		for range 2 { // a job may run again after a crash
			if err := follow(id); err != nil {
				t.Fatal(err)
			}
		}
		if a := h.do("GET", "/numbers/"+id, nil).Want(200); a.Text("status") != "active" || a.Text("allocated_at") == "" || h.allocated(t, "+12025550122") != 1 {
			t.Errorf("active: %s; told %d times", a.Bytes, h.allocated(t, "+12025550122"))
		}
		var due int
		row := d.Read(context.Background()).QueryRow(context.Background(), `SELECT COUNT(*) FROM jobs WHERE org_id = $1 AND kind = 'number.order'`, h.org)
		if err := row.Scan(&due); err != nil || due != 1 {
			t.Errorf("%d jobs, %v", due, err)
		}
		n, err := h.Owned(context.Background(), d.Read(context.Background()), h.org, "+12025550122")
		if err != nil || n.ID != id {
			t.Errorf("owned: %+v, %v", n.ID, err)
		}
	})
}

func TestSandbox_NumbersNotUnique(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		live := h.org
		trunk := h.trunk
		h.useSandbox(t)
		h.do("POST", "/numbers", `{"number":"+12025550121"}`).Want(201)
		other, err := h.orgs.Create(context.Background(), "Other", "US")
		if err != nil {
			t.Fatal(err)
		}
		twin, err := h.orgs.Twin(context.Background(), other.ID)
		if err != nil {
			t.Fatal(err)
		}
		h.server.Do(optest.Admin(twin), "POST", "/numbers", `{"number":"+12025550121"}`).Want(201)
		h.server.Do(optest.Admin(live), "POST", "/numbers", fmt.Sprintf(`{"number":"+12025550121","trunk_id":%q,"user_id":%q}`, trunk, h.ada)).Want(201)
		if got := h.assignedTo(t, "+12025550121", trunk); got != h.ada {
			t.Errorf("a call from outside rings %q", got)
		}
		h.server.Do(optest.Admin(live), "POST", "/numbers", fmt.Sprintf(`{"number":"+12025550177","trunk_id":%q,"provider":"sandbox"}`, trunk)).Want(422).
			Refused("validation_failed", "provider reserved")
	})
}

func TestStock_AddSearchTake(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ctx := context.Background()
		if n, err := h.AddStock(ctx, h.org, h.trunk, "+442079460100", "+442079460109"); err != nil || n != 10 {
			t.Fatalf("added %d, %v", n, err)
		}
		if n, err := h.AddStock(ctx, h.org, h.trunk, "020 7946 0108", "020 7946 0111"); err != nil || n != 2 {
			t.Errorf("added %d, %v", n, err)
		}
		for _, bad := range [][2]string{{"+442079460111", "+442079460110"}, {"x", "y"}, {"+442079460000", "+442079499999"}} {
			if _, err := h.AddStock(ctx, h.org, h.trunk, bad[0], bad[1]); err == nil {
				t.Errorf("%v was added", bad)
			}
		}
		if _, err := h.AddStock(ctx, h.org, "trk_none", "+442079460200", "+442079460209"); err == nil {
			t.Error("added over no trunk")
		}
		a := h.do("GET", "/numbers/search?area_code=20&contains=0105", nil).Want(200)
		if a.Text("data.0.number") != "+442079460105" || a.Text("data.0.provider") != "own" || a.Text("data.0.locality") != "London" {
			t.Errorf("found %s", a.Bytes)
		}
		other := h.competitor(t, "198.51.100.1", false)
		if a := other.do("GET", "/numbers/search?contains=0105", "").Want(200); a.Has("data.0", "number") {
			t.Errorf("another organisation finds %s", a.Bytes)
		}
		other.do("POST", "/numbers", `{"number":"+442079460105"}`).Want(422).Refused("validation_failed", "trunk_id required")
		id := h.do("POST", "/numbers", `{"number":"+442079460105"}`).Want(201).Text("id")
		if n := h.do("GET", "/numbers/"+id, nil).Want(200); n.Text("trunk_id") != h.trunk || n.Text("status") != "active" {
			t.Errorf("taken: %s", n.Bytes)
		}
		if a := h.do("GET", "/numbers/search?contains=0105", nil).Want(200); a.Has("data.0", "number") {
			t.Errorf("found although taken: %s", a.Bytes)
		}
		h.do("DELETE", "/numbers/"+id+"?confirm=442079460105", nil).Want(204)
		if a := h.do("GET", "/numbers/search?contains=0105", nil).Want(200); a.Text("data.0.number") != "+442079460105" {
			t.Errorf("not found although given back: %s", a.Bytes)
		}
		h.do("POST", "/numbers", `{"number":"+442079460999"}`).Want(422).Refused("validation_failed", "trunk_id required")
	})
}

func TestPort_Lifecycle(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ctx := context.Background()
		h.do("POST", "/numbers/ports", `{"numbers":["x","020 7946 0018","+442079460018"],"carrier":" ","documents":[""]}`).Want(422).
			Refused("validation_failed", "numbers[0] invalid_e164", "numbers[2] invalid_e164", "carrier invalid_length", "documents invalid_length")
		p := h.do("POST", "/numbers/ports", `{"numbers":["020 7946 0018","020 7946 0019"],"carrier":"Old Co","documents":["letter.pdf"]}`).Want(201)
		id := p.Text("id")
		if p.Text("status") != "submitted" || p.Text("numbers.1.number") != "+442079460019" || p.Text("numbers.0.status") != "porting_in" {
			t.Errorf("port %s", p.Bytes)
		}
		h.add("+442079460018", "").Want(409).Refused("number_unavailable")
		if got := h.assignedTo(t, "+442079460018", h.trunk); got != "-" {
			t.Errorf("before it came it rings %q", got)
		}
		for _, x := range []struct{ status, trunk string }{{"lost", ""}, {"completed", ""}, {"completed", "trk_none"}} {
			if _, err := h.SetPort(ctx, h.org, id, x.status, x.trunk, ""); err == nil {
				t.Errorf("%+v was taken", x)
			}
		}
		if _, err := h.SetPort(ctx, h.org, id, "scheduled", "", "on Monday"); err != nil {
			t.Fatal(err)
		}
		if p := h.do("GET", "/numbers/ports/"+id, nil).Want(200); p.Text("status") != "scheduled" || p.Text("detail") != "on Monday" {
			t.Errorf("port %s", p.Bytes)
		}
		if _, err := h.SetPort(ctx, h.org, id, "completed", h.trunk, ""); err != nil {
			t.Fatal(err)
		}
		if p := h.do("GET", "/numbers/ports/"+id, nil).Want(200); p.Text("numbers.0.status") != "active" || p.Text("completed_at") == "" {
			t.Errorf("port %s", p.Bytes)
		}
		if got := h.assignedTo(t, "+442079460018", h.trunk); got != "" || h.allocated(t, "+442079460018") != 1 {
			t.Errorf("it rings %q; told %d times", got, h.allocated(t, "+442079460018"))
		}
		if _, err := h.SetPort(ctx, h.org, id, "rejected", "", ""); err == nil {
			t.Error("a port that is over was changed")
		}
		gone := h.do("POST", "/numbers/ports", `{"numbers":["020 7946 0020"],"carrier":"Old Co"}`).Want(201).Text("id")
		if _, err := h.SetPort(ctx, h.org, gone, "rejected", "", "no such customer"); err != nil {
			t.Fatal(err)
		}
		h.add("+442079460020", "").Want(201)
		other, _ := h.orgs.Create(ctx, "Other", "DE")
		h.server.Do(optest.Admin(other.ID), "GET", "/numbers/ports/"+id, nil).Want(404)
	})
}

func TestAssignment_OneAtATime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ctx := context.Background()
		for _, text := range []string{
			`INSERT INTO queues (org_id, id, name, settings, created_at, updated_at) VALUES ($1, 'que_1', 'Support', '{}', 1, 1)`,
			`INSERT INTO queues (org_id, id, name, settings, created_at, updated_at) VALUES ($1, 'que_2', 'Night', '{}', 1, 1)`,
			`INSERT INTO flows (org_id, id, name, kind, version, created_at, updated_at) VALUES ($1, 'flw_1', 'Main', 'graph', 1, 1, 1)`,
			`INSERT INTO flows (org_id, id, name, kind, version, created_at, updated_at) VALUES ($1, 'flw_draft', 'Draft', 'graph', 0, 1, 1)`,
		} {
			if err := d.Tx(ctx, func(tx db.Querier) error { _, err := tx.Exec(ctx, text, h.org); return err }); err != nil {
				t.Fatal(err)
			}
		}
		id := h.add("+442079460018", `,"queue_id":"que_1"`).Want(201).Text("id")
		for _, c := range []struct{ body, kind, name string }{{`{"label":"x"}`, "queue", "Support"}, {`{"flow_id":"flw_1"}`, "flow", "Main"}, {`{"queue_id":null}`, "flow", "Main"},
			{fmt.Sprintf(`{"user_id":%q}`, h.ada), "user", "Ada L"}, {`{"user_id":null,"queue_id":"que_1"}`, "queue", "Support"}} {
			a := h.do("PATCH", "/numbers/"+id, c.body).Want(200)
			if a.Text("assigned_to.type") != c.kind || a.Text("assigned_to.name") != c.name {
				t.Errorf("%s: %s", c.body, a.Bytes)
			}
		}
		h.do("PATCH", "/numbers/"+id, `{"flow_id":"flw_draft"}`).Want(422).Refused("validation_failed", "flow_id not_published")
		if by, err := h.IDsOfQueue(ctx, d.Read(ctx), h.org, "que_1"); err != nil || len(by) != 1 || by[0] != id {
			t.Errorf("of the queue: %v, %v", by, err)
		}
		if err := d.Tx(ctx, func(tx db.Querier) error { return h.MoveQueue(ctx, tx, h.org, "que_1", "que_2") }); err != nil {
			t.Fatal(err)
		}
		if a := h.do("GET", "/numbers/"+id, nil).Want(200); a.Text("assigned_to.name") != "Night" {
			t.Errorf("moved: %s", a.Bytes)
		}
		h.do("PATCH", "/numbers/"+id, `{"flow_id":"flw_1"}`).Want(200)
		if a := h.do("GET", "/numbers?flow_id=flw_1", nil).Want(200); a.Text("data.0.id") != id {
			t.Errorf("list: %s", a.Bytes)
		}
		if a := h.do("PATCH", "/numbers/"+id, `{"flow_id":null}`).Want(200); a.Text("assigned_to.type") != "none" || a.At("assigned_to.name") != nil {
			t.Errorf("to nobody: %s", a.Bytes)
		}
	})
}
