package contact

import (
	"context"
	"errors"
	"time"
)

// Source is a system that lookups search: a connected system, or the organisation's own contacts.
type Source struct {
	ID       string
	Name     string
	Provider string   // internal for the organisation's own contacts
	Priority int      // the lowest wins
	Live     Searcher // nil: only the index is searched
	Filter   Filter   // nil: it is searched for all numbers
}

// Searcher queries a system. Lookup bounds its time itself.
type Searcher interface {
	Lookup(ctx context.Context, q Query) ([]Record, error)
}

// Filter reports for which numbers, in E.164, a source is searched.
type Filter interface {
	Accepts(e164 string) bool
}

// Errors of Lookup for which no request was sent.
var (
	ErrCircuitOpen = errors.New("the system failed several times in a row, and is left alone for a moment")
	ErrRateLimited = errors.New("the system is asked as often as it may be")
	ErrSkipped     = errors.New("the system cannot be asked this")
)

// Query is the query to a system: a complete number, or an e-mail address.
type Query struct {
	Phone   Formats
	Email   string
	Country string // of the organisation, for numbers the system writes without a country code
}

// Record is a person or company in a connected system. Its JSON is the input of the stored digest of copied records:
// renaming a field changes every digest.
type Record struct {
	ExternalID string
	Name       string
	Company    string
	Title      string
	Email      string
	URL        string
	Phones     []string // in the system's spelling; empty if the system does not return numbers
	UpdatedAt  time.Time
	Emails     []string `json:",omitempty"` // further addresses
}

// Kind is the certainty of a match.
type Kind string

// Kinds of match, best first: Exact, the complete number; National, a number written without its country code;
// Possible, the end of a number, or a company's number with an extension.
const (
	Exact    Kind = "exact"
	National Kind = "national"
	Possible Kind = "possible"
)

func (k Kind) rank() int {
	switch k {
	case Exact:
		return 0
	case National:
		return 1
	}
	return 2
}

// confidence returns the kind as a number between 0 and 1.
func (k Kind) confidence() float64 { return []float64{1, 0.9, 0.5}[k.rank()] }

// Match is a record that matches a lookup.
type Match struct {
	Kind       Kind
	ContactID  string
	ExternalID string
	Name       string
	Company    string
	Title      string
	Email      string
	URL        string
	UpdatedAt  time.Time

	connection string // "" for own contacts
	source     string // its name
	priority   int
	tags       []string
	vip        bool
	doNotCall  bool
}

func (m Match) same(o Match) bool {
	return m.connection == o.connection && m.ContactID == o.ContactID && m.ExternalID == o.ExternalID
}

// compare orders matches, better ones first: by kind, priority, time of the last change, and id.
func (m Match) compare(o Match) int {
	switch {
	case m.Kind.rank() != o.Kind.rank():
		return m.Kind.rank() - o.Kind.rank()
	case m.priority != o.priority:
		return m.priority - o.priority
	case !m.UpdatedAt.Equal(o.UpdatedAt):
		return o.UpdatedAt.Compare(m.UpdatedAt)
	case m.ContactID+m.ExternalID < o.ContactID+o.ExternalID:
		return -1
	}
	return 1
}

// matchRecords returns the records that have the number or address of the lookup, because systems also return near
// matches. A record without numbers, or without an address, is a possible match.
func matchRecords(a lookupKey, country string, all []Record) []Match {
	var kept []Match
	for _, r := range all {
		kind, ok := a.match(r, country)
		if !ok {
			continue
		}
		kept = append(kept, Match{Kind: kind, ExternalID: r.ExternalID, Name: normalizeText(r.Name), Company: normalizeText(r.Company),
			Title: normalizeText(r.Title), Email: r.Email, URL: r.URL, UpdatedAt: r.UpdatedAt})
	}
	return kept
}
