package trunk_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"soniq/internal/platform/egress"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
	"soniq/internal/telephony/trunk/telnyxtest"
)

// newTelnyx returns a market that uses the fake server.
func newTelnyx(s *telnyxtest.Server, key string) *trunk.Telnyx {
	guard := egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	return trunk.NewTelnyx(guard.Client(trunk.TelnyxLimits), number.Credentials{URL: s.API() + "/", Key: key,
		Connection: "1293384261075731499"})
}

func TestTelnyxSearch_Filters(t *testing.T) {
	t.Parallel()
	s := telnyxtest.New(t)
	m, ctx := newTelnyx(s, telnyxtest.Key), context.Background()
	for _, c := range []struct {
		wish number.SearchCriteria
		want string
	}{
		{number.SearchCriteria{Country: "US"}, "+12025550140 +12025550141 +13125550142"},
		{number.SearchCriteria{Country: "US", Limit: 1}, "+12025550140"},
		{number.SearchCriteria{Country: "US", AreaCode: "312"}, "+13125550142"},
		{number.SearchCriteria{Country: "US", Prefix: "20255501"}, "+12025550140 +12025550141"},
		{number.SearchCriteria{Country: "US", AreaCode: "202", Prefix: "2025550141"}, "+12025550141"},
		{number.SearchCriteria{Country: "US", AreaCode: "202", Prefix: "312"}, ""},
		{number.SearchCriteria{Country: "US", AreaCode: "202", Contains: "202"}, "+12025550140 +12025550141"},
		{number.SearchCriteria{Country: "US", Contains: "0142"}, "+13125550142"},
		{number.SearchCriteria{Country: "GB", Prefix: "20"}, "+442079460150"},
		{number.SearchCriteria{Country: "US", Types: []string{"mobile", "local"}}, "+12025550140 +12025550141 +13125550142"},
		{number.SearchCriteria{Country: "US", Types: []string{"short_code"}}, ""},
		{number.SearchCriteria{Country: "US", Capabilities: []string{"voice", "fax"}}, ""},
		{number.SearchCriteria{Country: "FR"}, ""}, // no coverage is no error
	} {
		if c.wish.Limit == 0 {
			c.wish.Limit = 50
		}
		found, err := m.Search(ctx, c.wish)
		var got []string
		for _, a := range found {
			got = append(got, a.Number)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v, %v, want %s", c.wish, got, err, c.want)
		}
	}
	found, err := m.Search(ctx, number.SearchCriteria{Country: "US", Limit: 1, Types: []string{"local"}})
	if err != nil {
		t.Fatal(err)
	}
	a := found[0]
	if a.Country != "US" || *a.Region != "DC" || *a.Locality != "WSHNGTNZN1" || a.Type != "local" || !slices.Equal(a.Capabilities, []string{"voice", "sms"}) ||
		*a.MonthlyCost != (number.Cost{Amount: 150, Currency: "USD"}) || *a.SetupCost != (number.Cost{Amount: 100, Currency: "USD"}) {
		t.Errorf("found %+v", a)
	}
}

func TestTelnyxSearch_Errors(t *testing.T) {
	t.Parallel()
	s := telnyxtest.New(t)
	ctx, wish := context.Background(), number.SearchCriteria{Country: "US", Limit: 1}
	if _, err := newTelnyx(s, "wrong").Search(ctx, wish); !errors.Is(err, number.ErrAuth) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong key: %v", err)
	}
	for _, c := range []struct {
		status int
		body   string
		want   string
	}{{500, "oops", "500"}, {429, "", "too often"}, {200, "<html>", "read the answer"}, {302, "", "302"}} {
		s.Lock()
		s.Fail = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", "http://192.0.2.1/")
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
			return true
		}
		s.Unlock()
		if _, err := newTelnyx(s, telnyxtest.Key).Search(ctx, wish); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %v", c.status, err)
		}
	}
}

func TestTelnyxOrder_Idempotent(t *testing.T) {
	t.Parallel()
	s := telnyxtest.New(t)
	m, ctx := newTelnyx(s, telnyxtest.Key), context.Background()
	d := number.OrderRequest{Org: "org_1", Number: "+12025550140", Ref: "num_1"}
	// The response to the order is lost, as in a crash: the number is ours, but we do not know it.
	s.Lock()
	s.Fail = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "POST" {
			s.Orders = append(s.Orders, &telnyxtest.Order{ID: "lost", Number: d.Number, Status: "pending", Reference: d.Ref,
				RequirementsMet: true})
			panic(http.ErrAbortHandler)
		}
		return false
	}
	s.Unlock()
	if _, err := m.Order(ctx, d); err == nil || errors.Is(err, number.ErrUnavailable) {
		t.Fatalf("the answer was lost: %v", err)
	}
	if o, err := m.Order(ctx, d); err != nil || o.Active || o.After == 0 {
		t.Errorf("while it is pending: %+v, %v", o, err)
	}
	s.Lock()
	s.Fail, s.Orders[0].Status = nil, "success"
	s.Unlock()
	for range 2 {
		if o, err := m.Order(ctx, d); err != nil || !o.Active {
			t.Errorf("carried out: %+v, %v", o, err)
		}
	}
	if len(s.Orders) != 1 {
		t.Errorf("%d orders", len(s.Orders))
	}
	o, err := m.Order(ctx, number.OrderRequest{Number: "+12025550141", Ref: "num_2"})
	if err != nil || !o.Active || *o.MonthlyCost != (number.Cost{Amount: 150, Currency: "USD"}) || len(o.Capabilities) != 2 || s.Orders[1].Connection != "1293384261075731499" {
		t.Errorf("at once: %+v, %v; %+v", o, err, s.Orders[1])
	}
	if _, err := m.Order(ctx, number.OrderRequest{Number: "+12025550141", Ref: "num_3"}); !errors.Is(err, number.ErrUnavailable) || !strings.Contains(err.Error(), "85001") {
		t.Errorf("sold already: %v", err)
	}
	s.Status, s.RequireDocuments = "pending", true
	if o, err := m.Order(ctx, number.OrderRequest{Number: "+442079460150", Ref: "num_4"}); err != nil || o.Active || !strings.Contains(o.Detail, "documents") {
		t.Errorf("with documents: %+v, %v", o, err)
	}
}

func TestTelnyxRelease(t *testing.T) {
	t.Parallel()
	s := telnyxtest.New(t)
	m, ctx := newTelnyx(s, telnyxtest.Key), context.Background()
	d := number.OrderRequest{Number: "+12025550140", Ref: "num_1"}
	if _, err := m.Order(ctx, d); err != nil || len(s.Owned) != 1 {
		t.Fatal(err, s.Owned)
	}
	s.Owned["other"] = "+112025550140" // another number that contains the digits
	for range 2 {
		if err := m.Release(ctx, d); err != nil || len(s.Owned) != 1 || s.Owned["other"] == "" {
			t.Errorf("given back: %v, %v", err, s.Owned)
		}
		delete(s.Owned, "id-order-1")
		s.Orders[0].Status = "failure"
	}
	s.Status = "pending"
	d = number.OrderRequest{Number: "+12025550141", Ref: "num_2"}
	if _, err := m.Order(ctx, d); err != nil {
		t.Fatal(err)
	}
	if err := m.Release(ctx, d); err != nil || s.Orders[1].Status != "failure" {
		t.Errorf("an order is called off: %v, %+v", err, s.Orders[1])
	}
	s.Orders[1].Status = "success" // and succeeds after all, but is not listed yet
	if err := m.Release(ctx, d); err == nil {
		t.Error("given back what was never listed")
	}
}
