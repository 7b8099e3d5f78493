package sip_test

import (
	"fmt"
	"testing"

	"soniq/internal/protocol/sip"
)

// Each INVITE beyond the limit is answered 503, and the calls in progress continue and end normally.
func TestOverloadIsAnswered503AndCallsGoOn(t *testing.T) {
	t.Parallel()
	const calls, storm = 20, 1500
	far := freePort(t)
	r := newRelay(t, sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}, Limits: sip.Limits{Calls: calls}}, fmt.Sprintf("127.0.0.1:%d", far))
	uas := startSipp(t, "uas_plain", far, "-m", fmt.Sprint(calls))
	waitBound(t, far)
	held := startSipp(t, "uac_plain", freePort(t), r.Addr().String(), "-s", "1000", "-m", fmt.Sprint(calls), "-r", "100", "-d", "5000")
	eventually(t, "all calls up", func() bool { return r.Stats().Calls == calls })
	flood := startSipp(t, "uac_expect_503", freePort(t), r.Addr().String(), "-s", "1000", "-m", fmt.Sprint(storm), "-r", "500", "-l", "2000")
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
func TestUrgentCallsAreLetInBeyondTheLimit(t *testing.T) {
	t.Parallel()
	far := freePort(t)
	r := newRelay(t, sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}, Limits: sip.Limits{Calls: 1},
		Urgent: func(called string) bool { return called == "112" }}, fmt.Sprintf("127.0.0.1:%d", far))
	uas := startSipp(t, "uas_plain", far, "-m", "2")
	waitBound(t, far)
	held := startSipp(t, "uac_plain", freePort(t), r.Addr().String(), "-s", "1000", "-m", "1", "-d", "4000")
	eventually(t, "a call", func() bool { return r.Stats().Calls == 1 })
	startSipp(t, "uac_expect_503", freePort(t), r.Addr().String(), "-s", "1001", "-m", "1").wait(t)
	startSipp(t, "uac_plain", freePort(t), r.Addr().String(), "-s", "112", "-m", "1", "-d", "200").wait(t)
	held.wait(t)
	uas.wait(t)
}
