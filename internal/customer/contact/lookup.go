package contact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
)

// InternalID is the id of the connection that represents an organisation's own contacts, and InternalName its default
// name.
const (
	InternalID   = "crm_internal"
	InternalName = "Contacts"
)

// LookupIn is the request of contacts.lookup.
type LookupIn struct {
	Phone     string `query:"phone" maxLength:"60" doc:"E.164, or as it is dialled in the organisation's country" example:"+14155550100"`
	Email     string `query:"email" maxLength:"254"`
	TimeoutMS int    `query:"timeout_ms" minimum:"50" maximum:"2000" default:"200" doc:"How long connected systems are waited for"`
	Fresh     bool   `query:"fresh" doc:"Do not answer from what was found in the last minutes"`
}

// ContactLookup is the best match of a lookup, with its alternatives.
type ContactLookup struct {
	Name         string         `json:"name"`
	Company      string         `json:"company"`
	Source       string         `json:"source" doc:"Name of the system that answered"`
	LookupMS     int            `json:"lookup_ms"`
	ContactID    *string        `json:"contact_id"`
	Phone        *string        `json:"phone"`
	Email        *string        `json:"email"`
	Title        *string        `json:"title"`
	URL          *string        `json:"url"`
	ExternalID   *string        `json:"external_id"`
	Match        Kind           `json:"match" enum:"exact,national,possible"`
	Confidence   float64        `json:"confidence"`
	Cached       bool           `json:"cached"`
	Complete     bool           `json:"complete" doc:"False when a system had not answered in time"`
	Sources      []SourceStatus `json:"sources" nullable:"false"`
	Alternatives []Alternative  `json:"alternatives" nullable:"false"`
}

// SourceStatus is the result of one source.
type SourceStatus struct {
	Source   string `json:"source"`
	Status   string `json:"status" enum:"hit,miss,timeout,error,skipped,circuit_open,rate_limited"`
	LookupMS int    `json:"lookup_ms"`
	Matches  int    `json:"matches"`
}

// Alternative is a further match.
type Alternative struct {
	Name       string  `json:"name"`
	Company    string  `json:"company"`
	Source     string  `json:"source"`
	ExternalID *string `json:"external_id"`
	ContactID  *string `json:"contact_id"`
	Match      Kind    `json:"match" enum:"exact,national,possible"`
}

// Lookup looks up a number or an address in the cache, then in the index and, concurrently, in the connected systems.
func (s *Service) Lookup(ctx context.Context, in *LookupIn) (*op.Out[ContactLookup], error) {
	began := time.Now()
	country, err := s.country(ctx)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	a, err := parseLookupKey(access.Org(ctx), in.Phone, in.Email, country)
	if err != nil {
		return nil, err
	}
	f, cached, _, err := s.resolve(ctx, a, country, time.Duration(in.TimeoutMS)*time.Millisecond, in.Fresh)
	if err != nil {
		return nil, err
	}
	if len(f.matches) == 0 {
		return nil, &op.Error{Code: "contact_not_found", Detail: "nobody is known by this number or address",
			Extra: map[string]any{"lookup_ms": millis(time.Since(began)), "sources": f.sources, "complete": f.complete}}
	}
	return op.OK(*f.response(a, cached, time.Since(began)))
}

// resolve looks up a key. late is not nil if answers are outstanding when the limit is reached.
func (s *Service) resolve(ctx context.Context, a lookupKey, country string, limit time.Duration, fresh bool) (f *lookupResult, cached bool,
	late *singleflight, err error) {
	if !fresh {
		if f, ok := s.results.get(a); ok {
			return f, true, nil, nil
		}
	}
	seen := s.results.seenWrites(a)
	local, all, err := s.searchIndex(ctx, a)
	if err != nil {
		return nil, false, nil, err
	}
	ask, skipped := sourcesToQuery(a, local, all)
	statuses := localStatuses(local, all, skipped)
	if len(ask) == 0 {
		f = &lookupResult{seenWrites: seen, matches: local, sources: statuses, complete: true}
		s.results.put(a, f)
		return f, false, nil, nil
	}
	flight, landed := s.join(a, country, seen, fresh, local, statuses, ask)
	if landed != nil {
		return landed, true, nil, nil
	}
	if f = flight.wait(ctx, s.cfg.Timer.After(limit)); !f.complete {
		late = flight
	}
	return f, false, late, nil
}

// searchIndex looks up a key in the index.
func (s *Service) searchIndex(ctx context.Context, a lookupKey) ([]Match, []Source, error) {
	all, err := s.cfg.Sources.Sources(ctx, a.org)
	if err != nil {
		return nil, nil, fmt.Errorf("list sources: %w", err)
	}
	all = acceptingSources(a, all)
	q := s.cfg.DB.Read(ctx)
	var found []Match
	switch {
	case a.email != "":
		found, err = findEmail(ctx, q, a.org, a.email)
	case a.number.isComplete():
		if found, err = findNumber(ctx, q, a.org, a.number.e164); err == nil && len(found) == 0 {
			found, err = findTail(ctx, q, a.org, a.number)
		}
	default:
		found, err = findTail(ctx, q, a.org, a.number)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("search the index: %w", err)
	}
	return withSource(found, all), all, nil
}

// acceptingSources returns the sources that accept the number.
func acceptingSources(a lookupKey, all []Source) []Source {
	kept := make([]Source, 0, len(all))
	for _, c := range all {
		if c.Filter == nil || c.Filter.Accepts(a.number.e164) {
			kept = append(kept, c)
		}
	}
	return kept
}

