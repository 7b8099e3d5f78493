package server

import (
	"context"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/phonestate"
	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/call/callback"
	"soniq/internal/telephony/trunk"
)

// Connects queues, flows and agents with the packages that are built after them.

// contactCenterDependencies implements the dependencies of packages queue and flow, and observes queues and agents. It reads the
// services of the platform at each call, because some are built later.
type contactCenterDependencies struct{ p *Platform }

// HasAudio implements queue.Prompts and flow.References.
func (d contactCenterDependencies) HasAudio(ctx context.Context, org, id string) (bool, error) {
	return d.p.hasAudio(ctx, org, id)
}

// CheckDestination implements queue.Destinations and flow.References.
func (d contactCenterDependencies) CheckDestination(ctx context.Context, org, to string) (string, error) {
	return d.p.checkDestination(ctx, org, to)
}

// IsReserved implements queue.Destinations.
func (d contactCenterDependencies) IsReserved(country, extension string) bool {
	return trunk.ReservedExtension(country, extension)
}

// OwnsNumber implements flow.References.
func (d contactCenterDependencies) OwnsNumber(ctx context.Context, org, text string) (bool, error) {
	return d.p.ownsNumber(ctx, org, text)
}

// CheckSpoken implements flow.References.
func (d contactCenterDependencies) CheckSpoken(ctx context.Context, org string, s flow.Spoken) (string, error) {
	language, err := d.languageOr(ctx, org, s.Language)
	if err != nil {
		return "", err
	}
	return reasonOf(d.p.engines.speech.CheckText(s.Text, s.Voice, language)), nil
}

// CheckHeard implements flow.References.
func (d contactCenterDependencies) CheckHeard(ctx context.Context, org, language string, agent bool) (string, error) {
	language, err := d.languageOr(ctx, org, language)
	switch {
	case err != nil:
		return "", err
	case agent && d.p.voiceAgents != nil:
		return reasonOf(d.p.voiceAgents.CheckHeard(language)), nil
	case !agent && d.p.engines.menu != nil:
		return reasonOf(d.p.engines.menu.CheckLanguage(language)), nil
	}
	return "", nil
}

// languageOr returns a language, or that of the organisation if it is empty.
func (d contactCenterDependencies) languageOr(ctx context.Context, org, language string) (string, error) {
	if language != "" {
		return language, nil
	}
	o, err := d.p.orgs.Get(ctx, org)
	return o.Language, err
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// UsedBy implements queue.Flows: it has the users who forward to the queue and the numbers that fall back to it, too.
func (d contactCenterDependencies) UsedBy(ctx context.Context, q db.Querier, org, id string) ([]string, error) {
	ids, err := d.p.flows.UsedBy(ctx, q, org, id)
	if err != nil {
		return nil, err
	}
	forwards, err := d.p.forwardingTo(ctx, q, org, "queue:"+id, "voicemail:"+id)
	return append(ids, forwards...), err
}

// ForwardingToFlow implements flow.Forwards.
func (d contactCenterDependencies) ForwardingToFlow(ctx context.Context, q db.Querier, org, flow string) ([]string, error) {
	return d.p.forwardingTo(ctx, q, org, "flow:"+flow, "voicemail:"+flow)
}

// HasPendingRelease implements queue.PendingReleases.
func (d contactCenterDependencies) HasPendingRelease(user string) bool {
	return d.p.switcher != nil && d.p.switcher.HasPendingRelease(user)
}

// QueueEntered implements queue.EnterObserver: it marks the call.
func (d contactCenterDependencies) QueueEntered(ctx context.Context, tx db.Querier, org, callID, queueID string) error {
	return d.p.calls.EnterQueue(ctx, tx, org, callID, queueID)
}

// CallbackChanged implements queue.CallbackObserver: it stores the callback.
func (d contactCenterDependencies) CallbackChanged(ctx context.Context, tx db.Querier, c queue.CallbackChange) error {
	return d.p.callbacks.WriteQueueCallback(ctx, tx, callback.QueueCallback(c))
}

// PresenceChanged implements agent.PresenceObserver: it publishes the presence to phones.
func (d contactCenterDependencies) PresenceChanged(_ context.Context, tx db.Querier, org string, users []string) error {
	db.OnCommit(tx, func() { d.p.bus.Publish(phonestate.PresenceChanged, phonestate.Users{Org: org, IDs: users}) })
	return nil
}
