package crm

import (
	"context"
	"errors"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/access"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
)

// TestIn is the request of crm.connections.test.
type TestIn struct {
	OneIn
	Body *struct {
		Phone string `json:"phone,omitempty" maxLength:"40" doc:"Whom to ask for; a number nobody has unless given"`
	}
}

// Trial is the result of a test of a connection.
type Trial struct {
	OK       bool    `json:"ok"`
	LookupMS int     `json:"lookup_ms"`
	Sample   *Sample `json:"sample" doc:"Whom it found, or the first of a list"`
	Error    *string `json:"error"`
}

// Sample is a record as the system returned it.
type Sample struct {
	ExternalID string   `json:"external_id"`
	Name       string   `json:"name"`
	Company    string   `json:"company"`
	Title      string   `json:"title"`
	Email      string   `json:"email"`
	URL        string   `json:"url"`
	Phones     []string `json:"phones" nullable:"false"`
}

// testTimeout bounds a test.
const testTimeout = 4 * time.Second

// unassignedNumber belongs to no subscriber: it is reserved for fiction.
const unassignedNumber = "+12025550199"

// Test sends a lookup to a connected system and returns the result. It bypasses the circuit breaker, and its success
// does not close it.
func (s *Service) Test(ctx context.Context, in *TestIn) (*op.Out[Trial], error) {
	all, err := s.allConnections(ctx, s.cfg.DB.Read(ctx), access.Org(ctx))
	if err != nil {
		return nil, err
	}
	c, err := findConnection(all, in.ID)
	if err != nil {
		return nil, err
	}
	q, err := s.testQuery(ctx, in)
	if err != nil {
		return nil, err
	}
	l, err := s.clientFor(c)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return op.OK(Trial{OK: true})
	}
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	began := time.Now()
	record, err := fetchSample(ctx, l.adapter, q)
	t := Trial{OK: err == nil, LookupMS: int(time.Since(began).Milliseconds())}
	if err != nil {
		text := errorText(err)
		t.Error = &text
	}
	if record != nil {
		if !egress.IsWebAddress(record.URL) {
			record.URL = ""
		}
		t.Sample = &Sample{record.ExternalID, record.Name, record.Company, record.Title, record.Email, record.URL,
			append([]string{}, record.Phones...)}
	}
	return op.OK(t)
}

func (s *Service) testQuery(ctx context.Context, in *TestIn) (contact.Query, error) {
	phone := unassignedNumber
	if in.Body != nil && in.Body.Phone != "" {
		phone = in.Body.Phone
	}
	return s.cfg.Contacts.Query(ctx, access.Org(ctx), phone)
}

// errStopReading ends the read of a list after its first record.
var errStopReading = errors.New("enough")

// fetchSample requests one record: the first of a list, or the first match of a lookup.
func fetchSample(ctx context.Context, a adapter.Adapter, q contact.Query) (found *contact.Record, err error) {
	if d, ok := a.(adapter.Directory); ok {
		err := d.All(ctx, func(_ context.Context, r contact.Record) error { found = &r; return errStopReading })
		if errors.Is(err, errStopReading) {
			err = nil
		}
		return found, err
	}
	f, ok := a.(adapter.Searcher)
	if !ok || !a.Can().Lookup {
		return nil, errors.New("this connection has no lookup that could be tried")
	}
	all, err := f.Lookup(ctx, q)
	if errors.Is(err, contact.ErrSkipped) {
		return nil, errors.New("this connection has no lookup by number that could be tried")
	}
	if len(all) > 0 {
		found = &all[0]
	}
	return found, err
}
