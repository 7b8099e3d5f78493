package eventstream

import (
	"context"
	"encoding/json"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/visibility"
)

// shownCalls caches which calls the user of a stream sees. A call that is shown stays shown until forget, because each of its events needs
// the answer. One goroutine uses it.
type shownCalls struct {
	view  *visibility.View
	calls map[string]bool
}

// maxShownCalls limits the calls that are remembered.
const maxShownCalls = 10_000

// forget makes the next event read again what the user sees: the role or the queues of the user may have changed.
func (s *shownCalls) forget() { s.view, s.calls = nil, nil }

// shows reports whether the principal sees an event. Users see what concerns them before their part in the call is stored.
func (s *shownCalls) shows(ctx context.Context, q db.Querier, p access.Principal, e event.Event) (bool, error) {
	if p.UserID == "" || e.CallID == "" && e.Kind != popKind {
		return true, nil
	}
	if s.view == nil {
		v, err := visibility.Of(ctx, q, p.OrgID, p.UserID)
		if err != nil {
			return false, err
		}
		s.view, s.calls = &v, map[string]bool{}
	}
	call, user := e.CallID, ""
	if e.Kind == popKind {
		call, user = popSubject(e)
	}
	if s.view.Everything() || user == p.UserID || s.calls[call] {
		return true, nil
	}
	sees, err := s.view.Sees(ctx, q, call)
	if sees && len(s.calls) < maxShownCalls {
		s.calls[call] = true
	}
	return sees, err
}

var popKind = event.ScreenPop{}.Kind()

// popSubject returns the call and the user of a screen pop. Its event has no call, because it is not stored with one.
func popSubject(e event.Event) (call, user string) {
	var pop event.ScreenPop
	if json.Unmarshal([]byte(e.Data()), &pop) != nil {
		return "", ""
	}
	if pop.CallID != nil {
		call = *pop.CallID
	}
	if pop.UserID != nil {
		user = *pop.UserID
	}
	return call, user
}
