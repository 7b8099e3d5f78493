package server

import (
	"context"
	"strings"
	"sync"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/sandbox/sandbox"
	"soniq/internal/sandbox/softphone"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
)

// This file joins the sandbox with the people outside it: test parties with telephones of their own on loopback, reached by
// the same switch, signalling and media as everybody.

// roles are how the test numbers behave.
func roles() map[string]softphone.Role {
	all := map[string]softphone.Role{}
	for which, role := range map[string]softphone.Role{
		"01": softphone.Talker(2*time.Second, 20*time.Second),
		"02": softphone.Refuser(486),
		"03": softphone.Nobody,
		"04": softphone.Refuser(603),
		"05": softphone.Machine,
		"06": softphone.Refuser(404),
		"07": softphone.Refuser(503),
		"08": softphone.Presser("1234#"),
		"09": softphone.BadLine(0.05, 40*time.Millisecond, 20*time.Second),
		"10": softphone.Holder(5*time.Second, 5*time.Second, 5*time.Second),
	} {
		all[sandbox.VoiceNumber(which)] = role
	}
	return all
}

// partiesPerOrg is how many test parties an organisation has on the telephone at once.
const partiesPerOrg = 10

// testParties lead calls of the sandbox to test parties.
type testParties struct {
	*softphone.Parties

	mu   sync.Mutex // guards busy
	busy map[string]int
}

func openParties(ctx context.Context, h *Platform) (*testParties, error) {
	p, err := softphone.OpenParties(ctx, roles(), h.log)
	return &testParties{Parties: p, busy: map[string]int{}}, err
}

// take takes one of the organisation's places.
func (t *testParties) take(org string) (release func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[org] >= partiesPerOrg {
		return nil, false
	}
	t.busy[org]++
	var once sync.Once
	return func() {
		once.Do(func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.busy[org]--; t.busy[org] <= 0 {
				delete(t.busy, org)
			}
		})
	}, true
}

// testNumber is the test number that was dialled in the sandbox; ok is false for any other, and outside of it.
func testNumber(inSandbox bool, dialled, country string) (e164 string, ok bool) {
	if !inSandbox {
		return "", false
	}
	e164, ok = number.Parse(strings.TrimPrefix(dialled, "tel:"), country)
	if !ok {
		return "", false
	}
	_, ok = sandbox.Voice(e164)
	return e164, ok
}

// party is the way to a test party, where one was dialled.
func (d *directory) party(ctx context.Context, c pbx.Caller, dialled string) (exit pbx.Exit, ok bool, err error) {
	if !c.Sandbox || c.Barred || d.parties == nil {
		return exit, false, nil
	}
	o, err := d.orgs.Get(ctx, c.Org)
	if err != nil {
		return exit, false, err
	}
	e164, ok := testNumber(true, dialled, o.Country)
	if !ok {
		return exit, false, nil
	}
	exit.Number = e164
	if exit.CallerID, exit.NumberID, err = d.callerID(ctx, c); err != nil {
		return exit, true, err
	}
	t := pbx.TrunkOut{Number: e164, Mode: "pai", SRTP: "off", Target: sip.Target{Host: d.parties.Addr(), Transport: "udp"},
		Acquire: func(func()) (func(), bool) { return d.parties.take(c.Org) }}
	if digits := c.Metadata[sandbox.DigitsKey]; digits != "" && strings.Trim(digits, "0123456789*#ABCDabcdw") == "" {
		t.Header = []sip.Header{{Name: softphone.DigitsHeader, Value: digits}}
	}
	exit.Trunks = []pbx.TrunkOut{t}
	return exit, true, nil
}
