package adapter

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"soniq/internal/platform/egress"
)

// TestLDAP_AddressPassesGuard: the settings of a directory accept the addresses that the guard lets a request reach, and no others.
// Unencrypted connections to an address need the operator's permission, as http does.
func TestLDAP_AddressPassesGuard(t *testing.T) {
	t.Parallel()
	guard := egress.New([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")})
	for _, x := range []struct {
		address  string
		startTLS bool
		accepted bool
	}{
		{"ldaps://ldap.example.com", false, true},
		{"ldaps://ldap.example.com:3269", false, true},
		{"ldap://ldap.example.com", true, true},
		{"ldap://ldap.example.com", false, true}, // the address of the name is checked at each connection
		{"ldap://8.8.8.8", true, true},
		{"ldap://8.8.8.8", false, false},
		{"ldap://10.1.2.3", false, true},
		{"ldaps://10.1.2.3:636", false, true},
		{"ldaps://10.2.0.1", false, false},
		{"ldap://10.2.0.1", true, false},
		{"ldaps://127.0.0.1", false, false},
		{"ldaps://[::1]", false, false},
		{"ldaps://[::ffff:127.0.0.1]", false, false},
		{"ldaps://[::ffff:10.1.2.3]", false, true},
		{"ldaps://169.254.169.254", false, false},
		{"ldaps://[fe80::1]", false, false},
		{"ldaps://192.168.1.1", false, false},
		{"ldaps://localhost", false, false},
		{"ldaps://user:secret@ldap.example.com", false, false},
		{"ldaps://ldap.example.com#10.1.2.3", false, false},
		{"ldaps://ldap.example.com/dc=example", false, false},
		{"ldaps://ldap.example.com?scope=sub", false, false},
		{"https://ldap.example.com", false, false},
		{"ldapi://%2fvar%2frun%2fldapi", false, false},
		{"ldaps://", false, false},
		{"ldap.example.com", false, false},
		{"", false, false},
	} {
		s := LDAPSettings{URL: x.address, StartTLS: x.startTLS, BaseDN: "dc=example,dc=com"}
		if wrong := fields(&s, guard); slices.Contains(wrong, "settings.url") == x.accepted {
			t.Errorf("%q, StartTLS %t: violations %v", x.address, x.startTLS, wrong)
		}
	}
}

// TestLDAP_SettingsChecked: each wrong setting of a directory is a violation of its own field.
func TestLDAP_SettingsChecked(t *testing.T) {
	t.Parallel()
	guard := egress.New(nil)
	for field, change := range map[string]func(*LDAPSettings){
		"settings.start_tls":           func(s *LDAPSettings) { s.StartTLS = true },
		"settings.ca":                  func(s *LDAPSettings) { s.CA = "no certificate" },
		"settings.base_dn":             func(s *LDAPSettings) { s.BaseDN = "example.com" },
		"settings.password":            func(s *LDAPSettings) { s.BindDN = "cn=soniq,dc=example,dc=com" },
		"settings.filter":              func(s *LDAPSettings) { s.Filter = "(objectClass=person" },
		"settings.mode":                func(s *LDAPSettings) { s.Mode = "sometimes" },
		"settings.refresh_minutes":     func(s *LDAPSettings) { s.RefreshMinutes = 10081 },
		"settings.requests_per_minute": func(s *LDAPSettings) { s.RequestsPerMinute = -1 },
		"settings.attributes":          func(s *LDAPSettings) { s.Attributes.Name = "cn)(uid=*" },
	} {
		s := LDAPSettings{URL: "ldaps://ldap.example.com", BaseDN: "dc=example,dc=com"}
		if wrong := fields(&s, guard); len(wrong) > 0 {
			t.Fatalf("right settings: violations %v", wrong)
		}
		change(&s)
		if wrong := fields(&s, guard); !slices.Equal(wrong, []string{field}) {
			t.Errorf("%s: violations %v", field, wrong)
		}
	}
	long := LDAPSettings{URL: "ldaps://ldap.example.com", BaseDN: "dc=example,dc=com", Filter: "(cn=" + strings.Repeat("x", ldapMaxFilter) + ")"}
	if wrong := fields(&long, guard); !slices.Equal(wrong, []string{"settings.filter"}) {
		t.Errorf("a long filter: violations %v", wrong)
	}
}

// fields returns the fields of the violations of settings.
func fields(s *LDAPSettings, g *egress.Guard) (all []string) {
	for _, v := range s.check(g) {
		all = append(all, v.Field)
	}
	return all
}
