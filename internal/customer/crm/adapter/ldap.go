package adapter

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-ldap/ldap/v3"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
	"soniq/internal/platform/placeholder"
)

// LDAPSettings configure a directory (RFC 4511), such as OpenLDAP or Active Directory.
type LDAPSettings struct {
	URL               string         `json:"url" doc:"ldaps://host, or ldap://host with start_tls; a port may follow"`
	StartTLS          bool           `json:"start_tls,omitempty" doc:"Go over to TLS before anything else is said (RFC 4511 §4.14)"`
	CA                string         `json:"ca,omitempty" doc:"PEM certificates of the authority the directory is known by; those of the server unless given"`
	BindDN            string         `json:"bind_dn,omitempty" doc:"Who asks; nobody unless given"`
	Password          string         `json:"password,omitempty" doc:"Secret"`
	BaseDN            string         `json:"base_dn" doc:"Where people are looked for, with all that is below"`
	Filter            string         `json:"filter,omitempty" doc:"What else people must be, such as (objectClass=person)"`
	Attributes        LDAPAttributes `json:"attributes,omitzero"`
	Mode              string         `json:"mode,omitempty" enum:"live,copy,both" doc:"live: asked while the phone rings (unless given). copy: read now and then and copied into the phone index. both: copied, and asked of whom the copy does not know"`
	RefreshMinutes    int            `json:"refresh_minutes,omitempty" doc:"Of copies: 60 unless given; 1 to 10080"`
	RequestsPerMinute int            `json:"requests_per_minute,omitempty" doc:"How often the directory may be asked; 6000 unless given"`
	RecordURL         string         `json:"record_url,omitempty" doc:"Where people look at a record, with {{external_id}}"`
}

// LDAPAttributes map fields to attributes of the directory.
type LDAPAttributes struct {
	ID      string   `json:"id,omitempty" doc:"entryUUID or objectGUID, whichever there is, unless given; else the DN"`
	Name    string   `json:"name,omitempty" doc:"displayName, or else cn"`
	Company string   `json:"company,omitempty" doc:"o, or else company"`
	Title   string   `json:"title,omitempty" doc:"title"`
	Emails  []string `json:"emails,omitempty" doc:"mail"`
	Phones  []string `json:"phones,omitempty" doc:"telephoneNumber and mobile; each should be indexed there, for equality and substrings"`
}

const (
	maxAttributes  = 10 // for numbers, and for addresses
	ldapMaxMatches = 50
	ldapMaxFilter  = 2000 // bytes of a filter
)

// check returns the violations of the settings.
func (s *LDAPSettings) check(g *egress.Guard) (wrong []op.Violation) {
	bad := func(field, code, message string) {
		wrong = append(wrong, op.Field("settings."+field, code, message))
	}
	if _, err := s.hostPort(g); err != nil {
		bad("url", "invalid_url", err.Error())
	}
	if s.StartTLS && strings.HasPrefix(s.URL, "ldaps:") {
		bad("start_tls", "invalid_value", "ldaps is encrypted from the beginning")
	}
	if _, err := s.tlsConfig(); err != nil {
		bad("ca", "invalid_value", err.Error())
	}
	if _, err := ldap.ParseDN(s.BaseDN); err != nil || s.BaseDN == "" {
		bad("base_dn", "invalid_value", "must be a DN such as ou=people,dc=example,dc=com")
	}
	if (s.BindDN == "") != (s.Password == "") {
		bad("password", "required", "bind_dn needs its password, and a password its bind_dn")
	}
	if _, err := ldap.CompileFilter(s.baseFilter()); err != nil || len(s.Filter) > ldapMaxFilter {
		bad("filter", "invalid_value", "must be a filter such as (objectClass=person) (RFC 4515)")
	}
	if checkOneOf(s.Mode, "", "live", "copy", "both") != nil {
		bad("mode", "invalid_value", "must be one of live, copy, both")
	}
	if s.RefreshMinutes < 0 || s.RefreshMinutes > 10080 {
		bad("refresh_minutes", "invalid_value", "must be between 1 and 10080")
	}
	if s.RequestsPerMinute < 0 || s.RequestsPerMinute > 60_000 {
		bad("requests_per_minute", "invalid_value", "must be between 1 and 60000")
	}
	return append(append(wrong, checkRecordURL(s.RecordURL)...), s.Attributes.check()...)
}

