package adapter

import (
	"strings"

	"github.com/go-ldap/ldap/v3"

	"soniq/internal/customer/contact"
)

// lookupFilters returns the filters for a number or an address, the fast one first. The caller compares the matches
// with the number afterwards.
func (s *LDAPSettings) lookupFilters(q contact.Query) []string {
	if q.Email != "" {
		var all []string
		for _, name := range s.Attributes.Emails {
			all = append(all, equalsFilter(name, q.Email))
		}
		return []string{s.withBaseFilter(orFilter(all))}
	}
	var quick, slow []string
	for _, name := range s.Attributes.Phones {
		quick = append(quick, s.indexedFilters(name, q.Phone)...)
		slow = append(slow, "("+name+"=*"+strings.Join(strings.Split(lastDigits(q.Phone.NSN), ""), "*")+"*)")
	}
	return []string{s.withBaseFilter(orFilter(quick)), s.withBaseFilter(orFilter(slow))}
}

// indexedFilters returns filters for the spellings of a number that an index can find. Directories that implement RFC
// 4517 §4.2.27 ignore spaces and hyphens.
func (s *LDAPSettings) indexedFilters(name string, f contact.Formats) []string {
	all := []string{equalsFilter(name, f.E164), equalsFilter(name, f.Plain), equalsFilter(name, f.Zeros), equalsFilter(name, "0"+f.NSN)}
	return append(all, "("+name+"=*"+lastDigits(f.NSN)+")")
}

// lastDigits returns the end of a number. A match must contain it, with any separators.
func lastDigits(nsn string) string {
	const digits = 7
	return nsn[max(0, len(nsn)-digits):]
}

func equalsFilter(name, value string) string {
	return "(" + name + "=" + ldap.EscapeFilter(value) + ")"
}

func orFilter(clauses []string) string { return "(|" + strings.Join(clauses, "") + ")" }

// withBaseFilter combines a filter with the filter of the settings.
func (s *LDAPSettings) withBaseFilter(filter string) string {
	return "(&" + s.baseFilter() + filter + ")"
}
