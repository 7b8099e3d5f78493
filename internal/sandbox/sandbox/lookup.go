package sandbox

import (
	"context"
	"time"

	"soniq/internal/customer/contact"
)

// The last two digits of the numbers that lookups are tried with.
const (
	lookupHit     = "31"
	lookupPartial = "32"
)

// The names of the systems that know them. The directory comes first, so that it is waited for although the other has a match.
const (
	testDirectory = "Test directory"
	testCRM       = "Test CRM"
)

// hang is how long the directory is silent about +12025550132: as long as the most patient of those who look somebody up waits.
const hang = 2 * time.Second

// Sources are two connected systems that every sandbox has, for two numbers: of +12025550131 the CRM knows who it is and the
// directory does not; of +12025550132 the CRM knows too, and the directory does not answer in time.
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

// askDirectory knows nobody, and of one number not even that.
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
