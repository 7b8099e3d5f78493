package guard

import (
	"net/netip"
	"testing"
	"time"
)

func TestBan_DurationDoublesAndIsForgotten(t *testing.T) {
	t.Parallel()
	var b banTable
	b.init(Limits{BanFor: 5 * time.Minute, MaxBan: 24 * time.Hour})
	a := netip.MustParseAddr("192.0.2.1")
	now := time.Hour
	var took []time.Duration
	for range 11 {
		until := b.add(a, "x", true, now).until
		took = append(took, until-now)
		if !b.isBanned(a, until-1) || b.isBanned(a, until) {
			t.Errorf("a ban until %s holds wrongly", until)
		}
		now = until + time.Hour
	}
	for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440} {
		if took[i] != want*time.Minute {
			t.Errorf("ban %d took %s, want %s", i+1, took[i], want*time.Minute)
		}
	}
	now += banMemory
	if until := b.add(a, "x", true, now).until; until-now != 5*time.Minute {
		t.Errorf("after a quiet day a ban takes %s", until-now)
	}
	forged := netip.MustParseAddr("192.0.2.2")
	for range 5 {
		until := b.add(forged, "x", false, now).until
		if until-now != 5*time.Minute {
			t.Errorf("a ban by what may be forged takes %s", until-now)
		}
		now = until
	}
}

func TestBan_TableIsBounded(t *testing.T) {
	t.Parallel()
	var b banTable
	b.init(Limits{BanFor: time.Minute, MaxBan: time.Hour})
	for i := range maxBans + 1000 {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		b.add(a, "x", true, time.Duration(i))
		if !b.isBanned(a, time.Duration(i)) {
			t.Fatalf("ban %d does not hold", i)
		}
	}
	if n := len(b.entries); n > maxBans {
		t.Errorf("%d bans kept", n)
	}
}

func TestBan_IPv6CoversThe64Network(t *testing.T) {
	t.Parallel()
	g := New(Limits{PerSecond: 200, BanFor: 5 * time.Minute, MaxBan: 24 * time.Hour})
	g.bans.add(Network(netip.MustParseAddr("2001:db8:1:2::5")), "x", true, 0)
	if !g.Banned(netip.MustParseAddr("2001:db8:1:2:ffff::1"), 1) || g.Banned(netip.MustParseAddr("2001:db8:1:3::5"), 1) {
		t.Error("a ban of IPv6 is not one of its /64")
	}
}
