package event_test

import (
	"maps"
	"testing"

	"soniq/internal/platform/event"
)

func TestSubscribers_UntilLeave(t *testing.T) {
	t.Parallel()
	var o event.Outbox
	quality, held := event.CallQuality{}.Kind(), event.CallHeld{}.Kind()
	first := o.Subscribe("org_1", map[event.Kind]bool{quality: true, held: false})
	second := o.Subscribe("org_1", map[event.Kind]bool{quality: true})
	third := o.Subscribe("org_2", map[event.Kind]bool{held: true})
	check := func(k event.Kind, orgs ...string) {
		t.Helper()
		want := map[string]bool{}
		for _, org := range orgs {
			want[org] = true
		}
		if got := o.Subscribers(k); !maps.Equal(got, want) {
			t.Errorf("%s is followed by %v, want %v", k, got, orgs)
		}
	}
	check(quality, "org_1")
	check(held, "org_2")
	first()
	check(quality, "org_1")
	second()
	check(quality)
	third()
	check(held)
}
