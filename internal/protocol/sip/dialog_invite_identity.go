package sip

import (
	"fmt"
	"strings"

	"soniq/internal/protocol/sip/sipmsg"
)

// Header fields of an outgoing INVITE: P-Asserted-Identity, Privacy, Identity, Diversion, History-Info.

// inviteFields returns the header lines of an INVITE that the switch determines.
func (s *Server) inviteFields(o *Outgoing, target sipmsg.URI) (string, error) {
	for _, a := range append(append([]sipmsg.Address{o.Identity, o.RemoteParty}, o.Diversion...), o.HistoryInfo...) {
		if strings.IndexFunc(a.URI.Host+a.URI.Params, sipmsg.IsControl) >= 0 {
			return "", sipmsg.ErrAddress
		}
	}
	b := s.appendIdentity(nil, o)
	b = s.appendHistory(b, o, target)
	for _, p := range o.Passports {
		b = sipmsg.AppendField(b, "Identity", sipmsg.SanitizeHeader(p))
	}
	if o.ReferredBy != "" {
		b = sipmsg.AppendField(b, "Referred-By", sipmsg.SanitizeHeader(o.ReferredBy))
	}
	if o.ReplacesDialog != "" {
		b = sipmsg.AppendField(b, "Replaces", sipmsg.SanitizeHeader(o.ReplacesDialog))
		b = sipmsg.AppendField(b, "Require", "replaces")
	}
	for _, h := range o.Header {
		if !sipmsg.IsToken(h.Name) || strings.IndexFunc(h.Value, sipmsg.IsControl) >= 0 || sipmsg.FieldNamed(h.Name).IsReserved() {
			return "", fmt.Errorf("sip: header field %q is not allowed here", h.Name)
		}
		b = sipmsg.AppendField(b, h.Name, h.Value)
	}
	return string(b), nil
}

func (s *Server) appendIdentity(b []byte, o *Outgoing) []byte {
	if o.Identity.URI.User != "" {
		b = append(s.withDefaultHost(o.Identity, o).AppendTo(append(b, "P-Asserted-Identity: "...)), "\r\n"...)
	}
	if o.RemoteParty.URI.User != "" {
		b = s.withDefaultHost(o.RemoteParty, o).AppendTo(append(b, "Remote-Party-ID: "...))
		b = append(b, ";party=calling"...)
		if o.Anonymous {
			b = append(b, ";privacy=full"...)
		}
		b = append(b, "\r\n"...)
	}
	if o.Anonymous {
		b = sipmsg.AppendField(b, "Privacy", "id")
	}
	return b
}

// appendHistory writes the diverting parties: Diversion the last one first, History-Info the first one first, with
// the present target at the end (RFC 7044 §10.3; cause 302 of RFC 4458 stands for any diversion).
func (s *Server) appendHistory(b []byte, o *Outgoing, target sipmsg.URI) []byte {
	for _, a := range o.Diversion {
		b = append(s.withDefaultHost(a, o).AppendTo(append(b, "Diversion: "...)), "\r\n"...)
	}
	if len(o.HistoryInfo) == 0 {
		return b
	}
	entries := append([]sipmsg.Address{{URI: target}}, o.HistoryInfo...)
	index, before := "1", ""
	for i := len(entries) - 1; i >= 0; i-- {
		a := s.withDefaultHost(entries[i], o)
		if before != "" && a.URI.IsSIP() {
			a.URI.Params = strings.TrimPrefix(a.URI.Params+";cause=302", ";")
		}
		b = a.AppendTo(append(b, "History-Info: "...))
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
func (s *Server) withDefaultHost(a sipmsg.Address, o *Outgoing) sipmsg.Address {
	if a.URI.Host == "" && a.URI.IsSIP() {
		a.URI.Host = firstNonEmpty(o.From.URI.Host, s.layer.PublicHost())
	}
	return a
}
