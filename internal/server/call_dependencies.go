package server

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/call"
)

// Connects package call with the packages that are built after it: its dependencies, and the observer of its changes.

// callDependencies implements the dependencies of package call. It reads the services of the platform at each call,
// because they are built later.
type callDependencies struct{ p *Platform }

// ParseDestination implements call.Destinations.
func (d callDependencies) ParseDestination(ctx context.Context, org, to string) (string, error) {
	return d.p.parseDestination(ctx, org, to)
}

// ParseNumber implements call.Destinations.
func (d callDependencies) ParseNumber(ctx context.Context, org, text string) (string, bool, error) {
	return d.p.parseNumber(ctx, org, text)
}

// CheckTarget implements call.Destinations.
func (d callDependencies) CheckTarget(ctx context.Context, org, to string) (string, error) {
	return d.p.checkDestination(ctx, org, to)
}

// HasAudio implements call.Prompts.
func (d callDependencies) HasAudio(ctx context.Context, org, id string) (bool, error) {
	return d.p.hasAudio(ctx, org, id)
}

// WebhookDeliveries implements call.WebhookDeliveries.
func (d callDependencies) WebhookDeliveries(ctx context.Context, org, callID string) ([]call.TimelineEntry, error) {
	return d.p.webhookDeliveries(ctx, org, callID)
}

// Summary implements call.Transcripts.
func (d callDependencies) Summary(ctx context.Context, org, id string) (any, error) {
	return nilIfNotFound(d.p.transcripts.SummaryOf(ctx, org, id))
}

// Transcript implements call.Transcripts.
func (d callDependencies) Transcript(ctx context.Context, org, id string) (any, error) {
	return nilIfNotFound(d.p.transcripts.Of(ctx, org, id))
}

// LookupContact implements call.Contacts.
func (d callDependencies) LookupContact(ctx context.Context, org, number string) *event.Contact {
	return d.p.contacts.LookupLocal(ctx, org, number)
}

// NoteSyncs implements call.Contacts.
func (d callDependencies) NoteSyncs(ctx context.Context, q db.Querier, org string, notes []string) (map[string][]call.NoteSync, error) {
	return d.p.crm.NoteSyncs(ctx, q, org, notes)
}

// QueueWaits implements call.Queues.
func (d callDependencies) QueueWaits(ctx context.Context, q db.Querier, org string, calls []string) (map[string]call.QueueWait, error) {
	found, err := d.p.queues.CallWaits(ctx, q, org, calls)
	all := make(map[string]call.QueueWait, len(found))
	for id, w := range found {
		all[id] = call.QueueWait(w)
	}
	return all, err
}

// OfferedAgents implements call.Queues.
func (d callDependencies) OfferedAgents(ctx context.Context, q db.Querier, org string, calls []string) (map[string][]call.OfferedAgent,
	error) {
	found, err := d.p.queues.OffersOfCalls(ctx, q, org, calls)
	all := make(map[string][]call.OfferedAgent, len(found))
	for id, offers := range found {
		for _, o := range offers {
			all[id] = append(all[id], call.OfferedAgent(o))
		}
	}
	return all, err
}

// QueueNames implements call.Queues.
func (d callDependencies) QueueNames(ctx context.Context, q db.Querier, org string, ids []string) (map[string]string, error) {
	return d.p.queues.Names(ctx, q, org, ids)
}

// callObserver passes changes of calls on to the other packages.
type callObserver struct{ p *Platform }

// LegsChanged publishes presence, and lets queues look for free agents.
func (o callObserver) LegsChanged(org, callID string, users []string) {
	o.p.agents.CallChanged(org, callID, users)
	o.p.acd.WakeDispatcher(org)
}

// CallAnswered ends the wait of a callback whose customer has answered.
func (o callObserver) CallAnswered(ctx context.Context, tx db.Querier, org, callID string) error {
	return o.p.acd.CallbackConnected(ctx, tx, org, callID)
}

// CallEnded updates contacts, connected CRM systems, analytics and queues. A call without a recording is transcribed as empty.
func (o callObserver) CallEnded(ctx context.Context, tx db.Querier, e call.Ended, r call.CDR) error {
	if err := o.p.contactLastSpoken(ctx, tx, e, r); err != nil {
		return err
	}
	db.OnCommit(tx, func() { o.p.analytics.CallEnded(e.Org, e.StartedAt) })
	if err := o.p.endQueueEntries(ctx, tx, e, r); err != nil || e.Recording != "" {
		return err
	}
	return o.p.transcripts.OnUnrecordedCall(ctx, tx, e.Org, r)
}

// CallEnriched writes a call to the connected CRM systems again.
func (o callObserver) CallEnriched(ctx context.Context, tx db.Querier, org, callID string) error {
	return o.p.crm.RequeueCall(ctx, tx, org, callID)
}

// DispositionChanged writes an ended call to the connected CRM systems again.
func (o callObserver) DispositionChanged(ctx context.Context, tx db.Querier, org, callID, _ string, ended bool) error {
	if !ended {
		return nil
	}
	return o.p.crm.RequeueCall(ctx, tx, org, callID)
}

// RecordingsReady enqueues the transcription.
func (o callObserver) RecordingsReady(ctx context.Context, tx db.Querier, org, callID string, ok bool) error {
	return o.p.transcripts.OnRecordingsReady(ctx, tx, org, callID, ok)
}

// RecordingDeleted removes the link to the recording from the memory.
func (o callObserver) RecordingDeleted(ctx context.Context, tx db.Querier, org, callID, recordingID string) error {
	return o.p.memory.UnlinkRecording(ctx, tx, org, callID, recordingID)
}

// NoteWritten adds a note to the memory, and writes it to connected CRM systems if that is asked for.
func (o callObserver) NoteWritten(ctx context.Context, tx db.Querier, org string, n call.Note, phone string, sync bool) error {
	err := o.p.indexNote(ctx, tx, org, n, phone)
	if err != nil || !sync {
		return err
	}
	return o.p.crm.QueueNote(ctx, tx, org, n)
}

// NoteDeleted removes a note from the memory.
func (o callObserver) NoteDeleted(ctx context.Context, tx db.Querier, org, noteID string) error {
	return o.p.memory.DeleteText(ctx, tx, org, noteID)
}

// CallbackCanceled removes the queue entry of a callback.
func (o callObserver) CallbackCanceled(ctx context.Context, tx db.Querier, org, origin string) error {
	return o.p.queues.CancelCallback(ctx, tx, org, origin)
}
