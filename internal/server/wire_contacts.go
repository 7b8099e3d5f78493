package server

import (
	"cmp"
	"context"
	"strings"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// Connects contacts and CRM connections with the other services.

// buildContacts constructs the services of contacts and CRM connections.
func (p *Platform) buildContacts(now func() time.Time) {
	p.contacts = (&contact.Service{DB: p.db, Orgs: p.orgs, Outbox: p.outbox, Jobs: p.jobs, Files: p.files, Log: p.log, Now: now}).Open()
	p.contacts.Erase = p.eraseContact
	p.crm = crm.New(crm.Config{DB: p.db, Bus: p.bus, Jobs: p.jobs, Seal: p.seal, Guard: p.guard, Contacts: p.contacts, Log: p.log, Now: now,
		Note: p.note, Call: p.calls.FindWithURL, Transcript: p.transcriptText, BaseURL: cmp.Or(p.config.BaseURL, "http://"+p.config.HTTP), Apps: p.config.VendorApps(), CheckCredential: p.keys.Revalidate})
}

// wireContacts sets the callbacks between contacts, calls and memory.
func (p *Platform) wireContacts() {
	c, x := p.contacts, p.crm
	c.Sources, c.Refs, c.OnSave, c.CanSave, c.OnNote, c.NoteSyncs = p.lookups, x.Refs, x.QueueContact, x.CheckContactTargets, x.QueueNote, x.NoteSyncs
	c.OnIdentified = p.calls.SetContact
	c.OnNoteAdded, p.memory.Contacts = p.indexContactNote, contactLookup{c}
	c.CallNumber, c.CallQueue, c.History = p.callNumber, p.callQueue, p.contactHistory
	c.TimelineSources = append(c.TimelineSources, p.callLine, p.messageLine, p.voicemailLine)
	p.messages.LookupContact, p.messages.ContactNumbers = c.LookupLocal, c.NumbersOf
	c.OnMerge = append(c.OnMerge, x.Merge, func(ctx context.Context, tx db.Querier, org, from string, into contact.Contact) error {
		if err := p.memory.MergeContact(ctx, tx, org, from, into.ID); err != nil {
			return err
		}
		return p.calls.MergeContact(ctx, tx, org, from, into.EventContact(p.ownName(ctx, org)))
	})
	c.OnErase = append(c.OnErase, x.EraseContact)
	c.OnDelete = append(c.OnDelete, p.calls.ForgetContact, p.memory.DeleteContact)
}

// contactLastSpoken updates the contact after a call, and writes the call to the connected CRM systems.
func (p *Platform) contactLastSpoken(ctx context.Context, tx db.Querier, e call.Ended, r call.CDR) error {
	if number := r.ExternalNumber(); number != "" && r.AnsweredAt != nil {
		if err := p.contacts.UpdateLastContacted(ctx, tx, e.Org, number, r.EndedAt); err != nil {
			return err
		}
	}
	return p.crm.QueueCall(ctx, tx, e.Org, r, e.Recording != "")
}

// transcriptText returns the text of a call, or "" if there is no transcript.
func (p *Platform) transcriptText(ctx context.Context, org, callID string) (string, error) {
	t, err := nilIfNotFound(p.transcripts.Of(ctx, org, callID))
	if x, ok := t.(*transcript.Transcript); ok && err == nil && x.Status == transcript.Completed {
		return x.Text, nil
	}
	return "", err
}

// ownName returns the name of the organisation's own contacts as a source.
func (p *Platform) ownName(ctx context.Context, org string) string {
	all, err := p.crm.Connected(ctx, org)
	if err == nil {
		for _, c := range all {
			if c.ID == contact.InternalID {
				return c.Name
			}
		}
	}
	return contact.InternalName
}

// note returns a note of a call or a contact.
func (p *Platform) note(ctx context.Context, org, id, callID string) (call.Note, error) {
	if callID != "" {
		return p.calls.GetNote(ctx, org, callID, id)
	}
	return p.contacts.Note(ctx, p.db.Read(ctx), org, id)
}

// callNumber returns the external number of a call.
func (p *Platform) callNumber(ctx context.Context, org, id string) (string, error) {
	c, err := p.calls.Find(ctx, org, id)
	if err != nil {
		return "", err
	}
	if number := c.ExternalNumber(); number != "" {
		return number, nil
	}
	return c.FromNumber, nil
}

// callQueue returns the queue in which a call is, or was last. Before the call enters one, it is the queue to which
// its number is assigned.
func (p *Platform) callQueue(ctx context.Context, org, id string) (*call.Named, error) {
	c, err := p.calls.Origin(ctx, org, id)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	if c.QueueID != "" {
		return p.namedQueue(ctx, org, c.QueueID)
	}
	if c.Direction != call.Inbound || c.NumberID == "" {
		return nil, nil
	}
	n, err := p.numbers.Get(ctx, p.db.Read(ctx), org, c.NumberID)
	if err != nil || n.AssignedTo.Type != "queue" || n.AssignedTo.ID == nil {
		return nil, ignoreNotFound(err)
	}
	return p.namedQueue(ctx, org, *n.AssignedTo.ID)
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

// contactHistory returns the history of a number from calls and memory.
func (p *Platform) contactHistory(ctx context.Context, org, number string, memory bool) (contact.CallHistory, error) {
	var history contact.CallHistory
	total, last, err := p.calls.PriorCalls(ctx, org, number, "")
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
	m, err := p.memory.Caller(ctx, org, number, 1)
	if err != nil {
		return history, err
	}
	history.SentimentTrend, history.MemorySummary = &m.SentimentTrend, db.Null(m.Summary).Ptr()
	for _, i := range m.OpenItems {
		history.OpenItems = append(history.OpenItems, i.Text)
	}
	return history, nil
}

// callLine returns the calls with a contact.
func (p *Platform) callLine(ctx context.Context, org string, q contact.TimelineQuery) ([]contact.Item, error) {
	if !q.Wants("call") {
		return nil, nil
	}
	calls, err := p.calls.History(ctx, org, call.History{Contact: q.Contact.ID, Numbers: q.Numbers, Since: q.Since, Until: q.Until, Before: q.Before,
		BeforeID: q.BeforeID, Limit: q.Limit})
	if err != nil {
		return nil, err
	}
	all := make([]contact.Item, len(calls))
	for i, c := range calls {
		direction, status := string(c.Direction), string(c.Status)
		all[i] = contact.Item{Kind: "call", ID: c.ID, At: c.StartedAt, Phone: db.Null(c.ExternalNumber()).Ptr(), Direction: &direction, Status: &status, Text: c.AISummary,
			TalkSeconds: &c.TalkDurationSeconds, CallID: &c.ID, RecordingURL: c.RecordingURL}
		if a := c.Agent(); a != nil {
			all[i].Agent = &contact.Person{ID: a.ID, Name: a.Name}
		}
	}
	return all, nil
}

// callerName returns the display name of a caller without a name of their own.
func (p *Platform) callerName(ctx context.Context, org, number string) string {
	if c := p.contacts.LookupLocal(ctx, org, number); c != nil {
		return c.Name
	}
	return ""
}

// publishScreenPop publishes a screen pop.
func (p *Platform) publishScreenPop(r pbx.Ring) {
	if !strings.HasPrefix(r.Number, "+") && r.Number != call.Anonymous {
		return // an extension: no screen pop for colleagues
	}
	ring := contact.Ring{Org: r.Org, CallID: r.CallID, UserID: r.UserID, Phone: r.Number, Direct: r.Direct}
	if r.TransferredBy != nil && r.TransferredBy.UserID != "" {
		ring.TransferredBy = &event.Named{ID: r.TransferredBy.UserID, Name: r.TransferredBy.Name}
	}
	p.contacts.Ringing(ring)
}
