package bus_test

import (
	"sync"
	"testing"

	"soniq/internal/platform/bus"
)

func TestPublish_EverySubscriber(t *testing.T) {
	t.Parallel()
	b := bus.New()
	one, two, other := b.Subscribe("s", 2), b.Subscribe("s", 2), b.Subscribe("t", 2)
	b.Publish("s", 1)
	b.Publish("s", 2)
	for _, s := range []*bus.Subscription{one, two} {
		if a, z := <-s.C, <-s.C; a != 1 || z != 2 {
			t.Errorf("got %v, %v", a, z)
		}
	}
	if len(other.C) != 0 {
		t.Error("a message of another subject arrived")
	}
}

func TestPublish_SlowReceiverLosesMessages(t *testing.T) {
	t.Parallel()
	b := bus.New()
	slow, quick := b.Subscribe("s", 1), b.Subscribe("s", 100)
	for i := range 100 {
		b.Publish("s", i)
	}
	if len(quick.C) != 100 || len(slow.C) != 1 || <-slow.C != 0 {
		t.Errorf("quick has %d, slow %d", len(quick.C), len(slow.C))
	}
}

func TestSubscription_Closed(t *testing.T) {
	t.Parallel()
	b := bus.New()
	s := b.Subscribe("s", 1)
	s.Close()
	s.Close()
	b.Publish("s", 1)
	if len(s.C) != 0 {
		t.Error("a message arrived")
	}
}

func TestBus_Concurrent(t *testing.T) {
	t.Parallel()
	b := bus.New()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				s := b.Subscribe("s", 1)
				b.Publish("s", 1)
				if len(s.C) == 0 {
					t.Error("its own message did not arrive")
				}
				s.Close()
			}
		})
	}
	all.Wait()
}
