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
	remote := m.remoteParty()
	for _, v := range m.List(FieldIdentity) {
		if a, err := ReadAddress(v); err == nil && a.Address().URI.User != "" {
			remote.caller = a.Address()
			break
		}
	}
	if remote.hidesName {
		remote.caller.Display = ""
	}
	return remote.caller
}

// remoteParty is the caller as given by Remote-Party-ID.
type remoteParty struct {
	caller                 Address
	hidesName, hidesNumber bool
}

// remoteParty reads Remote-Party-ID (draft-ietf-sip-privacy-04). The caller is the first entry with party=calling, else the
// first one without a party. The privacy of all such entries counts, also of one that cannot be read otherwise.
func (m *Message) remoteParty() (r remoteParty) {
	named := false
	for _, v := range m.ListNamed("Remote-Party-ID") {
		a, err := ReadAddress(v)
		if err != nil {
			a = NameAddr{Params: v[strings.LastIndexByte(v, '>')+1:]}
		}
		party, stated := ParamOf(a.Params, "party")
		if stated && !strings.EqualFold(party, "calling") {
			continue
		}
		r.addPrivacy(a.Params)
		if err == nil && !named && (stated || r.caller.URI.User == "") {
			r.caller, named = a.Address(), stated
		}
	}
	return r
}

// addPrivacy adds what the privacy parameters of an entry hide: all of them hide the number but "off" and "name".
func (r *remoteParty) addPrivacy(params string) {
	c := cursor{s: params}
	for {
		key, value, ok, err := c.param()
		if err != nil || !ok {
			return
		}
		if !strings.EqualFold(key, "privacy") {
			continue
		}
		kinds := strings.FieldsFunc(Unquote(value), isPrivacySeparator)
		if len(kinds) == 0 {
			r.hidesNumber = true
		}
		for _, v := range kinds {
			switch kind, _, _ := strings.Cut(strings.ToLower(v), "-"); kind { // such as full-network
			case "off":
			case "name":
				r.hidesName = true
			default:
				r.hidesNumber = true
			}
		}
	}
}

func isPrivacySeparator(r rune) bool { return r == ';' || r == ',' || r == ' ' || r == '\t' }

// IsAnonymous reports whether the caller requests privacy (RFC 3323 §4.2, RFC 3325 §9.3).
func (m *Message) IsAnonymous() bool {
	for i := range m.Fields {
		if m.Fields[i].Kind != FieldPrivacy {
			continue
		}
		for _, v := range strings.FieldsFunc(m.Fields[i].Value, isPrivacySeparator) {
			switch strings.ToLower(v) {
			case "id", "user", "header":
				return true
			}
		}
	}
	if m.remoteParty().hidesNumber {
		return true
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
