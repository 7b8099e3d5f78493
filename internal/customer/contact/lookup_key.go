package contact

import (
	"context"
	"net/mail"
	"slices"
	"strings"

	"soniq/internal/platform/op"
	"soniq/internal/telephony/number"
)

// lookupKey is the phone number or the e-mail address of a lookup, in an organisation.
type lookupKey struct {
	org    string
	number phoneNumber
	email  string // in lower case
}

func (a lookupKey) cacheKey() cacheKey {
	switch {
	case a.email != "":
		return cacheKey{a.org, a.email}
	case a.number.isComplete():
		return cacheKey{a.org, number.Identity(a.number.e164)}
	}
	return cacheKey{a.org, "#" + a.number.digits}
}

// isComplete reports whether connected systems can be searched: only for complete numbers and for addresses.
func (a lookupKey) isComplete() bool { return a.email != "" || a.number.isComplete() }

func (a lookupKey) query(country string) Query {
	q := Query{Email: a.email, Country: country}
	if a.number.isComplete() {
		q.Phone = a.number.formats()
	}
	return q
}

// match returns how well a record of a connected system matches; false if it does not. A record without numbers, or
// without an address, is a possible match.
func (a lookupKey) match(r Record, country string) (best Kind, ok bool) {
	if a.email != "" {
		if r.Email == "" {
			return Possible, true
		}
		same := func(e string) bool { return strings.EqualFold(e, a.email) }
		return Exact, same(r.Email) || slices.ContainsFunc(r.Emails, same)
	}
	if len(r.Phones) == 0 {
		return Possible, true
	}
	for _, p := range r.Phones {
		if k, fits := a.number.match(readNumber(p, country)); fits && (!ok || k.rank() < best.rank()) {
			best, ok = k, true
		}
	}
	return best, ok
}

// match returns how well the number of a record matches the number of the lookup.
func (n phoneNumber) match(o phoneNumber) (Kind, bool) {
	switch {
	case n.isComplete() && o.isComplete() && !n.isSame(o):
		return "", false
	case !n.isComplete() || !o.isComplete():
		return Possible, sharesTail(n.digits, o.digits)
	case o.extension != "":
		return Possible, true
	case o.national:
		return National, true
	}
	return Exact, true
}

// parseLookupKey reads the parameters of a lookup: exactly one of a number and an address.
func parseLookupKey(org, phone, email, country string) (lookupKey, error) {
	phone, email = strings.TrimSpace(number.FromURL(phone)), strings.TrimSpace(email)
	switch {
	case phone == "" && email == "":
		return lookupKey{}, op.Invalid(op.Field("phone", "required", "give phone or email"))
	case phone != "" && email != "":
		return lookupKey{}, op.Invalid(op.Field("email", "ambiguous", "give one of phone and email"))
	case email != "":
		if a, err := mail.ParseAddress(email); err != nil || a.Address != email {
			return lookupKey{}, op.Invalid(op.Field("email", "invalid_email", "not an e-mail address"))
		}
		return lookupKey{org: org, email: strings.ToLower(email)}, nil
	}
	n := readNumber(phone, country)
	if len(n.digits) < 2 || len(n.digits) > 20 {
		return lookupKey{}, op.Invalid(op.Field("phone", "invalid_e164", "not a valid number for "+country))
	}
	n.extension = ""
	return lookupKey{org: org, number: n}, nil
}

// Fits reports whether a record certainly has the number of a query.
func (s *Service) Fits(q Query, r Record) bool { return Fits(q, r) }

// Fits reports whether a record certainly has the number of a query. A record without numbers fits.
func Fits(q Query, r Record) bool {
	a := lookupKey{number: readNumber(q.Phone.E164, q.Country)}
	kind, ok := a.match(r, q.Country)
	return ok && (kind != Possible || len(r.Phones) == 0)
}

// SameNumber reports whether a number in any spelling equals one of ours.
func SameNumber(ours, written string) bool {
	a := readNumber(ours, "")
	b := readNumber(written, a.country)
	if !a.isComplete() || !b.isComplete() {
		return a.digits != "" && a.digits == b.digits
	}
	return a.isSame(b)
}

// Find returns a contact, or db.ErrNone.
func (s *Service) Find(ctx context.Context, org, id string) (Contact, error) {
	return getContact(ctx, s.cfg.DB.Read(ctx), org, id)
}
