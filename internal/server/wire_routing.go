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
func (h *Platform) joinRouting() {
	h.devices.OnMove = h.agents.Touch
	h.calls.OnLegs = func(org, callID string) {
		h.agents.TouchCall(org, callID)
		h.attendant.Touch(org)
	}
	h.agents.OnPresence = func(ctx context.Context, tx db.Querier, org string, users []string) error {
		db.OnCommit(tx, func() { h.bus.Publish(phonestate.PresenceChanged, phonestate.Users{Org: org, IDs: users}) })
		return h.queues.PresenceChanged(ctx, tx, org, users)
	}
	h.users.Presences = h.agents.Presences
	h.users.Queues, h.users.Reach = h.queues, h.reachForward
	h.users.OnChange = append(h.users.OnChange, func(ctx context.Context, tx db.Querier, u user.User) error {
		return h.agents.SettleIn(ctx, tx, u.OrgID, []string{u.ID})
	})
	h.users.OnRemove = append(h.users.OnRemove, func(ctx context.Context, tx db.Querier, r user.Removal) error {
		if err := h.queues.RemoveUser(ctx, tx, r.OrgID, r.UserID); err != nil {
			return err
		}
		return h.agents.RemoveUser(ctx, tx, r.OrgID, r.UserID)
	})
	h.queues.HasAudio, h.queues.Reach, h.queues.Reserved = h.hasAudio, h.reach, trunk.ReservedExtension
	h.queues.Uses = append(h.queues.Uses, h.numbers.OfQueue, h.flows.UsedBy)
	h.queues.Moves = append(h.queues.Moves, h.numbers.MoveQueue)
	h.queues.OnEnter = h.calls.EnterQueue
	h.queues.OnCallback = func(ctx context.Context, tx db.Querier, c queue.CallbackChange) error {
		return h.calls.KeepQueueCallback(ctx, tx, call.QueueCallback(c))
	}
	h.calls.OnCallbackCanceled = h.queues.CancelCallback
	h.agents.OnReady = h.queues.Ready
	h.calls.QueueNames = h.queues.Names
	h.calls.Waits = func(ctx context.Context, q db.Querier, org string, calls []string) (map[string]call.QueueWait, error) {
		found, err := h.queues.Waits(ctx, q, org, calls)
		all := make(map[string]call.QueueWait, len(found))
		for id, w := range found {
			all[id] = call.QueueWait(w)
		}
		return all, err
	}
	h.calls.Offered = func(ctx context.Context, q db.Querier, org string, calls []string) (map[string][]call.OfferedAgent, error) {
		found, err := h.queues.OffersOf(ctx, q, org, calls)
		all := make(map[string][]call.OfferedAgent, len(found))
		for id, offers := range found {
			for _, o := range offers {
				all[id] = append(all[id], call.OfferedAgent(o))
			}
		}
		return all, err
	}
	h.audio.Uses = append(h.audio.Uses, played("queue", h.queues.PlayedBy), played("flow", h.flows.UsedBy))
	h.flows.Reach, h.flows.HasAudio, h.flows.OwnsNumber = h.reach, h.hasAudio, h.ownsNumber
	h.flows.Numbers, h.flows.Assign = h.numbers.OfFlows, h.numbers.Assign
	h.flows.Uses = append(h.flows.Uses, h.queues.Overflowing)
	h.numbers.Markets = map[string]number.Market{number.Sandbox: trunk.NewSandboxMarket(time.Now)}
	telnyx := h.guard.Client(trunk.TelnyxLimits)
	h.numbers.Sellers = map[string]number.Seller{"telnyx": {URL: trunk.TelnyxURL, Open: func(c number.Credentials) number.Market { return trunk.NewTelnyx(telnyx, c) }}}
	h.numbers.Seal, h.numbers.Guard = h.seal, h.guard
	h.numbers.Jobs, h.numbers.JobQueue, h.numbers.Reach = h.jobs, call.Queue, h.reach
}

// leftQueues ends what a call that is over was doing in queues.
func (h *Platform) leftQueues(ctx context.Context, tx db.Querier, e call.Ended, r call.CDR) error {
	if e.Source == "callback" {
		return h.queues.CallbackEnded(ctx, tx, e.Org, e.ID, callbackResult(e), pickedUp(e))
	}
	if r.Queue == nil {
		return nil
	}
	if err := h.queues.CallEnded(ctx, tx, e.Org, e.ID, e.Reason, e.Answered()); err != nil {
		return err
	}
	waited, err := h.queues.Waited(ctx, tx, e.Org, e.ID)
	if err != nil {
		return err
	}
	return h.calls.Waited(ctx, tx, e.Org, e.ID, waited)
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
func (h *Platform) ownsNumber(ctx context.Context, org, text string) (bool, error) {
	o, err := h.orgs.Get(ctx, org)
	if err != nil {
		return false, err
	}
	e164, ok := number.Parse(text, o.Country)
	if !ok {
		return false, nil
	}
	_, ok, err = h.numbers.OfOrg(ctx, org, e164)
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
