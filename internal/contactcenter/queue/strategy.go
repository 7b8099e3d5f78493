package queue

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"soniq/internal/platform/db"
)

// Candidates returns the members to offer a caller to now, in the order of the queue's strategy. They are
// signed in, not paused and available, and have the skills that queue and caller need. With ring_all all of them ring
// at once.
func (s *Service) Candidates(ctx context.Context, q db.Querier, org string, e Entry) ([]Member, error) {
	k, err := get(ctx, q, org, e.QueueID)
	if err != nil {
		return nil, err
	}
	found, err := members(ctx, q, org, []string{k.ID})
	if err != nil {
		return nil, err
	}
	if err := s.withStats(ctx, q, org, found); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(m Member) bool { return !m.canTakeCall() || !m.hasSkills(k.RequiredSkills, e.Skills) })
	k.sortMembers(found, e)
	return found, nil
}

// sortMembers sorts members by the queue's strategy.
func (k Queue) sortMembers(found []Member, e Entry) {
	if k.Strategy == "random" {
		rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
		return
	}
	slices.SortStableFunc(found, func(a, b Member) int {
		idle := a.state.IdleSince.Compare(b.state.IdleSince.Time)
		switch k.Strategy {
		case "round_robin":
			return cmp.Or(a.lastOffered.Compare(b.lastOffered.Time), idle)
		case "fewest_calls":
			return cmp.Or(a.AnsweredToday-b.AnsweredToday, idle)
		case "priority":
			return cmp.Or(a.Priority-b.Priority, idle)
		case "skills":
			return cmp.Or(b.skillScore(k, e)-a.skillScore(k, e), a.Priority-b.Priority, idle)
		}
		return idle
	})
}

// skillScore returns how well a member's skills fit a caller: the sum of the levels of all required skills.
func (m Member) skillScore(k Queue, e Entry) (sum int) {
	for name := range k.RequiredSkills {
		sum += m.skillLevel(name)
	}
	for name := range e.Skills {
		if _, counted := k.RequiredSkills[name]; !counted {
			sum += m.skillLevel(name)
		}
	}
	return sum
}

// staffed returns how many members are signed in, not paused, and neither away nor offline.
func (s *Service) staffed(ctx context.Context, q db.Querier, k Queue) (int, error) {
	x, err := s.currentStats(ctx, q, k)
	return x.staffedAgents(), err
}

// Staffed reports whether an agent could answer a queue's callers, now or after the current call.
func (s *Service) Staffed(ctx context.Context, q db.Querier, org, queue string) (bool, error) {
	k, err := get(ctx, q, org, queue)
	if err != nil {
		return false, err
	}
	n, err := s.staffed(ctx, q, k)
	return n > 0, err
}
