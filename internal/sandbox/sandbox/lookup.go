package sandbox

import (
	"context"
	"time"

	"soniq/internal/customer/contact"
)

// The last two digits of the test numbers for contact lookups.
const (
	lookupHit     = "31"
	lookupPartial = "32"
)

// The names of the systems that return a contact for them. The directory has the higher priority, so that its answer
// is awaited although the CRM has a match.
const (
	testDirectory = "Test directory"
	testCRM       = "Test CRM"
)

// lookupTimeout is how long the directory does not answer for +12025550132. It equals the longest time that a
// lookup waits.
const hang = 2 * time.Second

// TestConnections returns two connected systems that every sandbox has, for two numbers. For +12025550131 the CRM has
// a contact and the directory has none. For +12025550132 the CRM has a contact as well, and the directory does not
// answer in time.
func Sources() []contact.Connected {
	return []contact.Connected{
		{ID: "crm_test_directory", Name: testDirectory, Provider: "sandbox", Priority: 998, Only: lookedUp, Ask: askDirectory},
		{ID: "crm_test", Name: testCRM, Provider: "sandbox", Priority: 999, Only: lookedUp, Ask: askCRM},
	}
}

func lookedUp(e164 string) bool {
	which := test(e164)
	return which == lookupHit || which == lookupPartial
}

// askDirectory returns no contact. For one number it does not answer until the timeout.
func askDirectory(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	if test(q.Phone.E164) != lookupPartial {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	<-ctx.Done()
	return nil, ctx.Err()
}

func askCRM(_ context.Context, q contact.Query) ([]contact.Record, error) {
	r := contact.Record{ExternalID: "test-" + test(q.Phone.E164), Name: "Nora Lindqvist", Company: "Harbor Dental", Title: "Office manager",
		Email: "nora@harbor-dental.example", Phones: []string{q.Phone.E164}}
	if test(q.Phone.E164) == lookupPartial {
		r.Name, r.Company, r.Title, r.Email = "Tom Okafor", "Northwind Freight", "Dispatcher", "tom@northwind.example"
	}
	return []contact.Record{r}, nil
}
