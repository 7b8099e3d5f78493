package number_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
	"soniq/internal/telephony/trunk/telnyxtest"
)

// telnyx opens accounts at Telnyx.
type telnyx struct{ client *http.Client }

func (o telnyx) Open(c number.Credentials) number.ProviderAPI { return trunk.NewTelnyx(o.client, c) }

// connectTelnyx connects the organisation with a fake Telnyx server, and returns the server and the account's id.
func (h *fixture) connectTelnyx(t *testing.T) (*telnyxtest.Server, string) {
	t.Helper()
	s := telnyxtest.New(t)
	h.sellers["telnyx"] = number.ProviderType{URL: s.API(), Opener: telnyx{h.guard.Client(trunk.TelnyxLimits)}}
	a := h.do("POST", "/numbers/providers", fmt.Sprintf(`{"provider":"telnyx","api_key":%q,"trunk_id":%q,"connection_id":"42"}`, telnyxtest.Key, h.trunk)).Want(201)
	if strings.Contains(string(a.Bytes), telnyxtest.Key) || a.Text("status") != "active" || a.Text("connection_id") != "42" || a.Text("url") != s.API() {
		t.Errorf("the account: %s", a.Bytes)
	}
	return s, a.Text("id")
}

// runJob runs a job about a number as its first attempt.
func (h *fixture) runJob(do func(context.Context, job.Job) error, id string) error {
	args, _ := json.Marshal(map[string]string{"id": id})
	return do(context.Background(), job.Job{Org: h.org, Args: args, Attempt: 1, MaxAttempts: 25})
}

// countJobs counts the jobs of a kind.
func (h *fixture) countJobs(t *testing.T, kind string) (n int) {
	t.Helper()
	row := h.db.Read(context.Background()).QueryRow(context.Background(), `SELECT COUNT(*) FROM jobs WHERE org_id = $1 AND kind = $2`,
		h.org, kind)
	if err := row.Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOrder_BuyAndRelease(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		s, account := h.connectTelnyx(t)
		a := h.do("GET", "/numbers/search?country=US&area_code=202&type=local&capabilities=sms", nil).Want(200)
		if a.Text("data.0.number") != "+12025550140" || a.Text("data.0.provider") != "telnyx" || a.At("data.0.monthly_cost.amount") != 150.0 ||
			a.Text("searched.1.provider") != "telnyx" || a.Text("searched.1.status") != "ok" || a.At("searched.1.error") != nil {
			t.Errorf("found %s", a.Bytes)
		}
		n := h.do("POST", "/numbers", fmt.Sprintf(`{"number":"+12025550140","provider":"telnyx","user_id":%q}`, h.ada)).Want(202)
		id := n.Text("id")
		if n.Text("status") != "pending" || n.Text("trunk_id") != h.trunk || h.countJobs(t, "number.order") != 1 || len(s.Orders) != 0 {
			t.Errorf("ordered: %s", n.Bytes)
		}
		for range 2 { // a job may run again after a crash
			if err := h.runJob(h.FollowOrder, id); err != nil {
				t.Fatal(err)
			}
		}
		n = h.do("GET", "/numbers/"+id, nil).Want(200)
		if n.Text("status") != "active" || n.Text("capabilities.1") != "sms" || n.At("monthly_cost.amount") != 150.0 || h.allocated(t, "+12025550140") != 1 ||
			len(s.Orders) != 1 || s.Orders[0].Connection != "42" {
			t.Errorf("bought: %s; %d orders", n.Bytes, len(s.Orders))
		}
		if got := h.assignedTo(t, "+12025550140", h.trunk); got != h.ada {
			t.Errorf("rings %q", got)
		}
		h.do("DELETE", "/numbers/providers/"+account, nil).Want(409).Refused("in_use")
		h.do("DELETE", "/numbers/"+id, nil).Want(422).Refused("validation_failed", "confirm not_confirmed")
		for range 2 {
			h.do("DELETE", "/numbers/"+id+"?confirm=12025550140", nil).Want(204)
		}
		if n := h.do("GET", "/numbers/"+id, nil).Want(200); n.Text("status") != "releasing" || len(s.Owned) != 1 || h.countJobs(t, "number.release") != 1 {
			t.Errorf("being given back: %s", n.Bytes)
		}
		h.do("PATCH", "/numbers/"+id, `{"label":"x"}`).Want(409).Refused("invalid_state")
		if got := h.assignedTo(t, "+12025550140", h.trunk); got != "-" {
			t.Errorf("although it is given back it rings %q", got)
		}
		for range 2 {
			if err := h.runJob(h.ReleaseAtProvider, id); err != nil {
				t.Fatal(err)
			}
		}
		if n := h.do("GET", "/numbers/"+id, nil).Want(200); n.Text("status") != "released" || n.Text("released_at") == "" || len(s.Owned) != 0 {
			t.Errorf("given back: %s; %v", n.Bytes, s.Owned)
		}
		h.do("DELETE", "/numbers/providers/"+account, nil).Want(204)
		if a := h.do("GET", "/numbers/search?country=US", nil).Want(200); a.Has("searched.1", "provider") {
			t.Errorf("asked although forgotten: %s", a.Bytes)
		}
	})
}

