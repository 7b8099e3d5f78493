package sip

import (
	"fmt"
	"slices"
	"strings"
)

// Caller identity, privacy and diversion: P-Asserted-Identity, Privacy, Identity, Diversion, History-Info.

// maxDiversions bounds how many diversions of a call are read.
const maxDiversions = 10

// maxPassports bounds how many PASSporTs of a call are kept: those of its carriers, and one of each diversion (RFC
// 8946).
const maxPassports = 10

// assertedIdentity returns the caller as asserted by the network: P-Asserted-Identity (RFC 3325), or the older
// Remote-Party-ID.
func (m *message) assertedIdentity() Address {
	for _, v := range m.list(fIdentity) {
		if a, err := readAddress(v); err == nil && a.address().URI.User != "" {
			return a.address()
		}
	}
	if a, err := readAddress(m.getNamed("Remote-Party-ID")); err == nil {
		return a.address()
	}
	return Address{}
}

// isAnonymous reports whether the caller requests privacy (RFC 3323 §4.2, RFC 3325 §9.3).
func (m *message) isAnonymous() bool {
	for _, v := range strings.FieldsFunc(m.get(fPrivacy), func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
		switch strings.ToLower(v) {
		case "id", "user", "header":
			return true
		}
	}
	if a, err := readAddress(m.getNamed("Remote-Party-ID")); err == nil {
		if p, _ := paramOf(a.params, "privacy"); strings.EqualFold(p, "full") {
			return true
		}
	}
	from := m.from.addr.address().URI
	return strings.EqualFold(from.Host, "anonymous.invalid") || strings.EqualFold(from.User, "anonymous")
}

// passports returns the values of Identity, each on a line of its own (RFC 8224 §4).
func (m *message) passports() (all []string) {
	for i := range m.fields {
		f := &m.fields[i]
		if f.kind == otherField && (strings.EqualFold(f.name, "Identity") || strings.EqualFold(f.name, "y")) && f.value != "" && len(all) < maxPassports {
			all = append(all, f.value)
		}
	}
	return all
}

// diversions returns the diverting parties, the last one first (RFC 5806 §9.1). History-Info is used if there is no
// Diversion.
func (m *message) diversions() (all []Address) {
	for _, v := range m.listNamed("Diversion") {
		if a, err := readAddress(v); err == nil && len(all) < maxDiversions {
			all = append(all, a.address())
		}
	}
	if all == nil {
		all = historyDiversions(m.listNamed("History-Info"))
	}
	return all
}

// historyDiversions reads the diverting parties from History-Info: the entries that precede an entry caused by a
// diversion, or that carry a Reason (RFC 7044 §5, §10.2).
func historyDiversions(history []string) (all []Address) {
	var last nameAddr
	for i, v := range history {
		a, err := readAddress(v)
		if err != nil || i >= 2*maxDiversions {
			return nil
		}
		u, _ := ParseURI(a.uri)
		_, mapped := paramOf(a.params, "mp")
		if _, caused := u.Param("cause"); i > 0 && (caused || mapped || hasReasonHeader(last.uri)) {
			all = append(all, last.address())
		}
		last = a
	}
	slices.Reverse(all)
	return all[:min(len(all), maxDiversions)]
}

// hasReasonHeader reports whether a history entry carries the Reason of its failure.
func hasReasonHeader(uri string) bool {
	u, _ := ParseURI(uri)
	for query := u.query; query != ""; {
		var h string
		h, query, _ = strings.Cut(query, "&")
		if name, _, _ := strings.Cut(h, "="); strings.EqualFold(name, "Reason") {
			return true
		}
	}
	return false
}

// listNamed returns all comma-separated elements of a field by its name.
func (m *message) listNamed(name string) (out []string) {
	for i := range m.fields {
		if !strings.EqualFold(m.fields[i].name, name) {
			continue
		}
		for rest := m.fields[i].value; rest != "" && len(out) < maxFields; {
			var v string
			v, rest = cutElement(rest)
			out = append(out, v)
		}
	}
	return out
}

// inviteFields returns the header lines of an INVITE that the switch determines.
func (s *Server) inviteFields(o *Outgoing, target URI) (string, error) {
	for _, a := range append(append([]Address{o.Identity, o.RemoteParty}, o.Diversion...), o.HistoryInfo...) {
		if strings.IndexFunc(a.URI.Host+a.URI.Params, isControl) >= 0 {
			return "", errAddress
		}
	}
	b := s.appendIdentity(nil, o)
	b = s.appendHistory(b, o, target)
	for _, p := range o.Passports {
		b = appendField(b, "Identity", sanitizeHeader(p))
	}
	if o.ReferredBy != "" {
		b = appendField(b, "Referred-By", sanitizeHeader(o.ReferredBy))
	}
	if o.ReplacesDialog != "" {
		b = appendField(b, "Replaces", sanitizeHeader(o.ReplacesDialog))
		b = appendField(b, "Require", "replaces")
	}
	for _, h := range o.Header {
		if !isToken(h.Name) || strings.IndexFunc(h.Value, isControl) >= 0 || fieldKind(h.Name).isReserved() {
			return "", fmt.Errorf("sip: header field %q is not allowed here", h.Name)
		}
		b = appendField(b, h.Name, h.Value)
	}
	return string(b), nil
}

func (s *Server) appendIdentity(b []byte, o *Outgoing) []byte {
	if o.Identity.URI.User != "" {
		b = append(s.withDefaultHost(o.Identity, o).append(append(b, "P-Asserted-Identity: "...)), "\r\n"...)
	}
	if o.RemoteParty.URI.User != "" {
		b = s.withDefaultHost(o.RemoteParty, o).append(append(b, "Remote-Party-ID: "...))
		b = append(b, ";party=calling"...)
		if o.Anonymous {
			b = append(b, ";privacy=full"...)
		}
		b = append(b, "\r\n"...)
	}
	if o.Anonymous {
		b = appendField(b, "Privacy", "id")
	}
	return b
}

// appendHistory writes the diverting parties: Diversion the last one first, History-Info the first one first, with
// the present target at the end (RFC 7044 §10.3; cause 302 of RFC 4458 stands for any diversion).
func (s *Server) appendHistory(b []byte, o *Outgoing, target URI) []byte {
	for _, a := range o.Diversion {
		b = append(s.withDefaultHost(a, o).append(append(b, "Diversion: "...)), "\r\n"...)
	}
	if len(o.HistoryInfo) == 0 {
		return b
	}
	entries := append([]Address{{URI: target}}, o.HistoryInfo...)
	index, before := "1", ""
	for i := len(entries) - 1; i >= 0; i-- {
		a := s.withDefaultHost(entries[i], o)
		if before != "" && a.URI.isSIP() {
			a.URI.Params = strings.TrimPrefix(a.URI.Params+";cause=302", ";")
		}
		b = a.append(append(b, "History-Info: "...))
		b = append(append(b, ";index="...), index...)
		if before != "" {
			b = append(append(b, ";mp="...), before...)
		}
		b = append(b, "\r\n"...)
		index, before = index+".1", index
	}
	return b
}

// withDefaultHost fills the empty host of an identity from From.
func (s *Server) withDefaultHost(a Address, o *Outgoing) Address {
	if a.URI.Host == "" && a.URI.isSIP() {
		a.URI.Host = firstNonEmpty(o.From.URI.Host, s.publicHost())
	}
	return a
}
