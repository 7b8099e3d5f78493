package server

import (
	"context"

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

// UsedBy implements queue.Flows.
func (d contactCenterDependencies) UsedBy(ctx context.Context, q db.Querier, org, id string) ([]string, error) {
	return d.p.flows.UsedBy(ctx, q, org, id)
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