// withSource sets the source of each match, drops matches of sources that were deleted or disabled, and sorts them.
func withSource(found []Match, all []Source) []Match {
	kept := found[:0]
	for _, m := range found {
		for _, c := range all {
			if c.ID == m.connection || c.ID == InternalID && m.connection == "" {
				m.source, m.priority = c.Name, c.Priority
				kept = append(kept, m)
			}
		}
	}
	slices.SortFunc(kept, Match.compare)
	return kept
}

// sourcesToQuery returns the systems that may have a better match than the index. A system that is also copied is
// queried only if its copy has no match.
func sourcesToQuery(a lookupKey, local []Match, all []Source) (ask, skipped []Source) {
	for _, c := range all {
		switch {
		case c.Live == nil:
		case !a.isComplete(), c.hasCopy(local), len(local) > 0 && local[0].Kind == Exact && c.Priority > local[0].priority:
			skipped = append(skipped, c)
		default:
			ask = append(ask, c)
		}
	}
	return ask, skipped
}

// hasCopy reports whether the index has a match from the copy of the source.
func (c Source) hasCopy(local []Match) bool {
	return slices.ContainsFunc(local, func(m Match) bool { return m.connection == c.ID && m.Kind != Possible })
}

// localStatuses returns the statuses of the sources that were answered from the index or skipped.
func localStatuses(local []Match, all, skipped []Source) []SourceStatus {
	out := []SourceStatus{}
	for _, c := range all {
		if c.Live != nil && !c.hasCopy(local) {
			continue
		}
		x := SourceStatus{Source: c.Name, Status: "miss"}
		for _, m := range local {
			if m.connection == c.ID || m.connection == "" && c.ID == InternalID {
				x.Matches, x.Status = x.Matches+1, "hit"
			}
		}
		out = append(out, x)
	}
	for _, c := range skipped {
		if c.hasCopy(local) {
			continue
		}
		out = append(out, SourceStatus{Source: c.Name, Status: "skipped"})
	}
	return out
}

// maxAlternatives bounds the alternatives of a response.
const maxAlternatives = 20

// response returns the API response with the best match first. There must be a match.
func (f *lookupResult) response(a lookupKey, cached bool, took time.Duration) *ContactLookup {
	m := f.matches[0]
	if !egress.IsWebAddress(m.URL) {
		m.URL = "" // the system that was asked determines it, and people open it
	}
	out := &ContactLookup{Name: m.Name, Company: m.Company, Source: m.source, LookupMS: millis(took), ContactID: ptr(m.ContactID),
		Email: ptr(m.Email),
		Title: ptr(m.Title), URL: ptr(m.URL), ExternalID: ptr(m.ExternalID), Match: m.Kind, Confidence: m.Kind.confidence(), Cached: cached,
		Complete: f.complete, Sources: f.sources, Alternatives: []Alternative{}, Phone: ptr(a.phone())}
	for _, o := range f.matches[1:min(len(f.matches), maxAlternatives+1)] {
		out.Alternatives = append(out.Alternatives, Alternative{Name: o.Name, Company: o.Company, Source: o.source,
			ExternalID: ptr(o.ExternalID), ContactID: ptr(o.ContactID), Match: o.Kind})
	}
	return out
}

// phone returns the number as responses show it.
func (a lookupKey) phone() string {
	if a.number.isComplete() {
		return a.number.e164
	}
	return a.number.digits
}

func ptr(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// contact returns the best match for calls and events; nil if it is only possible, or there is none.
func (f *lookupResult) contact() *event.Contact {
	if f == nil || len(f.matches) == 0 || f.matches[0].Kind == Possible {
		return nil
	}
	m := f.matches[0]
	return &event.Contact{ID: m.ContactID, Name: m.Name, Company: m.Company, Source: m.source}
}

// knownLimit bounds the time a call waits for the index.
const knownLimit = 150 * time.Millisecond

// LookupLocal looks up a number in the cache and the index, without querying systems. It returns nil if there is no
// sure match, or after knownLimit. It runs during call setup.
func (s *Service) LookupLocal(ctx context.Context, org, phone string) *event.Contact {
	o, err := s.cfg.Orgs.Get(ctx, org)
	if err != nil {
		return nil
	}
	a, err := parseLookupKey(org, phone, "", o.Country)
	if err != nil || !a.number.isComplete() {
		return nil
	}
	if f, ok := s.results.get(a); ok {
		return f.contact()
	}
	ctx, cancel := context.WithTimeout(ctx, knownLimit)
	defer cancel()
	seen := s.results.seenWrites(a)
	local, all, err := s.searchIndex(ctx, a)
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) {
			s.cfg.Log.Warn("caller not looked up", "org", org, "err", err)
		}
		return nil
	}
	f := &lookupResult{seenWrites: seen, matches: local, complete: true}
	if ask, skipped := sourcesToQuery(a, local, all); len(ask) == 0 {
		f.sources = localStatuses(local, all, skipped)
		s.results.put(a, f)
	}
	return f.contact()
}

// Query returns the query for a number that systems receive.
func (s *Service) Query(ctx context.Context, org, phone string) (Query, error) {
	o, err := s.cfg.Orgs.Get(ctx, org)
	if err != nil {
		return Query{}, fmt.Errorf("find organisation: %w", err)
	}
	a, err := parseLookupKey(org, phone, "", o.Country)
	if err == nil && !a.number.isComplete() {
		err = op.Invalid(op.Field("phone", "invalid_e164", "not a valid number for "+o.Country))
	}
	return a.query(o.Country), err
}
