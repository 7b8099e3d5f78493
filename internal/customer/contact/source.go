package contact

import (
	"context"
	"errors"
	"time"
)

// A Connected is a system an organisation has connected, its own contacts among them.
type Connected struct {
	ID       string
	Name     string
	Provider string // internal for the organisation's own contacts
	Priority int    // the lowest wins
	// Ask asks the system itself, within the time it is given by whoever fills this field; nil where only the index is asked.
	Ask func(ctx context.Context, q Query) ([]Record, error)
	// Only says of which numbers, in E.164, it is asked at all; nil: of everything.
	Only func(e164 string) bool
}

// Errors of Ask that say that nobody was asked.
var (
	ErrCircuitOpen = errors.New("the system failed several times in a row, and is left alone for a moment")
	ErrRateLimited = errors.New("the system is asked as often as it may be")
	ErrSkipped     = errors.New("the system cannot be asked this")
)

// A Query is what a system is asked: a whole number, or an e-mail address.
type Query struct {
	Phone   Formats
	Email   string
	Country string // of the organisation, for numbers the system writes without a country code
}

// A Record is a person as a connected system knows them.
type Record struct {
	ExternalID string
	Name       string
	Company    string
	Title      string
	Email      string
	URL        string
	Phones     []string // as the system writes them; none where it does not tell
	UpdatedAt  time.Time
	Emails     []string `json:",omitempty"` // further addresses
}

// Kind says how sure it is that a record is whoever is asked for.
type Kind string

// The kinds of match, best first: the whole number; a number written without its country code; the end of a number, or the
// number of a company with an extension.
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

// confidence is the match as a number between 0 and 1.
func (k Kind) confidence() float64 { return []float64{1, 0.9, 0.5}[k.rank()] }

// A Match is a record that may be whoever is asked for.
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

// better reports whether m is to be shown before o.
func (m Match) better(o Match) int {
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

// judge keeps the records that really have the number or address that was asked for: systems answer with what they take for
// it. One that tells no number, or no address, is believed a little.
func judge(a asked, country string, all []Record) []Match {
	var kept []Match
	for _, r := range all {
		kind, ok := a.match(r, country)
		if !ok {
			continue
		}
		kept = append(kept, Match{Kind: kind, ExternalID: r.ExternalID, Name: tidy(r.Name), Company: tidy(r.Company), Title: tidy(r.Title), Email: r.Email,
			URL: r.URL, UpdatedAt: r.UpdatedAt})
	}
	return kept
}
