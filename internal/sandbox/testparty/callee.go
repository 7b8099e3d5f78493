package testparty

import (
	"strings"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/sandbox/sandbox"
	"soniq/internal/sandbox/softphone"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
)

// Simulated callees: the behaviour of each test number, and the route to it.

// calleeRoles maps each test number to the behaviour of its callee.
func calleeRoles() map[string]softphone.Behavior {
	all := map[string]softphone.Behavior{}
	for which, role := range map[string]softphone.Behavior{
		"01": softphone.Talks(2*time.Second, 20*time.Second),
		"02": softphone.Rejects(486),
		"03": softphone.NoAnswer,
		"04": softphone.Rejects(603),
		"05": softphone.AnsweringMachine,
		"06": softphone.Rejects(404),
		"07": softphone.Rejects(503),
		"08": softphone.PressesDigits("1234#"),
		"09": softphone.BadNetwork(0.05, 40*time.Millisecond, 20*time.Second),
		"10": softphone.PutsOnHold(5*time.Second, 5*time.Second, 5*time.Second),
	} {
		all[sandbox.VoiceNumber(which)] = role
	}
	return all
}

// CalleeNumber returns the test number that was dialled, in E.164. ok is false if it is none.
func CalleeNumber(dialled, country string) (e164 string, ok bool) {
	e164, ok = number.Parse(strings.TrimPrefix(dialled, "tel:"), country)
	if !ok {
		return "", false
	}
	_, ok = sandbox.VoiceTestNumber(e164)
	return e164, ok
}

// Callee returns the route to the callee of a test number. ok is false if the number is none of the test numbers.
func (s *Service) Callee(c pbx.Caller, country, dialled string) (t pbx.TrunkOut, ok bool) {
	e164, ok := CalleeNumber(dialled, country)
	if !ok {
		return t, false
	}
	t = pbx.TrunkOut{Number: e164, Mode: "pai", SRTP: "off", Target: resolve.Target{Host: s.callees.Addr(), Transport: "udp"},
		Acquire: func(func()) (func(), bool) { return s.limit.acquire(c.Org) }}
	if digits := c.Metadata[sandbox.DigitsKey]; digits != "" && strings.Trim(digits, "0123456789*#ABCDabcdw") == "" {
		t.Header = []sip.Header{{Name: softphone.DigitsHeader, Value: digits}}
	}
	return t, true
}
