package agent

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/observe"
)

// A response may show a presence that is not published yet. If the presence changes back before it is published, there is no change to
// publish, and the client would show it until the next event. So the presence is published again for such users.

// NoteShown records the users among states whose presence is not published yet, because a client is shown it. It returns at once.
func (s *Service) NoteShown(org string, states ...*State) {
	for _, x := range states {
		if x != nil && x.presenceChanged(x.Presence) {
			s.changed.add(&s.changed.shown, orgKey{org, x.UserID})
		}
	}
}

// republish publishes again the presences of users that have not changed since they were published last. The others are published as
// changes.
func (s *Service) republish(ctx context.Context, shown []orgKey) error {
	for org, users := range idsByOrg(shown) {
		same, err := s.unchanged(ctx, s.cfg.DB.Read(ctx), org, users)
		if err == nil && len(same) > 0 {
			err = s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error {
				return s.republishIn(ctx, tx, org, users)
			})
		}
		if err != nil {
			return fmt.Errorf("publish presences again: %w", err)
		}
	}
	return nil
}

func (s *Service) republishIn(ctx context.Context, tx db.Querier, org string, users []string) error {
	same, err := s.unchanged(ctx, tx, org, users)
	if err != nil || len(same) == 0 {
		return err
	}
	ids := make([]string, len(same))
	for i, x := range same {
		if err := s.publishEvent(ctx, tx, org, x); err != nil {
			return err
		}
		ids[i] = x.UserID
	}
	return observe.Each(s.observers.presence, func(o PresenceObserver) error { return o.PresenceChanged(ctx, tx, org, ids) })
}

// unchanged returns the states of those users whose presence is the published one.
func (s *Service) unchanged(ctx context.Context, q db.Querier, org string, users []string) (same []*State, err error) {
	all, err := s.States(ctx, q, org, users)
	for _, x := range all {
		if !x.presenceChanged(x.Presence) {
			same = append(same, x)
		}
	}
	return same, err
}

// publishEvent publishes the presence of a user as an event.
func (s *Service) publishEvent(ctx context.Context, tx db.Querier, org string, x *State) error {
	p := x.Presence
	return s.cfg.Outbox.Publish(ctx, tx, org, event.AgentPresence{AgentID: x.UserID, Status: p.Status, Reason: p.Reason,
		CallID: db.Null(x.CallID).Ptr(), Since: p.Since, Until: p.Until.Ptr()})
}
