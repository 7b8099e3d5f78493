package webhook

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op/optest"
)

// Every kind against every single scope: only who reads the subject subscribes to it.
func TestSubscribe_EveryKindAndScope(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	for _, s := range access.All() {
		p := optest.Admin(h.org)
		p.Scopes = slices.Compact([]access.Scope{access.UsersAdmin, s})
		for _, k := range event.Kinds() {
			e := &endpoint{Events: []string{string(k)}}
			if err := e.subscribe(access.With(t.Context(), p)); (err == nil) != k.Need().MetBy(p.Scopes) {
				t.Errorf("%s with %v: %v", k, p.Scopes, err)
			}
		}
	}
}

func TestSubscribe_WithoutScope(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		poor := optest.Admin(h.org)
		poor.Scopes = []access.Scope{access.UsersAdmin}
		hook := func(kinds ...string) map[string]any {
			return map[string]any{"url": "http://127.0.0.1:9/", "events": kinds}
		}
		h.api.Do(poor, "POST", "/webhooks", hook("user.created", "call.ended")).Want(403)
		all := h.api.Do(poor, "POST", "/webhooks", hook("*")).Want(201)
		if got := all.Body["withheld_events"].([]any); len(got) != len(event.Kinds())-1 {
			t.Errorf("withheld: %v", got)
		}
		id := h.api.Do(optest.Admin(h.org), "POST", "/webhooks", hook("call.ended")).Want(201).Text("id")
		h.api.Do(poor, "PATCH", "/webhooks/"+id, map[string]any{"url": "http://127.0.0.1:10/"}).Want(403)
		h.api.Do(poor, "PATCH", "/webhooks/"+id, map[string]any{"status": "paused"}).Want(200)
	})
}

// A subscriber whose rights shrink gets no further events, and those that wait are discarded.
func TestDelivery_SubscriberLosesScope(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		rights := &fakeRights{}
		h.cfg.Rights = rights
		id := h.api.Do(optest.Admin(h.org), "POST", "/webhooks", map[string]any{"url": "http://127.0.0.1:9/", "events": []string{"*"}}).Want(201).Text("id")
		e, err := getEndpoint(t.Context(), d.Read(t.Context()), h.org, id)
		if err != nil || !slices.Equal(e.Holder.Scopes, access.All()) {
			t.Fatalf("%+v, %v", e, err)
		}
		ev := event.Event{OrgID: h.org, ID: db.NewID("evt"), Kind: "call.ended", Audience: event.AudienceAll}
		make := func() (made *delivery) {
			err := d.Tx(t.Context(), func(tx db.Querier) (err error) {
				made, err = h.newDelivery(t.Context(), tx, callSubjectCache{}, e, ev)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return made
		}
		if make() == nil {
			t.Error("nothing is sent to who may read calls")
		}
		rights.lost.Store(access.CallsRead)
		if make() != nil {
			t.Error("a call is sent to who may not read calls any more")
		}
		if got := h.api.Do(optest.Admin(h.org), "GET", "/webhooks/"+id, nil).Want(http.StatusOK).Body["withheld_events"].([]any); !slices.Contains(got, any("call.ended")) {
			t.Errorf("withheld: %v", got)
		}
	})
}

// The table of the documentation is the one that follows from the declaration of the kinds.
func TestDocumentation_ScopeTable(t *testing.T) {
	t.Parallel()
	table := "| kind | scope |\n|---|---|\n"
	for _, k := range event.Kinds() {
		table += "| `" + string(k) + "` | `" + strings.ReplaceAll(k.Need().String(), " | ", "` or `") + "` |\n"
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "webhooks.md"))
	if err != nil || !strings.Contains(string(page), table) {
		t.Errorf("docs/webhooks.md (%v) does not have the table\n%s", err, table)
	}
}
