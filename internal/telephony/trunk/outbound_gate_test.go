package trunk_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	trunkpkg "soniq/internal/telephony/trunk"
)

// admit asks the gate for a call and returns the reason of a refusal, and the function that ends an admitted call.
func (h *fixture) admit(t testing.TB, dialled string) (func(), trunkpkg.Reason) {
	t.Helper()
	pass, err := h.gate.Admit(context.Background(), trunkpkg.CallAttempt{Org: h.org, Dialled: dialled})
	var no *trunkpkg.Refusal
	if errors.As(err, &no) {
		return func() {}, no.Reason
	}
	if err != nil {
		t.Fatal(err)
	}
	return pass.End, trunkpkg.Allowed
}

func (h *fixture) setOutbound(settings string) {
	h.request("PATCH", "/organization", `{"outbound":`+settings+`}`).Want(200)
}

func TestAdmit_PremiumNumbersRefusedInAnySpelling(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.createTrunk("a", "")
	for _, number := range []string{"900 1234567", "870 773111632", "881 612345678", "882 16 66677", "979 123456789", "1 876 512 3456", "53 5 1234567"} {
		for _, form := range []string{"%s", "+%s", "00%s", "+49%s", "0049 %s", "0%s", "9,00%s", "tel:+%s", "tel:00%s;phone-context=+49", "+%s;ext=1",
			"+%s;user=phone", "00%s#", "+00%s", "++%s", "011%s", "%s@49.example", "+ (%s)", "\u200b+%s", "+%s;isub=1;postd=22", "00 00%s"} {
			dialled := fmt.Sprintf(form, number)
			pass, err := h.gate.Admit(context.Background(), trunkpkg.CallAttempt{Org: h.org, Dialled: dialled})
			if err != nil {
				continue
			}
			// Without a prefix it may be a national number. It is then dialled as one, with the country code.
			if dial := pass.Routes[0].Dial; !strings.HasPrefix(dial, "+49") || strings.HasPrefix(dial, "+49900") || pass.Type == "premium_rate" {
				t.Errorf("%q goes out as %s", dialled, dial)
			}
			pass.End()
		}
	}
}

func TestPlan_NonASCIIDigits(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.createTrunk("able", `,"emergency_capable":true`)
	for dialled, want := range map[string]string{"\uff11\uff11\uff12": "emergency able:112", "\u0660\u0661\u0661\u0662": "emergency able:112", "\uff0b44 20 7946 0018": "country_not_allowed"} {
		if got := h.planText(t, dialled); got != want {
			t.Errorf("%q: %s, want %s", dialled, got, want)
		}
	}
}

func TestAdmit_ConcurrentCallsLimitUnderLoad(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.createTrunk("a", "")
	h.setOutbound(`{"concurrent_calls":25,"calls_per_second":10000}`)
	var all sync.WaitGroup
	var out, refused, most atomic.Int64
	start := make(chan struct{})
	for i := range 400 {
		all.Go(func() {
			<-start
			_, reason := h.admit(t, fmt.Sprintf("030 %07d", 1000000+i)) // numbers in a row, one call each
			if reason == trunkpkg.Allowed {
				out.Add(1)
			} else if reason == trunkpkg.ConcurrentCallsExceeded {
				refused.Add(1)
			}
			for n := int64(h.limits.Running(h.org)); n > most.Load(); {
				most.Store(n)
			}
		})
	}
	close(start)
	all.Wait()
	if out.Load() != 25 || refused.Load() != 375 || most.Load() != 25 {
		t.Errorf("%d went out, %d were refused, %d at most at a time", out.Load(), refused.Load(), most.Load())
	}
	if got := h.gate.RefusalCounts()[trunkpkg.ConcurrentCallsExceeded]; got != 375 {
		t.Errorf("%d refusals counted", got)
	}
}

