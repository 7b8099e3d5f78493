package pbx

import (
	"context"
	"slices"
	"testing"

	"soniq/internal/platform/clock"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/stir"
	"soniq/internal/telephony/call"
)

// fakeVerifier notes what it was asked, and returns a result.
type fakeVerifier struct {
	result stir.Result
	asked  *[]string
}

func (v fakeVerifier) Verify(_ context.Context, signatures []string, from, to string) stir.Result {
	*v.asked = append(slices.Clone(signatures), from, to)
	return v.result
}

func verifyingCall(in *sip.Inbound, r stir.Result, asked *[]string) *liveCall {
	s := &Switch{cfg: Config{Clock: clock.System(), Routing: Routing{Verifier: fakeVerifier{r, asked}}}}
	c := s.newCall(call.New{Direction: call.Inbound, To: "+12025550143"})
	c.a = c.newLeg("caller")
	c.a.in, c.a.trunkID = in, "trk_1"
	c.new.From, _ = callerOfTrunk(in)
	return c
}

func TestVerify_UsesAssertedIdentity(t *testing.T) {
	t.Parallel()
	claims, asserts := sipmsg.Address{URI: sipmsg.URI{User: "12155550199"}}, sipmsg.Address{Display: "Ann", URI: sipmsg.URI{User: "(215) 555-0112;x=y"}}
	for name, k := range map[string]struct {
		in                 *sip.Inbound
		failure            *stir.Failure
		from, kind, reason string
	}{
		"claimed":   {&sip.Inbound{From: claims}, nil, "+12155550199", "stir.verified", ""},
		"asserted":  {&sip.Inbound{From: claims, Identity: asserts}, &stir.Failure{Code: 438, Reason: "x"}, "+12155550112", "stir.failed", "x"},
		"not shown": {&sip.Inbound{From: claims, Identity: asserts, Anonymous: true}, &stir.Failure{Code: 436, Reason: "y"}, "+12155550112", "stir.unverified", "y"},
		"not told":  {&sip.Inbound{From: sipmsg.Address{URI: sipmsg.URI{User: "anonymous"}}}, &stir.Failure{Reason: "z"}, "anonymous", "stir.unverified", "z"},
	} {
		var asked []string
		k.in.Passports = []string{"p"}
		c := verifyingCall(k.in, stir.Result{Failure: k.failure}, &asked)
		c.verify(t.Context(), "US")
		if !slices.Equal(asked, []string{"p", k.from, "+12025550143"}) {
			t.Errorf("%s: asked about %v", name, asked)
		}
		step := c.timeline.Copy().Steps[0]
		if reason, _ := step.Detail["reason"].(string); step.Kind != k.kind || reason != k.reason {
			t.Errorf("%s: told %+v", name, step)
		}
	}
}

// An anonymous caller is not revealed by the identity header, and only numbers are written into it.
func TestVerifiedIdentity_OnlyPresentedNumbers(t *testing.T) {
	t.Parallel()
	for shown, want := range map[string]string{"+12155550112": "verstat=TN-Validation-Passed", call.Anonymous: "", "201": "", "+1215>\r\nEvil: 1": ""} {
		var asked []string
		c := verifyingCall(&sip.Inbound{}, stir.Result{}, &asked)
		c.verify(t.Context(), "US")
		c.new.From = shown
		h := &forkedDial{c: c, from: sipmsg.Address{URI: sipmsg.URI{User: shown}}}
		if got := h.verifiedIdentity(); got.URI.Params != want || want != "" && got.URI.User != shown {
			t.Errorf("%q: %+v", shown, got)
		}
		if h.from.URI.User = "202"; h.verifiedIdentity().URI.User != "" { // a colleague consults
			t.Errorf("%q: told of a colleague", shown)
		}
	}
	c := (&Switch{}).newCall(call.New{Direction: call.Inbound, From: "+1"})
	if c.verify(t.Context(), "US"); (&forkedDial{c: c, from: sipmsg.Address{URI: sipmsg.URI{User: "+1"}}}).verifiedIdentity().URI.User != "" {
		t.Error("told although nobody looked")
	}
}
