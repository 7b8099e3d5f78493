package number

import (
	"strings"
	"sync"

	"github.com/nyaruka/phonenumbers"

	"soniq/internal/telephony/number/locality"
)

// Parse reads a number in E.164 or as it is dialled inside the country, and returns it in E.164. It accepts any
// number of a possible length, even if its range is unknown, because new ranges are opened before the metadata is
// updated. It accepts the spellings of before a change of a numbering plan (FormerSpelling), and what Written removes. Results are
// cached.
func Parse(text, country string) (e164 string, ok bool) {
	return parsedNumbers.parse(parseKey{text, country})
}

func parse(text, country string) (e164 string, ok bool) {
	e164, extension, ok := read(text, country)
	if !ok || extension != "" {
		return "", false
	}
	return e164, true
}

// read reads a number as Parse does, and its extension, which Parse refuses because nothing can be dialled behind a number.
func read(text, country string) (e164, extension string, ok bool) {
	n, err := ParseDialled(strings.TrimRight(Written(text), "*"), country)
	if err != nil {
		return "", "", false
	}
	extension, n.Extension = n.GetExtension(), nil
	if !phonenumbers.IsPossibleNumber(n) {
		e164, ok = FormerSpelling(n)
		return e164, extension, ok
	}
	return phonenumbers.Format(n, phonenumbers.E164), extension, true
}

// ParseDialled reads a number as the library does. In countries with other digits for a call abroad, such as 011, it also reads 00. Most
// of the world writes it, and carriers send it (ITU-T E.164 §A.4). The result must be a valid number, and the text must have no other
// reading.
func ParseDialled(text, country string) (*phonenumbers.PhoneNumber, error) {
	n, err := phonenumbers.Parse(text, country)
	if err == nil && phonenumbers.IsPossibleNumber(n) {
		return n, nil
	}
	rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "tel:"), "00")
	if !ok {
		return n, err
	}
	if abroad, e := phonenumbers.Parse("+"+rest, country); e == nil && phonenumbers.IsValidNumber(abroad) {
		return abroad, nil
	}
	return n, err
}

// parseKey is a number as it is written, and the country in which it is dialled.
type parseKey struct{ text, country string }

// parseResult is the result of parsing a parseKey.
type parseResult struct {
	e164 string
	ok   bool
}

// parseCache caches the results of Parse, because a node parses the same numbers with every call. It is safe for
// concurrent use.
type parseCache struct {
	mu      sync.Mutex // guards all
	results map[parseKey]parseResult
}

// The limits of the cache: the number of results, and the length in bytes of a number that is cached. A full cache is
// cleared.
const (
	maxCachedNumbers = 10_000
	maxCachedLength  = 32
)

var parsedNumbers = parseCache{results: map[parseKey]parseResult{}}

func (r *parseCache) parse(s parseKey) (e164 string, ok bool) {
	if len(s.text) > maxCachedLength {
		return parse(s.text, s.country)
	}
	r.mu.Lock()
	found, seen := r.results[s]
	r.mu.Unlock()
	if seen {
		return found.e164, found.ok
	}
	e164, ok = parse(s.text, s.country)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.results) >= maxCachedNumbers {
		clear(r.results)
	}
	r.results[parseKey{strings.Clone(s.text), s.country}] = parseResult{e164, ok}
	return e164, ok
}

// numberInfo holds the properties that follow from a number alone.
type numberInfo struct {
	Country  string
	Locality *string
	Type     string
}

func infoOf(e164, fallback string) numberInfo {
	n, err := phonenumbers.Parse(e164, "")
	if err != nil {
		return numberInfo{Country: fallback, Type: "local"}
	}
	f := numberInfo{Country: phonenumbers.GetRegionCodeForNumber(n), Type: numberType(n)}
	if f.Country == "" || f.Country == "ZZ" {
		f.Country = phonenumbers.GetRegionCodeForCountryCode(int(n.GetCountryCode()))
	}
	if f.Type != "local" {
		return f
	}
	if place := locality.Of(n); place != "" {
		f.Locality = &place
	}
	return f
}

func numberType(n *phonenumbers.PhoneNumber) string {
	switch phonenumbers.GetNumberType(n) {
	case phonenumbers.MOBILE:
		return "mobile"
	case phonenumbers.TOLL_FREE:
		return "toll_free"
	case phonenumbers.UAN, phonenumbers.SHARED_COST, phonenumbers.VOIP, phonenumbers.PERSONAL_NUMBER:
		return "national"
	}
	return "local"
}
