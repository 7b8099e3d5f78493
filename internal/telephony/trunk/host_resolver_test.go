package trunk_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/trunk"
)

// fakeDNS answers from a zone. A name that is not in it is an error; so is every name while it is down.
type fakeDNS struct {
	zone map[string][]string
	srv  map[string][]string // targets by _service._proto.name
	down bool
}

func (d *fakeDNS) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if d.down || d.zone[host] == nil {
		return nil, errors.New("no such host")
	}
	var all []netip.Addr
	for _, a := range d.zone[host] {
		all = append(all, netip.MustParseAddr(a))
	}
	return all, nil
}

func (d *fakeDNS) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	var all []*net.SRV
	for _, target := range d.srv["_"+service+"._"+proto+"."+name] {
		all = append(all, &net.SRV{Target: target + ".", Port: 5060})
	}
	if d.down || all == nil {
		return "", nil, errors.New("no such service")
	}
	return name, all, nil
}

func TestBySource_ResolvedHostName(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		names := &fakeDNS{zone: map[string][]string{"sip.carrier.example": {"192.0.2.1", "2001:db8::1"}, "edge.carrier.example": {"192.0.2.9"}},
			srv: map[string][]string{"_sip._udp.sip.carrier.example": {"edge.carrier.example"}}}
		id := h.createTrunk("named", "")
		now := time.Now()
		h = h.restartedAt(now)
		want := func(address, trunk string) {
			t.Helper()
			if got := h.sourceTrunk(t, address); got != trunk {
				t.Errorf("%s is %q, want %q", address, got, trunk)
			}
		}
		want("192.0.2.1", "")
		h.ResolveHosts(context.Background(), names)
		want("192.0.2.1", id)
		want("2001:db8::1", id)
		want("192.0.2.9", id)
		want("192.0.2.2", "")
		names.down = true
		h.ResolveHosts(context.Background(), names)
		want("192.0.2.1", id)
	})
}

func TestResolveHosts_ExpiresAddresses(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	c := newClock()
	h.Service = trunk.New(trunk.Config{DB: h.db, Orgs: h.orgs, Sealer: h.seal, Bus: h.bus, Clock: c, Realm: realm})
	names := &fakeDNS{zone: map[string][]string{"sip.carrier.example": {"192.0.2.1"}}}
	id := h.createTrunk("named", "")
	h.ResolveHosts(context.Background(), names)
	names.zone["sip.carrier.example"] = []string{"192.0.2.2"}
	c.advance(5 * time.Minute)
	h.ResolveHosts(context.Background(), names)
	if h.sourceTrunk(t, "192.0.2.1") != id || h.sourceTrunk(t, "192.0.2.2") != id {
		t.Error("a name that gives other addresses each time loses some of them")
	}
	c.advance(31 * time.Minute)
	h.ResolveHosts(context.Background(), names)
	if h.sourceTrunk(t, "192.0.2.1") != "" || h.sourceTrunk(t, "192.0.2.2") != id {
		t.Error("the old address is still the carrier's")
	}
	for i := range 500 {
		names.zone["sip.carrier.example"] = append(names.zone["sip.carrier.example"], fmt.Sprintf("198.51.%d.%d", i/250, i%250))
	}
	h.ResolveHosts(context.Background(), names)
	if h.sourceTrunk(t, "198.51.1.200") != "" {
		t.Error("a name may claim any number of addresses")
	}
}

func TestHealth_DownAndUpAfterSeveralProbes(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	first, second := h.createTrunk("first", `,"priority":1`), h.createTrunk("second", `,"priority":2`)
	status := func(id, want string) {
		t.Helper()
		if a := h.request("GET", "/trunks/"+id, nil); a.Text("status") != want {
			t.Errorf("got %s, want %s", a.Bytes, want)
		}
	}
	lost := errors.New("no answer to OPTIONS")
	status(first, "unknown")
	for _, step := range []struct {
		err  error
		want string
	}{{nil, "up"}, {lost, "degraded"}, {nil, "up"}, {lost, "degraded"}, {lost, "degraded"}, {lost, "down"}, {nil, "down"}, {lost, "down"},
		{nil, "down"}, {nil, "up"}} {
		h.RecordProbe(first, 20*time.Millisecond, step.err)
		status(first, step.want)
	}
	h.RecordProbe(first, 3*time.Second, nil)
	status(first, "degraded")
	for range 3 {
		h.RecordProbe(first, 0, lost)
	}
	if a := h.request("GET", "/trunks/"+first, nil); a.Text("last_error") != lost.Error() {
		t.Errorf("got %s", a.Bytes)
	}
	if got := h.planText(t, "030 1234567"); got != "second:+49301234567 first:+49301234567" {
		t.Errorf("a trunk that is down is not tried last: %s", got)
	}
	h.RecordProbe(second, 0, nil)
	if a := h.request("GET", "/trunks/"+second, nil); a.At("probe_ms") != float64(0) || a.At("last_error") != nil {
		t.Errorf("got %s", a.Bytes)
	}
}

func TestAnswerSeizureRatio_LastHour(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.createTrunk("a", "")
		if a := h.request("GET", "/trunks/"+id, nil); a.At("answer_seizure_rate") != nil {
			t.Errorf("without calls: %s", a.Bytes)
		}
		for i, answered := range []bool{true, true, false, true} {
			began := time.Now().Add(-time.Duration(i*25) * time.Minute) // the last one is too old
			h.insertCall(t, began, time.Minute)
			h.exec(t, `UPDATE legs SET trunk_id = $2 WHERE org_id = $1 AND trunk_id = 'trk_1'`, h.org, id)
			if answered {
				h.exec(t, `UPDATE legs SET answered_at = started_at WHERE org_id = $1 AND started_at = $2`, h.org, db.At(began))
			}
		}
		again := h.restartedAt(time.Now())
		a, err := again.Show(access.With(context.Background(), optest.Admin(h.org)), &trunk.OneIn{ID: id})
		if err != nil || a.Body.ASR == nil || *a.Body.ASR != 67 {
			t.Errorf("got %+v, %v", a, err)
		}
	})
}

func (h *fixture) exec(t *testing.T, text string, args ...any) {
	t.Helper()
	err := h.db.Tx(context.Background(), func(tx db.Querier) error {
		_, err := tx.Exec(context.Background(), text, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