func TestAdmit_LimitSharedByAllSources(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.createTrunk("a", "")
	h.setOutbound(`{"concurrent_calls":2}`)
	for i, want := range []trunkpkg.Reason{trunkpkg.Allowed, trunkpkg.Allowed, trunkpkg.ConcurrentCallsExceeded} {
		_, err := h.gate.Admit(context.Background(), trunkpkg.CallAttempt{Org: h.org, Dialled: fmt.Sprintf("030 765432%d", i),
			Program: i%2 == 1})
		var no *trunkpkg.Refusal
		if errors.As(err, &no) != (want != trunkpkg.Allowed) || no != nil && no.Reason != want {
			t.Errorf("call %d: %v, want %q", i, err, want)
		}
	}
}

func TestAdmit_OneCallPerSecondPerDestination(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.createTrunk("a", "")
	end, reason := h.admit(t, "030 7654321")
	if reason != trunkpkg.Allowed {
		t.Fatal(reason)
	}
	if _, reason = h.admit(t, "+49 30 7654321"); reason != trunkpkg.DestinationRateExceeded {
		t.Errorf("again: %q", reason)
	}
	if _, reason = h.admit(t, "030 7654322"); reason != trunkpkg.Allowed {
		t.Errorf("another number: %q", reason)
	}
	if got := h.limits.Running(h.org); got != 2 {
		t.Errorf("%d calls counted: a refused one takes no place", got)
	}
	if end(); h.limits.Running(h.org) != 1 {
		t.Error("an ended call keeps its place")
	}
}

func TestKillSwitch_StopsAllExceptEmergencyCalls(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.createTrunk("able", `,"emergency_capable":true`)
		cut := false
		if _, ok := h.gate.AcquireChannel(trunkpkg.Trunk{ID: "trk_1"}, false, func() { cut = true }); !ok {
			t.Fatal("no channel")
		}
		ctx := context.Background()
		if err := h.SetOutboundKillSwitch(ctx, true); err != nil {
			t.Fatal(err)
		}
		if _, reason := h.admit(t, "030 7654321"); reason != trunkpkg.OutboundStopped {
			t.Errorf("stopped: %q", reason)
		}
		if _, reason := h.admit(t, "112"); reason != trunkpkg.Allowed {
			t.Errorf("an emergency call: %q", reason)
		}
		if n := h.gate.StopAll(); n != 1 || !cut {
			t.Errorf("%d calls in progress were cut", n)
		}
		again := newFixture(t, d) // another process on the same database
		again.createTrunk("a", "")
		if _, reason := again.admit(t, "030 7654321"); reason != trunkpkg.OutboundStopped {
			t.Errorf("after a restart: %q", reason)
		}
		if err := h.SetOutboundKillSwitch(ctx, false); err != nil {
			t.Fatal(err)
		}
		if _, reason := h.admit(t, "030 7654321"); reason != trunkpkg.Allowed {
			t.Errorf("started: %q", reason)
		}
	})
}

