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

// Connects agents, queues, flows, numbers and voicemail.

// wireRouting sets the dependencies of these services on each other.
func (p *Platform) wireRouting() {
	p.devices.OnRegistrationChange = p.agents.UserChanged
	p.agents.OnPresence = func(ctx context.Context, tx db.Querier, org string, users []string) error {
		db.OnCommit(tx, func() { p.bus.Publish(phonestate.PresenceChanged, phonestate.Users{Org: org, IDs: users}) })
		return p.queues.PresenceChanged(ctx, tx, org, users)
	}
	p.users.Presences = p.agents.Presences
	p.users.Queues, p.users.CheckDestination = p.queues, p.checkForward
	p.users.OnChange = append(p.users.OnChange, func(ctx context.Context, tx db.Querier, u user.User) error {
		return p.agents.PublishPresence(ctx, tx, u.OrgID, []string{u.ID})
	})
	p.users.OnRemove = append(p.users.OnRemove, func(ctx context.Context, tx db.Querier, r user.Removal) error {
		if err := p.queues.RemoveUser(ctx, tx, r.OrgID, r.UserID); err != nil {
			return err
		}
		return p.agents.RemoveUser(ctx, tx, r.OrgID, r.UserID)
	})
	p.queues.HasAudio, p.queues.CheckDestination, p.queues.IsReserved = p.hasAudio, p.checkDestination, trunk.ReservedExtension
	p.queues.FindReferences = append(p.queues.FindReferences, p.numbers.IDsOfQueue, p.flows.UsedBy)
	p.queues.MoveReferences = append(p.queues.MoveReferences, p.numbers.MoveQueue)
	p.queues.OnEnter = p.calls.EnterQueue
	p.queues.OnCallback = func(ctx context.Context, tx db.Querier, c queue.CallbackChange) error {
		return p.calls.WriteQueueCallback(ctx, tx, call.QueueCallback(c))
	}
	p.agents.OnReady = p.queues.EndWrapUp
	p.prompts.FindUses = append(p.prompts.FindUses, promptUses("queue", p.queues.PlayedBy), promptUses("flow", p.flows.UsedBy))
	p.flows.CheckDestination, p.flows.HasAudio, p.flows.OwnsNumber = p.checkDestination, p.hasAudio, p.ownsNumber
	p.flows.Numbers, p.flows.AssignNumbers = p.numbers.IDsOfFlows, p.numbers.AssignToFlow
	p.flows.FindReferences = append(p.flows.FindReferences, p.queues.OverflowingToFlow)
	p.numbers.Providers = map[string]number.ProviderAPI{number.ProviderSandbox: trunk.NewSandboxMarket(time.Now)}
	telnyx := p.guard.Client(trunk.TelnyxLimits)
	p.numbers.AccountProviders = map[string]number.ProviderType{"telnyx": {URL: trunk.TelnyxURL, Open: func(c number.Credentials) number.ProviderAPI { return trunk.NewTelnyx(telnyx, c) }}}
	p.numbers.Seal, p.numbers.Guard = p.seal, p.guard
	p.numbers.Jobs, p.numbers.JobQueue, p.numbers.CheckTarget = p.jobs, call.JobQueue, p.checkDestination
}

// endQueueEntries ends the queue entry and the offers of a call that has ended.
func (p *Platform) endQueueEntries(ctx context.Context, tx db.Querier, e call.Ended, r call.CDR) error {
	if e.Source == "callback" {
		return p.queues.CallbackEnded(ctx, tx, e.Org, e.ID, callbackResult(e), agentAnswered(e))
	}
	if r.Queue == nil {
		return nil
	}
	if err := p.queues.CallEnded(ctx, tx, e.Org, e.ID, e.Reason, e.Answered()); err != nil {
		return err
	}
	waited, err := p.queues.WaitedSeconds(ctx, tx, e.Org, e.ID)
	if err != nil {
		return err
	}
	return p.calls.SetQueueSeconds(ctx, tx, e.Org, e.ID, waited)
}

// callbackResult returns the result of a callback from the end of its call.
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

// agentAnswered reports whether the agent of a callback had answered.
func agentAnswered(e call.Ended) bool {
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
	_, ok, err = p.numbers.FindActive(ctx, org, e164)
	return ok, err
}

// promptUses converts a function that finds the users of an audio file.
func promptUses(kind string, find func(context.Context, db.Querier, string, string) ([]string, error)) func(context.Context, db.Querier, string, string) ([]prompt.Use, error) {
	return func(ctx context.Context, q db.Querier, org, id string) ([]prompt.Use, error) {
		ids, err := find(ctx, q, org, id)
		uses := make([]prompt.Use, len(ids))
		for i, by := range ids {
			uses[i] = prompt.Use{Type: kind, ID: by}
		}
		return uses, err
	}
}
