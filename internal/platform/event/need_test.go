package event_test

import (
	"testing"

	"soniq/internal/platform/access"
	"soniq/internal/platform/event"
)

func TestNeed_EveryKind(t *testing.T) {
	t.Parallel()
	all := event.Kinds()
	for _, p := range event.StreamPayloads {
		all = append(all, p.Kind())
	}
	for _, k := range all {
		if len(k.Need().Alternatives()) == 0 {
			t.Errorf("%s does not say which scope reads it", k)
		}
	}
	if got := event.Readable(all, access.All()); len(got) != len(all) {
		t.Errorf("every scope reads %d of %d kinds", len(got), len(all))
	}
	if got := event.Readable(event.Kinds(), []access.Scope{access.SMSRead}); len(got) != 2 {
		t.Errorf("sms:read reads %v", got)
	}
}
