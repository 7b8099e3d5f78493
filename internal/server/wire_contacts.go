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
	"soniq/internal/platform/job"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// This file joins contacts and CRM connections with the other services.

// buildContacts constructs the services of contacts and CRM connections.
func (h *Platform) buildContacts(now func() time.Time) {
	h.contacts = (&contact.Service{DB: h.db, Orgs: h.orgs, Outbox: h.outbox, Jobs: h.jobs, Files: h.files, Log: h.log, Now: now}).Open()
	h.contacts.Erase = h.eraseContact
	h.crm = crm.New(crm.Config{DB: h.db, Bus: h.bus, Jobs: h.jobs, Seal: h.seal, Guard: h.guard, Contacts: h.contacts, Log: h.log, Now: now,
		Note: h.note, Call: h.calls.Shown, Words: h.words, BaseURL: cmp.Or(h.config.BaseURL, "http://"+h.config.HTTP), Apps: h.config.VendorApps(), Valid: h.keys.Valid})
}

// joinContacts sets the callbacks between contacts, calls and memory.
func (h *Platform) joinContacts() {
	c, x := h.contacts, h.crm
	c.Connected, c.Refs, c.OnSave, c.CanSave, c.OnNote, c.NoteSyncs = h.lookups, x.Refs, x.SaveContact, x.CanSave, x.SaveNote, x.NoteSyncs
	c.OnKnown = h.calls.Known
	c.Remember, h.memory.Contacts = h.rememberContactNote, whose{c}
	c.CallNumber, c.CallQueue, c.Past = h.callNumber, h.callQueue, h.past
	c.Lines = append(c.Lines, h.callLine, h.messageLine, h.voicemailLine)
	h.messages.Contact, h.messages.ContactNumbers = c.Known, c.NumbersOf
	c.OnMerge = append(c.OnMerge, x.Merge, func(ctx context.Context, tx db.Querier, org, from string, into contact.Contact) error {
		if err := h.memory.MergeContact(ctx, tx, org, from, into.ID); err != nil {
			return err
		}
		return h.calls.MergeContact(ctx, tx, org, from, into.Named(h.ownName(ctx, org)))
	})
	c.OnErase = append(c.OnErase, x.EraseContact)
	c.OnDelete = append(c.OnDelete, h.calls.ForgetContact, h.memory.ForgetContact)
	h.calls.Contact = c.Known
	h.calls.OnMore = x.CallGrew
	h.calls.OnNote, h.calls.NoteSyncs = x.SaveNote, x.NoteSyncs
	before := h.calls.OnEnd
	h.calls.OnEnd = func(ctx context.Context, tx db.Querier, e call.Ended, r call.CDR) error {
		if err := h.spoken(ctx, tx, e, r); err != nil {
			return err
		}
		return before(ctx, tx, e, r)
	}
}

// spoken follows from the end of a call: when somebody was last spoken with, and what connected systems are told.
func (h *Platform) spoken(ctx context.Context, tx db.Querier, e call.Ended, r call.CDR) error {
	if number := r.Number(); number != "" && r.AnsweredAt != nil {
		if err := h.contacts.Touch(ctx, tx, e.Org, number, r.EndedAt); err != nil {
			return err
		}
	}
	return h.crm.LogCall(ctx, tx, e.Org, r, e.Recording != "")
}

// words is what was said in a call; "" while nobody knows.
func (h *Platform) words(ctx context.Context, org, callID string) (string, error) {
	t, err := found(h.transcripts.Of(ctx, org, callID))
	if x, ok := t.(*transcript.Transcript); ok && err == nil && x.Status == transcript.Completed {
		return x.Text, nil
	}
	return "", err
}

// ownName is what an organisation calls its own contacts as a source.
func (h *Platform) ownName(ctx context.Context, org string) string {
	all, err := h.crm.Connected(ctx, org)
	if err == nil {
		for _, c := range all {
			if c.ID == contact.Internal {
				return c.Name
			}
		}
	}
	return contact.Own
}

// note finds a note on a call or a contact.
func (h *Platform) note(ctx context.Context, org, id, callID string) (call.Note, error) {
	if callID != "" {
		return h.calls.NoteOf(ctx, org, callID, id)
	}
	return h.contacts.Note(ctx, h.db.Read(ctx), org, id)
}

// callNumber is whom a call is with.
func (h *Platform) callNumber(ctx context.Context, org, id string) (string, error) {
	c, err := h.calls.Find(ctx, org, id)
	if err != nil {
		return "", err
	}
	if number := c.Number(); number != "" {
		return number, nil
	}
	return c.FromNumber, nil
}

