package pbx

import (
	"context"
	"strings"

	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
)

// verify checks the signatures of a call from a trunk (STIR, RFC 8224) before any phone rings. It refuses no call.
func (c *liveCall) verify(ctx context.Context, country string) {
	if c.sw.Verify == nil {
		return
	}
	from, _, _ := strings.Cut(assertedOrFrom(c.a.in).URI.User, ";")
	if e164, ok := number.Parse(from, country); ok {
		from = e164
	}
	r := c.sw.Verify(ctx, c.a.in.Passports, from, c.new.To)
	c.verstat = r.Verstat()
	d := detail{"attestation": r.Attestation, "orig_id": r.OrigID, "certificate": r.Certificate}
	kind := "stir.verified"
	if f := r.Failure; f != nil {
		d["code"], d["reason"], d["problem"] = f.Code, f.Reason, f.Problem
		if kind = "stir.unverified"; r.SignatureInvalid() {
			kind = "stir.failed"
		}
	}
	c.addEntry(kind, c.a, d)
}

// passports returns the PASSporTs of a call from a trunk. Our devices may not sign.
func (l *leg) passports() []string {
	if l.in == nil || l.trunkID == "" {
		return nil
	}
	return l.in.Passports
}

// verifiedIdentity returns the asserted identity with the verification result (verstat) for a phone. It is zero if
// the dial presents another party, or if the caller is anonymous.
func (h *forkedDial) verifiedIdentity() sip.Address {
	shown := h.from.URI.User
	global, ok := strings.CutPrefix(shown, "+")
	if h.c.verstat == "" || h.c.new.Direction != call.Inbound || shown != h.c.new.From || !ok || strings.Trim(global, "0123456789") != "" {
		return sip.Address{}
	}
	return sip.Address{Display: h.from.Display, URI: sip.URI{Scheme: "tel", User: shown, Params: "verstat=" + h.c.verstat}}
}
