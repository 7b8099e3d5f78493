package sip_test

import (
	"fmt"
	"testing"

	"soniq/internal/protocol/sip"
)

// Each INVITE beyond the limit is answered 503, and the calls in progress continue and end normally.
func TestAdmission_OverloadGets503AndCallsContinue(t *testing.T) {
	t.Parallel()
	const calls, storm = 20, 1500
	far := freePortBlock(t)
	r := newTestRelay(t, sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}, Limits: sip.Limits{Calls: calls}}, fmt.Sprintf("127.0.0.1:%d", far))
	uas := startSIPp(t, "uas_plain", far, "-m", fmt.Sprint(calls))
	waitForUDPPort(t, far)
	held := startSIPp(t, "uac_plain", freePortBlock(t), r.Addr().String(), "-s", "1000", "-m", fmt.Sprint(calls), "-r", "100", "-d", "5000")
	waitUntil(t, "all calls up", func() bool { return r.Stats().Calls == calls })
	flood := startSIPp(t, "uac_expect_503", freePortBlock(t), r.Addr().String(), "-s", "1000", "-m", fmt.Sprint(storm), "-r", "500", "-l", "2000")
	flood.wait(t)
	if n := r.Stats().Calls; n != calls {
		t.Errorf("%d calls in progress after the storm, want %d", n, calls)
	}
	held.wait(t)
	uas.wait(t)
	if st := r.Stats(); st.Rejected < storm {
		t.Errorf("%d refused, want %d at least", st.Rejected, storm)
	}
}

// An urgent call is admitted although others are refused.
func TestAdmission_UrgentCallsBeyondLimit(t *testing.T) {
	t.Parallel()
	far := freePortBlock(t)
	r := newTestRelay(t, sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}, Limits: sip.Limits{Calls: 1},
		IsUrgent: func(called string) bool { return called == "112" }}, fmt.Sprintf("127.0.0.1:%d", far))
	uas := startSIPp(t, "uas_plain", far, "-m", "2")
	waitForUDPPort(t, far)
	held := startSIPp(t, "uac_plain", freePortBlock(t), r.Addr().String(), "-s", "1000", "-m", "1", "-d", "4000")
	waitUntil(t, "a call", func() bool { return r.Stats().Calls == 1 })
	startSIPp(t, "uac_expect_503", freePortBlock(t), r.Addr().String(), "-s", "1001", "-m", "1").wait(t)
	startSIPp(t, "uac_plain", freePortBlock(t), r.Addr().String(), "-s", "112", "-m", "1", "-d", "200").wait(t)
	held.wait(t)
	uas.wait(t)
}
