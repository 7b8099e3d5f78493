package contact

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/observe"
	"soniq/internal/telephony/call"
)

// Observers of contacts. Observe adds them; each observer method is called in the order of Observe. An error of one that runs in a
// transaction rolls the transaction back.

// SaveObserver is notified in the transaction that creates or changes a contact, unless the request turned the synchronisation with
// connected systems off. only names connections; nil means all.
type SaveObserver interface {
	ContactSaved(ctx context.Context, tx db.Querier, c Contact, only []string) error
}

// NoteObserver is notified in the transaction that adds a note. sync is true if the note is to be written to connected systems.
type NoteObserver interface {
	NoteAdded(ctx context.Context, tx db.Querier, org string, n call.Note, sync bool) error
}

// MergeObserver is notified in the transaction that merges a contact into another.
type MergeObserver interface {
	ContactMerged(ctx context.Context, tx db.Querier, org, from string, into Contact) error
}

// EraseObserver is notified before each DeleteObserver if a contact is erased and not only deleted.
type EraseObserver interface {
	ContactErased(ctx context.Context, tx db.Querier, org, id string) error
}

// DeleteObserver is notified in the transaction that deletes a contact.
type DeleteObserver interface {
	ContactDeleted(ctx context.Context, tx db.Querier, org, id string) error
}

// IdentificationObserver is notified if the contact of a call is found after the call's start.
type IdentificationObserver interface {
	CallIdentified(ctx context.Context, org, callID string, c event.Contact) error
}

// observers has the observers by interface.
type observers struct {
	saves           []SaveObserver
	notes           []NoteObserver
	merges          []MergeObserver
	erasures        []EraseObserver
	deletions       []DeleteObserver
	identifications []IdentificationObserver
}

// Observe adds an observer to the list of each observer interface it implements. It panics if there is none. Call it before
// the first request.
func (s *Service) Observe(o any) {
	l := &s.observers
	observe.Require("contact", o, observe.Add(&l.saves, o), observe.Add(&l.notes, o), observe.Add(&l.merges, o),
		observe.Add(&l.erasures, o), observe.Add(&l.deletions, o), observe.Add(&l.identifications, o))
}

// contactDeleted calls the observers of a deletion.
func (s *Service) contactDeleted(ctx context.Context, tx db.Querier, c Contact) error {
	return observe.Each(s.observers.deletions, func(o DeleteObserver) error { return o.ContactDeleted(ctx, tx, c.OrgID, c.ID) })
}