// callQueue is the queue a call is in, or was in last; before it has entered one, the queue that its number leads to.
func (h *Platform) callQueue(ctx context.Context, org, id string) (*call.Named, error) {
	c, err := h.calls.Way(ctx, org, id)
	if err != nil {
		return nil, unlessNone(err)
	}
	if c.QueueID != "" {
		return h.namedQueue(ctx, org, c.QueueID)
	}
	if c.Direction != call.Inbound || c.NumberID == "" {
		return nil, nil
	}
	n, err := h.numbers.Get(ctx, h.db.Read(ctx), org, c.NumberID)
	if err != nil || n.AssignedTo.Type != "queue" || n.AssignedTo.ID == nil {
		return nil, unlessNone(err)
	}
	return h.namedQueue(ctx, org, *n.AssignedTo.ID)
}

// namedQueue is a queue by its id; nil where it is gone.
func (h *Platform) namedQueue(ctx context.Context, org, id string) (*call.Named, error) {
	q, err := h.queues.Get(ctx, h.db.Read(ctx), org, id)
	if err != nil {
		return nil, unlessNone(err)
	}
	return &call.Named{ID: q.ID, Name: q.Name}, nil
}

// unlessNone is an error unless it says that there is no such row.
func unlessNone(err error) error {
	if db.IsNone(err) {
		return nil
	}
	return err
}

// past is what calls and memory say of a number.
func (h *Platform) past(ctx context.Context, org, number string, memory bool) (contact.Past, error) {
	var p contact.Past
	total, last, err := h.calls.Earlier(ctx, org, number, "")
	if err != nil {
		return p, err
	}
	if p.CallsTotal = total; last != nil {
		p.LastCall = &contact.LastCall{ID: last.ID, At: last.StartedAt, Agent: last.Agent()}
	}
	if !memory {
		return p, nil
	}
	if p.LastCall != nil {
		p.LastCall.AISummary = last.AISummary
	}
	m, err := h.memory.Caller(ctx, org, number, 1)
	if err != nil {
		return p, err
	}
	p.SentimentTrend, p.MemorySummary = &m.SentimentTrend, db.Null(m.Summary).Ptr()
	for _, i := range m.OpenItems {
		p.OpenItems = append(p.OpenItems, i.Text)
	}
	return p, nil
}

// callLine tells of the calls with a contact.
func (h *Platform) callLine(ctx context.Context, org string, q contact.LineQuery) ([]contact.Item, error) {
	if !q.Wants("call") {
		return nil, nil
	}
	calls, err := h.calls.History(ctx, org, call.History{Contact: q.Contact.ID, Numbers: q.Numbers, Since: q.Since, Until: q.Until, Before: q.Before,
		BeforeID: q.BeforeID, Limit: q.Limit})
	if err != nil {
		return nil, err
	}
	all := make([]contact.Item, len(calls))
	for i, c := range calls {
		direction, status := string(c.Direction), string(c.Status)
		all[i] = contact.Item{Kind: "call", ID: c.ID, At: c.StartedAt, Phone: db.Null(c.Number()).Ptr(), Direction: &direction, Status: &status, Text: c.AISummary,
			TalkSeconds: &c.TalkDurationSeconds, CallID: &c.ID, RecordingURL: c.RecordingURL}
		if a := c.Agent(); a != nil {
			all[i].Agent = &contact.Person{ID: a.ID, Name: a.Name}
		}
	}
	return all, nil
}

// callerName is how a caller who sends no name is shown on phones.
func (h *Platform) callerName(ctx context.Context, org, number string) string {
	if c := h.contacts.Known(ctx, org, number); c != nil {
		return c.Name
	}
	return ""
}

// rings has the live stream told who calls.
func (h *Platform) rings(r pbx.Ring) {
	if !strings.HasPrefix(r.Number, "+") && r.Number != call.Anonymous {
		return // an extension: colleagues know each other
	}
	ring := contact.Ring{Org: r.Org, CallID: r.CallID, UserID: r.UserID, Phone: r.Number, Straight: r.Straight}
	if r.By != nil && r.By.UserID != "" {
		ring.By = &event.Named{ID: r.By.UserID, Name: r.By.Name}
	}
	h.contacts.Ringing(ring)
}

// startContacts starts what imports contacts and writes to connected systems.
func (n *Server) startContacts(ctx context.Context) error {
	h := n.Platform
	n.imports = &job.Runner{DB: h.db, Queue: h.jobs, Name: contact.Queue, Node: h.node, Log: h.log, Options: contact.Options()}
	h.contacts.Handle(n.imports)
	if err := n.imports.Start(ctx); err != nil {
		return err
	}
	n.connections = &job.Runner{DB: h.db, Queue: h.jobs, Name: crm.Queue, Node: h.node, Log: h.log, Options: crm.Options()}
	h.crm.Handle(n.connections)
	return n.connections.Start(ctx)
}
