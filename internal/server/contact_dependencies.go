package server

import (
	"context"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/sandbox/sandbox"
	"soniq/internal/telephony/call"
)

// Connects package contact with the packages that are built after it: its dependencies, and the observer of its changes.

// contactDependencies implements the dependencies of package contact. It reads the services of the platform at each call,
// because they are built later.
type contactDependencies struct{ p *Platform }

// Sources returns the connected systems of an organisation. A sandbox has two more, which know the test numbers.
func (d contactDependencies) Sources(ctx context.Context, org string) ([]contact.Source, error) {
	all, err := d.p.crm.Connected(ctx, org)
	if err != nil {
		return nil, err
	}
	o, err := d.p.orgs.Get(ctx, org)
	if err != nil || !o.Sandbox() {
		return all, err
	}
	return append(all[:len(all):len(all)], sandbox.TestConnections()...), nil
}

// Refs implements contact.Systems.
func (d contactDependencies) Refs(ctx context.Context, q db.Querier, org string, contacts []string) (map[string][]contact.Ref, error) {
	return d.p.crm.Refs(ctx, q, org, contacts)
}

// CheckContactTargets implements contact.Systems.
func (d contactDependencies) CheckContactTargets(ctx context.Context, org string, connections []string) ([]op.Violation, error) {
	return d.p.crm.CheckContactTargets(ctx, org, connections)
}

// NoteSyncs implements contact.Systems.
func (d contactDependencies) NoteSyncs(ctx context.Context, q db.Querier, org string, notes []string) (map[string][]call.NoteSync, error) {
	return d.p.crm.NoteSyncs(ctx, q, org, notes)
}

// CallNumber returns the external number of a call.
func (d contactDependencies) CallNumber(ctx context.Context, org, id string) (string, error) {
	c, err := d.p.calls.Find(ctx, org, id)
	if err != nil {
		return "", err
	}
	if number := c.ExternalNumber(); number != "" {
		return number, nil
	}
	return c.FromNumber, nil
}

// CallQueue returns the queue in which a call is, or was last. Before the call enters one, it is the queue to which
// its number is assigned.
func (d contactDependencies) CallQueue(ctx context.Context, org, id string) (*call.Named, error) {
	c, err := d.p.calls.Origin(ctx, org, id)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	if c.QueueID != "" {
		return d.p.namedQueue(ctx, org, c.QueueID)
	}
	if c.Direction != call.Inbound || c.NumberID == "" {
		return nil, nil
	}
	n, err := d.p.numbers.Get(ctx, d.p.db.Read(ctx), org, c.NumberID)
	if err != nil || n.AssignedTo.Type != "queue" || n.AssignedTo.ID == nil {
		return nil, ignoreNotFound(err)
	}
	return d.p.namedQueue(ctx, org, *n.AssignedTo.ID)
}

// namedQueue returns a queue by id, or nil if it does not exist any more.
func (p *Platform) namedQueue(ctx context.Context, org, id string) (*call.Named, error) {
	q, err := p.queues.Get(ctx, p.db.Read(ctx), org, id)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return &call.Named{ID: q.ID, Name: q.Name}, nil
}

// ignoreNotFound returns nil if the error means that there is no such row.
func ignoreNotFound(err error) error {
	if db.IsNone(err) {
		return nil
	}
	return err
}

// CallHistory returns the history of a number from calls and memory.
func (d contactDependencies) CallHistory(ctx context.Context, org, number string, memory bool) (contact.CallHistory, error) {
	var history contact.CallHistory
	total, last, err := d.p.calls.PriorCalls(ctx, org, number, "")
	if err != nil {
		return history, err
	}
	if history.CallsTotal = total; last != nil {
		history.LastCall = &contact.LastCall{ID: last.ID, At: last.StartedAt, Agent: last.Agent()}
	}
	if !memory {
		return history, nil
	}
	if history.LastCall != nil {
		history.LastCall.AISummary = last.AISummary
	}
	m, err := d.p.memory.Caller(ctx, org, number, 1)
	if err != nil {
		return history, err
	}
	history.SentimentTrend, history.MemorySummary = &m.SentimentTrend, db.Null(m.Summary).Ptr()
	for _, i := range m.OpenItems {
		history.OpenItems = append(history.OpenItems, i.Text)
	}
	return history, nil
}

// EraseNumber erases a number of a contact that is deleted, unless it is the organisation's own.
func (d contactDependencies) EraseNumber(ctx context.Context, tx db.Querier, org, e164 string) error {
	_, err := d.p.numbers.Owned(ctx, tx, org, e164)
	if !db.IsNone(err) {
		return err
	}
	_, err = d.p.erasures.Begin(ctx, tx, org, e164, "its contact was deleted", "contacts")
	return err
}

// contactObserver passes changes of contacts on to calls and memory.
type contactObserver struct{ p *Platform }

// NoteAdded adds the note to the memory.
func (o contactObserver) NoteAdded(ctx context.Context, tx db.Querier, org string, n call.Note, _ bool) error {
	return o.p.indexContactNote(ctx, tx, org, n)
}

// ContactMerged moves calls and memory to the remaining contact.
func (o contactObserver) ContactMerged(ctx context.Context, tx db.Querier, org, from string, into contact.Contact) error {
	if err := o.p.memory.MergeContact(ctx, tx, org, from, into.ID); err != nil {
		return err
	}
	return o.p.calls.MergeContact(ctx, tx, org, from, into.EventContact(o.p.ownName(ctx, org)))
}

// ContactDeleted removes the contact from calls and memory.
func (o contactObserver) ContactDeleted(ctx context.Context, tx db.Querier, org, id string) error {
	if err := o.p.calls.ForgetContact(ctx, tx, org, id); err != nil {
		return err
	}
	return o.p.memory.DeleteContact(ctx, tx, org, id)
}

// CallIdentified sets the contact of the call.
func (o contactObserver) CallIdentified(ctx context.Context, org, callID string, c event.Contact) error {
	return o.p.calls.SetContact(ctx, org, callID, c)
}