func (a LDAPAttributes) check() (wrong []op.Violation) {
	if len(a.Phones) > maxAttributes || len(a.Emails) > maxAttributes {
		wrong = append(wrong, op.Field("settings.attributes", "too_many", "may have 10 of a kind"))
	}
	for _, name := range slices.Concat([]string{a.ID, a.Name, a.Company, a.Title}, a.Phones, a.Emails) {
		if len(name) > 100 || strings.ContainsFunc(name, func(r rune) bool {
			return !strings.ContainsRune(";.-_", r) && (r > 'z' || r < '0' || r > '9' && r < 'A')
		}) {
			wrong = append(wrong, op.Field("settings.attributes", "invalid_value", "not the name of an attribute: "+name))
		}
	}
	return wrong
}

// hostPort returns the host and port of the directory. The host passes the same egress check as every other address.
func (s *LDAPSettings) hostPort(g *egress.Guard) (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "ldap" && u.Scheme != "ldaps" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
		return "", errors.New("must be ldaps://host or ldap://host, with a port where it is not the usual one")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"ldap": "389", "ldaps": "636"}[u.Scheme]
	}
	same := url.URL{Scheme: "https", Host: u.Host, User: u.User, Fragment: u.Fragment}
	if u.Scheme == "ldap" && !s.StartTLS {
		same.Scheme = "http"
	}
	return net.JoinHostPort(u.Hostname(), port), g.CheckURL(&same)
}

// tlsConfig returns the TLS configuration: the host name to verify, and the certificate authorities of the settings
// if there are any.
func (s *LDAPSettings) tlsConfig() (*tls.Config, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{ServerName: u.Hostname()}
	if s.CA == "" {
		return c, nil
	}
	if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM([]byte(s.CA)) {
		return nil, errors.New("holds no certificate in PEM")
	}
	return c, nil
}

// baseFilter returns the filter that every entry must match.
func (s *LDAPSettings) baseFilter() string {
	f := strings.TrimSpace(s.Filter)
	if f != "" && !strings.HasPrefix(f, "(") {
		f = "(" + f + ")"
	}
	if f == "" {
		return "(objectClass=*)"
	}
	return f
}

// ldapDirectory holds the settings and the pool that the three LDAP adapters share.
type ldapDirectory struct {
	s    LDAPSettings
	pool *ldapPool
}

// ldapLive is searched during a call, ldapCopy is copied into the phone index, ldapBoth does both.
type (
	ldapLive struct{ *ldapDirectory }
	ldapCopy struct{ *ldapDirectory }
	ldapBoth struct {
		*ldapDirectory
		ldapLive
		ldapCopy
	}
)

func buildLDAP(e *Env, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation) {
	var x LDAPSettings
	if wrong := op.DecodeSettings(raw, &x); wrong != nil {
		return nil, wrong
	}
	wrong := x.check(e.Guard)
	if len(fields) > 0 {
		wrong = append(wrong, op.Field("field_map", "unknown_field", "this provider has settings.attributes"))
	}
	pool, err := newLDAPPool(x, e.Guard)
	if err != nil {
		return nil, wrong
	}
	d := &ldapDirectory{x.withDefaults(), pool}
	switch x.Mode {
	case "copy":
		return ldapCopy{d}, wrong
	case "both":
		return ldapBoth{d, ldapLive{d}, ldapCopy{d}}, wrong
	}
	return ldapLive{d}, wrong
}

