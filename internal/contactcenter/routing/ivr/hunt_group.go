package ivr

import (
	"context"
	"slices"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/pbx"
)

// huntGroup rings a group: all members at once, or one after the other in the order of its strategy.
func (w *flowRun) huntGroup(ctx context.Context, node string, x *flow.HuntGroup) (outcome string) {
	w.seekPerson()
	members, busy, err := w.members(ctx, x)
	if err != nil {
		w.problem = "the members could not be read"
		w.s.cfg.Log.Error("members of group not read", "call", w.v.Info().CallID, "flow", w.program.FlowID, "node", node, "err", err)
		return routing.NoAnswer
	}
	ring := time.Duration(x.RingTimeout) * time.Second
	if x.Strategy == "simultaneous" {
		return w.ringAll(ctx, members, busy, ring)
	}
	if x.Strategy == "round_robin" {
		members = w.rotateMembers(ctx, node, members)
	}
	return w.ringSequentially(ctx, members, busy, ring)
}

// rotateMembers moves the start of the list by one on each call of the node, across all nodes of the cluster. If the
// counter cannot be stored, the first member is first.
func (w *flowRun) rotateMembers(ctx context.Context, node string, members []string) []string {
	if len(members) == 0 {
		return nil
	}
	var before int64
	err := w.s.cfg.DB.Tx(ctx, func(tx db.Querier) (err error) {
		before, err = w.s.cfg.Flows.NextTurn(ctx, tx, w.org, w.program.FlowID, node)
		return err
	})
	if err != nil {
		w.s.cfg.Log.Error("turn of hunt group not stored", "call", w.v.Info().CallID, "flow", w.program.FlowID, "node", node, "err", err)
	}
	turn := int(before % int64(len(members)))
	return slices.Concat(members[turn:], members[:turn])
}

// members returns the destinations to ring of a group, and the number of users with do-not-disturb.
func (w *flowRun) members(ctx context.Context, x *flow.HuntGroup) (all []string, busy int, err error) {
	q := w.s.cfg.DB.Read(ctx)
	var people []string
	for _, m := range x.Members {
		if m.UserID == "" {
			all = append(all, m.Number)
			continue
		}
		u, err := w.s.cfg.Users.Get(ctx, q, w.org, m.UserID)
		switch {
		case db.IsNone(err) || err == nil && u.Status == user.Suspended:
		case err != nil:
			return nil, 0, err
		case u.DND.On(w.s.cfg.Clock.Now()):
			busy++
		default:
			people, all = append(people, u.ID), append(all, "user:"+u.ID)
		}
	}
	if x.Strategy == "longest_idle" {
		err = w.sortByIdle(ctx, people, all)
	}
	return all, busy, err
}

// sortByIdle sorts the destinations by the end of each user's last call, longest ago first. Numbers come last.
func (w *flowRun) sortByIdle(ctx context.Context, people, all []string) error {
	states, err := w.s.cfg.Agents.States(ctx, w.s.cfg.DB.Read(ctx), w.org, people)
	if err != nil {
		return err
	}
	since := func(to string) time.Time {
		for id, x := range states {
			if to == "user:"+id {
				return x.IdleSince.Time
			}
		}
		return w.s.cfg.Clock.Now()
	}
	slices.SortStableFunc(all, func(a, b string) int { return since(a).Compare(since(b)) })
	return nil
}

// ringAll rings all members at once.
func (w *flowRun) ringAll(ctx context.Context, members []string, busy int, ring time.Duration) (outcome string) {
	results := make(chan pbx.Result)
	rung := 0
	for _, to := range members {
		a, err := w.v.Ring(ctx, to, pbx.RingOptions{Timeout: ring})
		if err != nil {
			if routing.OutcomeOfError(err) == routing.CallerGone {
				break
			}
			continue
		}
		rung++
		go func() { results <- routing.AwaitAttempt(ctx, a) }()
	}
	engaged := busy
	answered, gone := false, ctx.Err() != nil
	for range rung {
		r := <-results
		switch routing.AttemptOutcome(r) {
		case routing.Answered:
			answered = true
		case routing.Busy:
			engaged++
		case routing.CallerGone:
			gone = true
		}
	}
	return groupOutcome(answered, gone, engaged, len(members)+busy)
}

func groupOutcome(answered, gone bool, engaged, all int) string {
	switch {
	case answered:
		return routing.Answered
	case gone:
		return routing.CallerGone
	case engaged > 0 && engaged == all:
		return routing.Busy
	}
	return routing.NoAnswer
}

// ringSequentially rings one member after the other.
func (w *flowRun) ringSequentially(ctx context.Context, members []string, busy int, ring time.Duration) (outcome string) {
	engaged := busy
	for _, to := range members {
		a, err := w.v.Ring(ctx, to, pbx.RingOptions{Timeout: ring})
		if err != nil {
			if routing.OutcomeOfError(err) == routing.CallerGone {
				return routing.CallerGone
			}
			continue
		}
		switch outcome := routing.AttemptOutcome(routing.AwaitAttempt(ctx, a)); outcome {
		case routing.Answered, routing.CallerGone:
			return outcome
		case routing.Busy:
			engaged++
		}
	}
	return groupOutcome(false, ctx.Err() != nil, engaged, len(members)+busy)
}
