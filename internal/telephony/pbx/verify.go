package pbx

import (
	"context"
	"strings"

	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
)

// verify finds out what the signatures beside a call from outside are worth (RFC 8224), before anybody is rung. Nobody is refused.
func (c *liveCall) verify(ctx context.Context, country string) {
	if c.sw.Verify == nil {
		return
	}
	from, _, _ := strings.Cut(claimed(c.a.in).URI.User, ";")
	if e164, ok := number.Parse(from, country); ok {
		from = e164
	}
	r := c.sw.Verify(ctx, c.a.in.Passports, from, c.new.To)
	c.verstat = r.Verstat()
	d := detail{"attestation": r.Attestation, "orig_id": r.OrigID, "certificate": r.Certificate}
	kind := "stir.verified"
	if f := r.Failure; f != nil {
		d["code"], d["reason"], d["problem"] = f.Code, f.Reason, f.Problem
		if kind = "stir.unverified"; r.Refuted() {
			kind = "stir.failed"
		}
	}
	c.step(kind, c.a, d)
}

// passports are the signatures that came with a call from a trunk. A device of ours may not sign for us.
func (l *leg) passports() []string {
	if l.in == nil || l.trunkID == "" {
		return nil
	}
	return l.in.Passports
}

// verified is the caller from outside as a telephone of ours is told that they were verified, or not; nobody where the hunt is for
// somebody else, or who calls is not to be shown.
func (h *hunt) verified() sip.Address {
	shown := h.from.URI.User
	global, ok := strings.CutPrefix(shown, "+")
	if h.c.verstat == "" || h.c.new.Direction != call.Inbound || shown != h.c.new.From || !ok || strings.Trim(global, "0123456789") != "" {
		return sip.Address{}
	}
	return sip.Address{Display: h.from.Display, URI: sip.URI{Scheme: "tel", User: shown, Params: "verstat=" + h.c.verstat}}
}
