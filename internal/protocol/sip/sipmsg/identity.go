package sipmsg

import (
	"slices"
	"strings"
)

// Caller identity, privacy and diversion of a received INVITE: P-Asserted-Identity, Privacy, Identity, Diversion, History-Info.

// maxDiversions bounds how many diversions of a call are read.
const maxDiversions = 10

// maxPassports bounds how many PASSporTs of a call are kept: those of its carriers, and one of each diversion (RFC
// 8946).
const maxPassports = 10

// AssertedIdentity returns the caller as asserted by the network: P-Asserted-Identity (RFC 3325), or the older
// Remote-Party-ID.
func (m *Message) AssertedIdentity() Address {
	for _, v := range m.List(FieldIdentity) {
		if a, err := ReadAddress(v); err == nil && a.Address().URI.User != "" {
			return a.Address()
		}
	}
	if a, err := ReadAddress(m.GetNamed("Remote-Party-ID")); err == nil {
		return a.Address()
	}
	return Address{}
}

// IsAnonymous reports whether the caller requests privacy (RFC 3323 §4.2, RFC 3325 §9.3).
func (m *Message) IsAnonymous() bool {
	for _, v := range strings.FieldsFunc(m.Get(FieldPrivacy), func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
		switch strings.ToLower(v) {
		case "id", "user", "header":
			return true
		}
	}
	if a, err := ReadAddress(m.GetNamed("Remote-Party-ID")); err == nil {
		if p, _ := ParamOf(a.Params, "privacy"); strings.EqualFold(p, "full") {
			return true
		}
	}
	from := m.From.Addr.Address().URI
	return strings.EqualFold(from.Host, "anonymous.invalid") || strings.EqualFold(from.User, "anonymous")
}

// Passports returns the values of Identity, each on a line of its own (RFC 8224 §4).
func (m *Message) Passports() (all []string) {
	for i := range m.Fields {
		f := &m.Fields[i]
		isIdentity := f.Kind == FieldOther && (strings.EqualFold(f.Name, "Identity") || strings.EqualFold(f.Name, "y"))
		if isIdentity && f.Value != "" && len(all) < maxPassports {
			all = append(all, f.Value)
		}
	}
	return all
}

// Diversions returns the diverting parties, the last one first (RFC 5806 §9.1). History-Info is used if there is no
// Diversion.
func (m *Message) Diversions() (all []Address) {
	for _, v := range m.ListNamed("Diversion") {
		if a, err := ReadAddress(v); err == nil && len(all) < maxDiversions {
			all = append(all, a.Address())
		}
	}
	if all == nil {
		all = historyDiversions(m.ListNamed("History-Info"))
	}
	return all
}

// historyDiversions reads the diverting parties from History-Info: the entries that precede an entry caused by a
// diversion, or that carry a Reason (RFC 7044 §5, §10.2).
func historyDiversions(history []string) (all []Address) {
	var last NameAddr
	for i, v := range history {
		a, err := ReadAddress(v)
		if err != nil || i >= 2*maxDiversions {
			return nil
		}
		u, _ := ParseURI(a.URI)
		_, mapped := ParamOf(a.Params, "mp")
		if _, caused := u.Param("cause"); i > 0 && (caused || mapped || hasReasonHeader(last.URI)) {
			all = append(all, last.Address())
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

// ListNamed returns all comma-separated elements of a field by its name.
func (m *Message) ListNamed(name string) (out []string) {
	for i := range m.Fields {
		if !strings.EqualFold(m.Fields[i].Name, name) {
			continue
		}
		for rest := m.Fields[i].Value; rest != "" && len(out) < maxFields; {
			var v string
			v, rest = CutElement(rest)
			out = append(out, v)
		}
	}
	return out
}