// A restored copy that is not confirmed lets nothing but emergency calls out, whatever the kill switch says.
func TestHeld_StopsAllExceptEmergencyCalls(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.createTrunk("able", `,"emergency_capable":true`)
	held := *h
	held.Service = trunkpkg.New(trunkpkg.Config{DB: h.db, Orgs: h.orgs, Sealer: h.seal, Bus: h.bus, Realm: realm, Limits: h.limits,
		Held: errors.New("a restored copy")})
	held.gate = trunkpkg.NewOutboundGate(held.Service, held.limits, slog.New(slog.DiscardHandler))
	if err := held.SetOutboundKillSwitch(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, reason := held.admit(t, "030 7654321"); reason != trunkpkg.OutboundStopped {
		t.Errorf("a call: %q", reason)
	}
	if _, reason := held.admit(t, "112"); reason != trunkpkg.Allowed {
		t.Errorf("an emergency call: %q", reason)
	}
}

func TestAdmit_RefusedUntilEmergencyAcknowledged(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.createTrunk("a", "")
	h.request("PATCH", "/organization", `{"emergency":{"acknowledged":false}}`).Want(200)
	if _, reason := h.admit(t, "030 7654321"); reason != trunkpkg.EmergencyNotAcknowledged {
		t.Errorf("not acknowledged: %q", reason)
	}
	if _, reason := h.admit(t, "abc"); reason != trunkpkg.InvalidNumber {
		t.Errorf("no number: %q", reason)
	}
	h.createTrunk("able", `,"emergency_capable":true`)
	if _, reason := h.admit(t, "030 7654321"); reason != trunkpkg.Allowed {
		t.Errorf("with emergency calls: %q", reason)
	}
}

func TestDailyMinutes_SurviveRestart(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.createTrunk("a", "")
		h.setOutbound(`{"minutes_per_day":10}`)
		h.request("PATCH", "/organization", `{"timezone":"Europe/Berlin"}`).Want(200)
		zone, _ := time.LoadLocation("Europe/Berlin")
		now := time.Date(2026, 11, 21, 0, 30, 0, 0, zone) // another day in UTC
		h.insertCall(t, now.Add(-2*time.Hour), time.Hour) // yesterday
		h.insertCall(t, now.Add(-20*time.Minute), 6*time.Minute)
		gate := h.restartedAt(now)
		if _, reason := gate.admit(t, "030 7654321"); reason != trunkpkg.Allowed {
			t.Errorf("after 6 of 10 minutes: %q", reason)
		}
		h.insertCall(t, now.Add(-10*time.Minute), 5*time.Minute)
		gate = h.restartedAt(now)
		if _, reason := gate.admit(t, "030 7654321"); reason != trunkpkg.DailyMinutesExceeded {
			t.Errorf("after 11 of 10 minutes: %q", reason)
		}
	})
}

// restartedAt returns the fixture after a restart at a time.
func (h *fixture) restartedAt(now time.Time) *fixture {
	again := *h
	at := clock.Func(func() time.Time { return now })
	again.limits = trunkpkg.NewLimiter(at)
	again.Service = trunkpkg.New(trunkpkg.Config{DB: h.db, Orgs: h.orgs, Sealer: h.seal, Bus: h.bus, Clock: at, Realm: realm,
		Limits: again.limits})
	again.gate = trunkpkg.NewOutboundGate(again.Service, again.limits, slog.New(slog.DiscardHandler))
	return &again
}