// withDefaults returns the settings with the usual names for missing attributes.
func (s LDAPSettings) withDefaults() LDAPSettings {
	if len(s.Attributes.Phones) == 0 {
		s.Attributes.Phones = []string{"telephoneNumber", "mobile"}
	}
	if len(s.Attributes.Emails) == 0 {
		s.Attributes.Emails = []string{"mail"}
	}
	return s
}

// Can reports that a directory supports lookups only.
func (d *ldapDirectory) Can() Capabilities { return Capabilities{Lookup: true} }

// RequestsPerMinute returns the configured rate, or 6000, which suits a server in the local network.
func (d *ldapDirectory) RequestsPerMinute() int { return cmp.Or(d.s.RequestsPerMinute, 6000) }

// Close closes idle connections.
func (d *ldapDirectory) Close() error { return d.pool.Close() }

// requested returns the attributes to request.
func (a LDAPAttributes) requested() []string {
	all := slices.Concat([]string{a.ID, a.Name, a.Company, a.Title, "entryUUID", "objectGUID", "displayName", "cn", "o", "company", "title",
		"modifyTimestamp"}, a.Phones, a.Emails)
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

// record converts an entry to a record.
func (d *ldapDirectory) record(e *ldap.Entry) contact.Record {
	first := func(names ...string) string {
		for _, n := range names {
			if v := e.GetEqualFoldAttributeValue(n); n != "" && v != "" && utf8.ValidString(v) {
				return strings.TrimSpace(v)
			}
		}
		return ""
	}
	a := d.s.Attributes
	r := contact.Record{ExternalID: first(a.ID, "entryUUID"), Name: first(a.Name, "displayName", "cn"),
		Company: first(a.Company, "o", "company"), Title: first(a.Title, "title"), Email: first(a.Emails...)}
	if b := e.GetRawAttributeValue("objectGUID"); r.ExternalID == "" && len(b) == 16 {
		r.ExternalID = hex.EncodeToString(b)
	}
	if r.ExternalID == "" {
		r.ExternalID = e.DN
	}
	for _, name := range a.Phones {
		r.Phones = append(r.Phones, e.GetEqualFoldAttributeValues(name)...)
	}
	for _, name := range a.Emails {
		r.Emails = append(r.Emails, e.GetEqualFoldAttributeValues(name)...)
	}
	r.Phones, r.Emails = r.Phones[:min(len(r.Phones), 20)], r.Emails[:min(len(r.Emails), 20)]
	if at, err := time.Parse("20060102150405Z", first("modifyTimestamp")); err == nil {
		r.UpdatedAt = at
	}
	if d.s.RecordURL != "" {
		r.URL = placeholder.Fill(d.s.RecordURL, map[string]string{"external_id": r.ExternalID}, placeholder.EscapeURL)
	}
	return r
}

// RefreshInterval returns the time between two copies of the directory.
func (d ldapCopy) RefreshInterval() time.Duration {
	return ListSettings{RefreshMinutes: d.s.RefreshMinutes}.refreshInterval()
}

// Lookup searches the directory for a number or an address.
func (d ldapLive) Lookup(ctx context.Context, q contact.Query) (found []contact.Record, err error) {
	for _, f := range d.s.lookupFilters(q) {
		err = d.pool.withConn(ctx, ldapMaxAnswer, func(c *ldap.Conn) error {
			found, err = d.search(c, f)
			return err
		})
		if err != nil || slices.ContainsFunc(found, func(r contact.Record) bool { return contact.Fits(q, r) }) {
			return found, err
		}
	}
	return found, nil
}

// search reads the entries that match a filter, at most 50.
func (d *ldapDirectory) search(c *ldap.Conn, filter string) ([]contact.Record, error) {
	r := ldap.NewSearchRequest(d.s.BaseDN, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, ldapMaxMatches, 0, false, filter,
		d.s.Attributes.requested(), nil)
	answer, err := c.Search(r)
	if err != nil && !ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded) {
		return nil, err
	}
	var found []contact.Record
	for _, e := range answer.Entries[:min(len(answer.Entries), ldapMaxMatches)] {
		found = append(found, d.record(e))
	}
	return found, nil
}
