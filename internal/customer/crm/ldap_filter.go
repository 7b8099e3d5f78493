package crm

import (
	"strings"

	"github.com/go-ldap/ldap/v3"

	"soniq/internal/customer/contact"
)

// lookupFilters returns the filters for a number or an address, the fast one first. The caller compares the matches
// with the number afterwards.
func (s *LDAPSettings) questions(q contact.Query) []string {
	if q.Email != "" {
		var all []string
		for _, name := range s.Attributes.Emails {
			all = append(all, equals(name, q.Email))
		}
		return []string{s.all(anyOf(all))}
	}
	var quick, slow []string
	for _, name := range s.Attributes.Phones {
		quick = append(quick, s.quick(name, q.Phone)...)
		slow = append(slow, "("+name+"=*"+strings.Join(strings.Split(tail(q.Phone.NSN), ""), "*")+"*)")
	}
	return []string{s.all(anyOf(quick)), s.all(anyOf(slow))}
}

// indexedFilters returns filters for the spellings of a number that an index can find. Directories that implement RFC
// 4517 §4.2.27 ignore spaces and hyphens.
func (s *LDAPSettings) quick(name string, f contact.Formats) []string {
	all := []string{equals(name, f.E164), equals(name, f.Plain), equals(name, f.Zeros), equals(name, "0"+f.NSN)}
	return append(all, "("+name+"=*"+tail(f.NSN)+")")
}

// lastDigits returns the end of a number. A match must contain it, with any separators.
func tail(nsn string) string {
	const digits = 7
	return nsn[max(0, len(nsn)-digits):]
}

func equals(name, value string) string { return "(" + name + "=" + ldap.EscapeFilter(value) + ")" }

func anyOf(clauses []string) string { return "(|" + strings.Join(clauses, "") + ")" }

// withBaseFilter combines a filter with the filter of the settings.
func (s *LDAPSettings) all(filter string) string { return "(&" + s.condition() + filter + ")" }