func TestOrder_StatusDetail(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		s, _ := h.connectTelnyx(t)
		order := func(e164 string) string {
			return h.do("POST", "/numbers", fmt.Sprintf(`{"number":%q}`, e164)).Want(202).Text("id")
		}
		s.Status, s.RequireDocuments = "pending", true
		id := order("+442079460150")
		var retry *job.Retry
		if err := h.runJob(h.FollowOrder, id); !errors.As(err, &retry) || !retry.NotCounted || retry.After < time.Minute {
			t.Errorf("waiting for documents: %v", err)
		}
		if n := h.do("GET", "/numbers/"+id, nil).Want(200); n.Text("status") != "pending" || !strings.Contains(n.Text("status_detail"), "documents") || n.At("monthly_cost.amount") != 150.0 {
			t.Errorf("pending: %s", n.Bytes)
		}
		h.do("DELETE", "/numbers/"+id+"?confirm=442079460150", nil).Want(204)
		if err := h.runJob(h.ReleaseAtProvider, id); err != nil || s.Orders[0].Status != "failure" {
			t.Errorf("called off: %v, %s", err, s.Orders[0].Status)
		}
		id = order("+12025550199")
		if err := h.runJob(h.FollowOrder, id); err != nil {
			t.Error(err)
		}
		if n := h.do("GET", "/numbers/"+id, nil).Want(200); n.Text("status") != "failed" || !strings.Contains(n.Text("status_detail"), "not available") {
			t.Errorf("failed: %s", n.Bytes)
		}
		s.Lock()
		s.Fail = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(503); return true }
		s.Unlock()
		id = order("+12025550141")
		for range 4 {
			if err := h.runJob(h.FollowOrder, id); err == nil || errors.As(err, &retry) {
				t.Errorf("the provider is away: %v", err)
			}
		}
		if n := h.do("GET", "/numbers/"+id, nil).Want(200); n.Text("status") != "pending" || !strings.Contains(n.Text("status_detail"), "503") {
			t.Errorf("the provider is away: %s", n.Bytes)
		}
		if a := h.do("GET", "/numbers/search?country=US&provider=telnyx", nil).Want(200); a.Text("searched.0.status") != "error" || !strings.Contains(a.Text("searched.0.error"), "503") {
			t.Errorf("searched: %s", a.Bytes)
		}
		if a := h.do("GET", "/numbers/search?country=US&provider=telnyx", nil).Want(200); a.Text("searched.0.status") != "circuit_open" {
			t.Errorf("searched too often: %s", a.Bytes)
		}
		if err := h.runJob(h.FollowOrder, id); !errors.As(err, &retry) || !retry.NotCounted {
			t.Errorf("left alone: %v", err)
		}
	})
}

func TestAccounts_Validation(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		s, id := h.connectTelnyx(t)
		h.do("POST", "/numbers/providers", `{"provider":"nobody","api_key":"a b","trunk_id":"trk_none"}`).Want(422).
			Refused("validation_failed", "provider not_available", "api_key invalid_value", "trunk_id not_found")
		h.do("POST", "/numbers/providers", fmt.Sprintf(`{"provider":"telnyx","api_key":"a","trunk_id":%q,"url":"http://10.0.0.1/v2"}`, h.trunk)).Want(422).
			Refused("validation_failed", "url blocked_address")
		h.do("POST", "/numbers/providers", fmt.Sprintf(`{"provider":"telnyx","api_key":"a","trunk_id":%q}`, h.trunk)).Want(409).Refused("already_exists")
		h.do("PATCH", "/numbers/providers/"+id, `{"status":"lost"}`).Want(422).Refused("validation_failed", "status invalid_value")
		h.do("PATCH", "/numbers/providers/"+id, `{"api_key":null}`).Want(422).Refused("validation_failed", "api_key invalid_value")
		h.do("PATCH", "/numbers/providers/"+id, `{"url":"https://evil.example/v2"}`).Want(422).Refused("validation_failed", "api_key secret_required")
		h.do("PATCH", "/numbers/providers/"+id, `{"api_key":"revoked"}`).Want(200)
		if a := h.do("GET", "/numbers/search?country=US", nil).Want(200); a.Text("searched.1.status") != "error" || !strings.Contains(a.Text("searched.1.error"), "credentials") {
			t.Errorf("a key that is not taken: %s", a.Bytes)
		}
		if a := h.do("GET", "/numbers/providers/"+id, nil).Want(200); a.Text("status") != "auth_required" || strings.Contains(string(a.Bytes), "revoked") {
			t.Errorf("the account: %s", a.Bytes)
		}
		if a := h.do("PATCH", "/numbers/providers/"+id, `{"status":"disabled"}`).Want(200); a.Text("status") != "disabled" {
			t.Errorf("disabled: %s", a.Bytes)
		}
		asked := len(s.Requests)
		if a := h.do("GET", "/numbers/search?country=US", nil).Want(200); a.Has("searched.1", "provider") || len(s.Requests) != asked {
			t.Errorf("asked although disabled: %s", a.Bytes)
		}
		if a := h.do("GET", "/numbers/providers", nil).Want(200); a.Text("data.0.id") != id {
			t.Errorf("list: %s", a.Bytes)
		}
		other, _ := h.orgs.Create(context.Background(), "Other", "DE")
		for _, method := range []string{"GET", "DELETE"} {
			h.server.Do(optest.Admin(other.ID), method, "/numbers/providers/"+id, nil).Want(404)
		}
		h.server.Do(optest.Admin(other.ID), "PATCH", "/numbers/providers/"+id, `{}`).Want(404)
		var sealed []byte
		row := d.Read(context.Background()).QueryRow(context.Background(), `SELECT settings FROM number_accounts WHERE org_id = $1`, h.org)
		if err := row.Scan(&sealed); err != nil || strings.Contains(string(sealed), "revoked") {
			t.Errorf("kept as %q, %v", sealed, err)
		}
	})
}
