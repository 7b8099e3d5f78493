package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// TestNextTurn_SharedByNodes has two nodes on one database take the turns of groups.
func TestNextTurn_SharedByNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		other := flow.New(flow.Config{DB: d, Orgs: org.New(d, bus.New(), time.Now), Bus: bus.New(), References: h, Numbers: h, Queues: h,
			Forwards: h})
		one := h.do("POST", "/flows", `{"name":"One",`+welcome+`}`).Want(201).Text("id")
		two := h.do("POST", "/flows", `{"name":"Two",`+welcome+`}`).Want(201).Text("id")
		var got []string
		take := func(s *flow.Service, id, node string) {
			t.Helper()
			err := d.Tx(t.Context(), func(tx db.Querier) error {
				n, err := s.NextTurn(t.Context(), tx, h.org, id, node)
				got = append(got, fmt.Sprint(n))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range []*flow.Service{h.Service, other, h.Service, other} {
			take(s, one, "a")
		}
		take(other, one, "b")
		take(h.Service, two, "a")
		if text := strings.Join(got, " "); text != "0 1 2 3 0 0" {
			t.Errorf("turns %s", text)
		}
	})
}
