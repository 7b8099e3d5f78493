package sandbox

import (
	"context"
	"time"

	"soniq/internal/customer/contact"
)

// Last two digits of the test numbers for contact lookup.
const (
	lookupHit     = "31"
	lookupPartial = "32"
)

// Names of the simulated systems. The directory comes first, so that a lookup waits for it although the CRM has a
// match.
const (
	testDirectoryName = "Test directory"
	testCRMName       = "Test CRM"
)

// lookupTimeout is the time for which the directory does not answer about +12025550132. It equals the longest timeout of a
// lookup.
const lookupTimeout = 2 * time.Second

// TestConnections returns the two simulated connected systems of every sandbox. The CRM knows +12025550131 and +12025550132.
// The directory answers that it does not know +12025550131, and does not answer in time about +12025550132.
func TestConnections() []contact.Source {
	return []contact.Source{
		{ID: "crm_test_directory", Name: testDirectoryName, Provider: "sandbox", Priority: 998, Filter: lookupNumbers{},
			Live: testDirectory{}},
		{ID: "crm_test", Name: testCRMName, Provider: "sandbox", Priority: 999, Filter: lookupNumbers{}, Live: testCRM{}},
	}
}

// lookupNumbers accepts the test numbers for contact lookup.
type lookupNumbers struct{}

// Accepts implements contact.Filter.
func (lookupNumbers) Accepts(e164 string) bool {
	which := testDigits(e164)
	return which == lookupHit || which == lookupPartial
}

type (
	testDirectory struct{}
	testCRM       struct{}
)

// Lookup returns no records. For one number it waits until the lookup has timed out.
func (testDirectory) Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	if testDigits(q.Phone.E164) != lookupPartial {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	<-ctx.Done()
	return nil, ctx.Err()
}

// Lookup returns a record for each of the two numbers.
func (testCRM) Lookup(_ context.Context, q contact.Query) ([]contact.Record, error) {
	r := contact.Record{ExternalID: "test-" + testDigits(q.Phone.E164), Name: "Nora Lindqvist", Company: "Harbor Dental",
		Title: "Office manager", Email: "nora@harbor-dental.example", Phones: []string{q.Phone.E164}}
	if testDigits(q.Phone.E164) == lookupPartial {
		r.Name, r.Company, r.Title, r.Email = "Tom Okafor", "Northwind Freight", "Dispatcher", "tom@northwind.example"
	}
	return []contact.Record{r}, nil
}
