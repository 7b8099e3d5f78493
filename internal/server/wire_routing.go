package server

import (
	"context"
	"slices"
	"time"

	"soniq/internal/contactcenter/phonestate"
	"soniq/internal/contactcenter/queue"
	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/prompt"
	"soniq/internal/telephony/trunk"
)

// This file joins agents, queues, flows, numbers and voicemail.

// joinRouting hands over what they need from others.
func (p *Platform) joinRouting() {
	p.devices.OnMove = p.agents.Touch
	p.calls.OnLegs = func(org, callID string) {
		p.agents.TouchCall(org, callID)
		p.attendant.Touch(org)
	}
	p.agents.OnPresence = func(ctx context.Context, tx db.Querier, org string, users []string) error {
		db.OnCommit(tx, func() { p.bus.Publish(phonestate.PresenceChanged, phonestate.Users{Org: org, IDs: users}) })
		return p.queues.PresenceChanged(ctx, tx, org, users)
	}
	p.users.Presences = p.agents.Presences
	p.users.Queues, p.users.Reach = p.queues, p.reachForward
	p.users.OnChange = append(p.users.OnChange, func(ctx context.Context, tx db.Querier, u user.User) error {
		return p.agents.SettleIn(ctx, tx, u.OrgID, []string{u.ID})
	})
	p.users.OnRemove = append(p.users.OnRemove, func(ctx context.Context, tx db.Querier, r user.Removal) error {
		if err := p.queues.RemoveUser(ctx, tx, r.OrgID, r.UserID); err != nil {
			return err
		}
		return p.agents.RemoveUser(ctx, tx, r.OrgID, r.UserID)
	})
	p.queues.HasAudio, p.queues.Reach, p.queues.Reserved = p.hasAudio, p.reach, trunk.ReservedExtension
	p.queues.Uses = append(p.queues.Uses, p.numbers.OfQueue, p.flows.UsedBy)
	p.queues.Moves = append(p.queues.Moves, p.numbers.MoveQueue)
	p.queues.OnEnter = p.calls.EnterQueue
	p.queues.OnCallback = func(ctx context.Context, tx db.Querier, c queue.CallbackChange) error {
		return p.calls.KeepQueueCallback(ctx, tx, call.QueueCallback(c))
	}
	p.calls.OnCallbackCanceled = p.queues.CancelCallback
	p.agents.OnReady = p.queues.Ready
	p.calls.QueueNames = p.queues.Names
	p.calls.Waits = func(ctx context.Context, q db.Querier, org string, calls []string) (map[string]call.QueueWait, error) {
		found, err := p.queues.Waits(ctx, q, org, calls)
		all := make(map[string]call.QueueWait, len(found))
		for id, w := range found {
			all[id] = call.QueueWait(w)
		}
		return all, err
	}
	p.calls.Offered = func(ctx context.Context, q db.Querier, org string, calls []string) (map[string][]call.OfferedAgent, error) {
		found, err := p.queues.OffersOf(ctx, q, org, calls)
		all := make(map[string][]call.OfferedAgent, len(found))
		for id, offers := range found {
			for _, o := range offers {
				all[id] = append(all[id], call.OfferedAgent(o))
			}
		}
		return all, err
	}
	p.audio.Uses = append(p.audio.Uses, played("queue", p.queues.PlayedBy), played("flow", p.flows.UsedBy))
	p.flows.Reach, p.flows.HasAudio, p.flows.OwnsNumber = p.reach, p.hasAudio, p.ownsNumber
	p.flows.Numbers, p.flows.Assign = p.numbers.OfFlows, p.numbers.Assign
	p.flows.Uses = append(p.flows.Uses, p.queues.Overflowing)
	p.numbers.Markets = map[string]number.Market{number.Sandbox: trunk.NewSandboxMarket(time.Now)}
	telnyx := p.guard.Client(trunk.TelnyxLimits)
	p.numbers.Sellers = map[string]number.Seller{"telnyx": {URL: trunk.TelnyxURL, Open: func(c number.Credentials) number.Market { return trunk.NewTelnyx(telnyx, c) }}}
	p.numbers.Seal, p.numbers.Guard = p.seal, p.guard
	p.numbers.Jobs, p.numbers.JobQueue, p.numbers.Reach = p.jobs, call.Queue, p.reach
}

// leftQueues ends what a call that is over was doing in queues.
func (p *Platform) leftQueues(ctx context.Context, tx db.Querier, e call.Ended, r call.CDR) error {
	if e.Source == "callback" {
		return p.queues.CallbackEnded(ctx, tx, e.Org, e.ID, callbackResult(e), pickedUp(e))
	}
	if r.Queue == nil {
		return nil
	}
	if err := p.queues.CallEnded(ctx, tx, e.Org, e.ID, e.Reason, e.Answered()); err != nil {
		return err
	}
	waited, err := p.queues.Waited(ctx, tx, e.Org, e.ID)
	if err != nil {
		return err
	}
	return p.calls.Waited(ctx, tx, e.Org, e.ID, waited)
}

// callbackResult is how a call ended that a callback placed.
func callbackResult(e call.Ended) string {
	switch {
	case e.Answered():
		return "completed"
	case e.Reason == "no_answer" || e.Reason == "timeout":
		return "no_answer"
	case e.Reason == "busy" || e.Reason == "rejected":
		return e.Reason
	case e.Reason == "api" || e.Reason == "canceled":
		return "canceled"
	}
	return "failed"
}

// pickedUp reports whether the agent of a callback was there.
func pickedUp(e call.Ended) bool {
	return slices.ContainsFunc(e.Legs, func(l call.LegState) bool { return l.Role == "caller" && !l.AnsweredAt.IsZero() })
}

// ownsNumber reports whether an organisation can send from a number.
func (p *Platform) ownsNumber(ctx context.Context, org, text string) (bool, error) {
	o, err := p.orgs.Get(ctx, org)
	if err != nil {
		return false, err
	}
	e164, ok := number.Parse(text, o.Country)
	if !ok {
		return false, nil
	}
	_, ok, err = p.numbers.OfOrg(ctx, org, e164)
	return ok, err
}

// played makes what plays a sound known to the sounds.
func played(kind string, find func(context.Context, db.Querier, string, string) ([]string, error)) func(context.Context, db.Querier, string, string) ([]prompt.Use, error) {
	return func(ctx context.Context, q db.Querier, org, id string) ([]prompt.Use, error) {
		ids, err := find(ctx, q, org, id)
		uses := make([]prompt.Use, len(ids))
		for i, by := range ids {
			uses[i] = prompt.Use{Type: kind, ID: by}
		}
		return uses, err
	}
}