// insertCall stores a call that went out over a trunk.
func (h *fixture) insertCall(t *testing.T, began time.Time, lasted time.Duration) {
	t.Helper()
	id := db.NewID("call")
	err := h.db.Tx(context.Background(), func(tx db.Querier) error {
		_, err := tx.Exec(context.Background(), `INSERT INTO calls (org_id, id, direction, status, stage, source, from_number, to_number,
			started_at, ended_at, ring_seconds, queue_seconds, hold_seconds, talk_seconds, total_seconds, recording_state, recording_ready,
			consent, tags, notes_count, metadata, sandbox, node)
			VALUES ($1, $2, 'outbound', 'completed', 'none', 'device', '100', '+49307654321', $3, $4, 0, 0, 0, 0, 0, 'off', $5,
			'not_required', '[]', 0, '{}', $5, 'n')`, h.org, id, db.At(began), db.At(began.Add(lasted)), false)
		if err != nil {
			return err
		}
		for _, role := range []string{"caller", "callee"} {
			_, err = tx.Exec(context.Background(), `INSERT INTO legs (org_id, id, call_id, role, trunk_id, number, status, sip_call_id,
				started_at, ended_at)
				VALUES ($1, $2, $3, $4, 'trk_1', '', 'ended', '', $5, $6)`,
				h.org, db.NewID("leg"), id, role, db.At(began), db.At(began.Add(lasted)))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAcquireChannel_EmergencyPreemptsNewestCall(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := trunkpkg.NewLimiter(c.Now)
	h := newFixture(t, dbtest.SQLite(t))
	gate := trunkpkg.NewOutboundGate(h.Service, l, slog.New(slog.DiscardHandler))
	trunk := trunkpkg.Trunk{ID: "trk_1", MaxChannels: 2}
	var cut []string
	var ends []func()
	for _, name := range []string{"old", "new"} {
		end, ok := gate.AcquireChannel(trunk, false, func() { cut = append(cut, name) })
		if !ok {
			t.Fatal("no channel")
		}
		ends = append(ends, end)
		c.advance(time.Second)
	}
	if _, ok := gate.AcquireChannel(trunk, false, nil); ok {
		t.Error("a third channel of two")
	}
	gate.AcquireChannel(trunk, true, nil)
	if strings.Join(cut, " ") != "new" {
		t.Errorf("cut: %v", cut)
	}
	ends[1]()
	if n := l.Running("trk_1"); n != 2 {
		t.Errorf("%d channels in use", n)
	}
	gate.AcquireChannel(trunk, true, nil)
	gate.AcquireChannel(trunk, true, nil) // two emergency calls: neither is preempted for a third
	if strings.Join(cut, " ") != "new old" {
		t.Errorf("cut: %v", cut)
	}
}

func TestAdmit_EmergencyRefusedForPrograms(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	for _, trunk := range []string{"", `,"emergency_capable":true`} {
		h.createTrunk("a", trunk)
		_, err := h.gate.Admit(context.Background(), trunkpkg.CallAttempt{Org: h.org, Dialled: "0-112", Program: true})
		var no *trunkpkg.Refusal
		if !errors.As(err, &no) || no.Reason != trunkpkg.EmergencyNotForPrograms || no.APIError("to").Code != "destination_not_allowed" {
			t.Errorf("got %v", err)
		}
	}
}

func TestPlan_EmergencyTestNumber(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.request("PATCH", "/organization", `{"country":"US"}`).Want(200)
	h.createTrunk("plain", "")
	if got := h.planText(t, "933"); got != "emergency_not_available" {
		t.Errorf("without such a trunk: %s", got)
	}
	h.createTrunk("able", `,"emergency_capable":true`)
	p, err := h.Plan(context.Background(), h.org, "933")
	if err != nil || !p.Test || !p.Emergency || len(p.Routes) != 1 || p.Routes[0].Dial != "933" {
		t.Errorf("got %+v, %v", p, err)
	}
	if trunkpkg.EmergencyTest("DE", "933") || !trunkpkg.ReservedExtension("CA", "933") {
		t.Error("933 is a test in North America, and nowhere else")
	}
}

func TestRefusals_CountedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	var lines lineCounter
	gate := trunkpkg.NewOutboundGate(h.Service, h.limits, slog.New(slog.NewTextHandler(&lines, nil)))
	for range 500 {
		_, _ = gate.Admit(context.Background(), trunkpkg.CallAttempt{Org: h.org, Dialled: "+33142685300"})
	}
	if n := gate.RefusalCounts()[trunkpkg.CountryNotAllowed]; n != 500 || lines.n != 1 {
		t.Errorf("%d counted, %d lines", n, lines.n)
	}
}

type lineCounter struct{ n int }

func (l *lineCounter) Write(b []byte) (int, error) { l.n++; return len(b), nil }

// A call that was admitted before the stop of outbound calls gets no channel after it, and an emergency call does.
func TestGate_NoChannelAfterStop(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.createTrunk("able", `,"emergency_capable":true`)
		pass, err := h.gate.Admit(t.Context(), trunkpkg.CallAttempt{Org: h.org, Dialled: "+493012345678"})
		if err != nil {
			t.Fatal(err)
		}
		defer pass.End()
		if err := h.SetOutboundKillSwitch(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		way := pass.Routes[0].Trunk
		if _, ok := h.gate.AcquireChannel(way, false, func() {}); ok {
			t.Error("a call got a channel although outbound calls are stopped")
		}
		if n := h.limits.Running(way.ID); n != 0 {
			t.Errorf("%d channels are taken", n)
		}
		release, ok := h.gate.AcquireChannel(way, true, nil)
		if !ok {
			t.Error("an emergency call got no channel")
		}
		release()
	})
}
