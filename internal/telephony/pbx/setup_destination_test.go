package pbx

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

func TestGroupFlows_OneFlowAtATime(t *testing.T) {
	t.Parallel()
	contact := func(device, name, instance string, age int) Phone {
		return Phone{DeviceID: device, SRTP: device, Binding: sip.Binding{Contact: name, Instance: instance,
			Registered: time.Unix(int64(1000-age), 0)}}
	}
	var got []string
	for _, p := range groupFlows([]Phone{contact("a", "old", "<urn:1>;1", 9), contact("b", "other", "<urn:1>;1", 3),
		contact("a", "new", "<urn:1>;2", 1), contact("a", "plain", "", 5), contact("a", "older", "<urn:1>;3", 20)}) {
		way := fmt.Sprint(p.DeviceID, p.SRTP, ":", p.Binding.Contact)
		for _, status := range []int{430, 408, 430} {
			if q := p.next(status); q != nil {
				p, way = *q, way+">"+q.Binding.Contact
			}
		}
		got = append(got, way)
	}
	if s := strings.Join(got, " "); s != "aa:new>old>older aa:plain bb:other" {
		t.Errorf("rung: %s", s)
	}
	busy := contact("a", "new", "", 0)
	busy.Flows = []sip.Binding{{Contact: "old"}}
	if q := busy.next(486); q != nil {
		t.Error("who is busy is rung by another flow")
	}
}

// A stored destination from before the host check must not reach one of our users.
func TestResolveDestination_RejectsForeignHost(t *testing.T) {
	t.Parallel()
	server, err := sip.Listen(t.Context(), sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{},
		Logger: slog.New(slog.DiscardHandler)}, ignoreCalls{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	s := &Switch{server: server}
	for _, find := range []func() (resolvedDestination, *Refusal, error){
		func() (resolvedDestination, *Refusal, error) {
			return s.resolveDestination(t.Context(), Caller{Org: "org_1"}, "sip:101@partner.example")
		},
		func() (resolvedDestination, *Refusal, error) {
			return s.resolveDirect(t.Context(), Caller{Org: "org_1"}, "sips:101@partner.example", "")
		},
	} {
		_, refusal, err := find()
		if err != nil || refusal == nil || refusal.problem().Code != "destination_not_allowed" || !strings.Contains(refusal.Phrase, "partner.example") {
			t.Errorf("refusal %+v, %v", refusal, err)
		}
	}
	if refusal := s.rejectForeignHost("sip:101@" + server.Addr().String()); refusal != nil {
		t.Errorf("at our own address: %+v", refusal)
	}
}

// ignoreCalls is a sip.Handler that ignores calls.
type ignoreCalls struct{}

func (ignoreCalls) Invite(context.Context, *sip.Inbound) {}
