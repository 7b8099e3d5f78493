package crm

import (
	"strings"

	"github.com/go-ldap/ldap/v3"

	"soniq/internal/customer/contact"
)

// questions are the filters by which a number or an address is found, the quick one first. Whoever they find is held against the
// number afterwards.
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

// quick are the ways a number is written that an index finds. Directories that follow RFC 4517 §4.2.27 pass over spaces and hyphens.
func (s *LDAPSettings) quick(name string, f contact.Formats) []string {
	all := []string{equals(name, f.E164), equals(name, f.Plain), equals(name, f.Zeros), equals(name, "0"+f.NSN)}
	return append(all, "("+name+"=*"+tail(f.NSN)+")")
}

// tail is the end of a number that must be in what is found, in whatever way it is divided.
func tail(nsn string) string {
	const digits = 7
	return nsn[max(0, len(nsn)-digits):]
}

func equals(name, value string) string { return "(" + name + "=" + ldap.EscapeFilter(value) + ")" }

func anyOf(clauses []string) string { return "(|" + strings.Join(clauses, "") + ")" }

// all is a filter that holds where the condition of the settings does too.
func (s *LDAPSettings) all(filter string) string { return "(&" + s.condition() + filter + ")" }
