package server

import (
	"context"
	"strings"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// Connects contacts and CRM connections with the other services.

// buildContacts constructs the services of contacts and CRM connections.
func (p *Platform) buildContacts(now func() time.Time) {
	d := contactDependencies{p}
	p.contacts = contact.New(contact.Config{DB: p.db, Orgs: p.orgs, Outbox: p.outbox, Jobs: p.jobs, Files: p.files, Log: p.log,
		Clock: clock.Func(now), Sources: d, Systems: d, Calls: d, Memory: d,
		Timeline: []contact.TimelineSource{callItems{p}, messageItems{p}, voicemailItems{p}}})
	p.crm = crm.New(crm.Config{DB: p.db, Bus: p.bus, Jobs: p.jobs, Seal: p.seal, Guard: p.guard, Contacts: p.contacts, Log: p.log,
		Clock: clock.Func(now), Subjects: crmSubjects{p}, Credentials: credentials{p}, Browsers: p.signin,
		BaseURL: p.linkBase(), Apps: p.config.VendorApps()})
	p.contacts.Observe(p.crm)
	p.contacts.Observe(contactObserver{p})
}

// wireContacts sets the callbacks between contacts, messages and memory.
func (p *Platform) wireContacts() {
	p.memory.Contacts = contactLookup{p.contacts}
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

// crmSubjects reads the data that is written to connected CRM systems.
type crmSubjects struct{ p *Platform }

// Call returns a call with the URL of its recording.
func (s crmSubjects) Call(ctx context.Context, org, id string) (call.Call, error) {
	return s.p.calls.FindWithURL(ctx, org, id)
}

// Transcript returns the text of a call, or "" if there is no transcript.
func (s crmSubjects) Transcript(ctx context.Context, org, callID string) (string, error) {
	t, err := nilIfNotFound(s.p.transcripts.Of(ctx, org, callID))
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

// Note returns a note of a call or a contact.
func (s crmSubjects) Note(ctx context.Context, org, id, callID string) (call.Note, error) {
	if callID != "" {
		return s.p.calls.GetNote(ctx, org, callID, id)
	}
	return s.p.contacts.Note(ctx, s.p.db.Read(ctx), org, id)
}

// switchDependencies implements what the switch needs from contacts, and observes it.
type switchDependencies struct{ p *Platform }

// CallerName implements pbx.CallerNames. It returns the display name of a caller without a name of their own.
func (d switchDependencies) CallerName(ctx context.Context, org, number string) string {
	if c := d.p.contacts.LookupLocal(ctx, org, number); c != nil {
		return c.Name
	}
	return ""
}

// UserRinging implements pbx.RingObserver: it publishes a screen pop.
func (d switchDependencies) UserRinging(r pbx.Ring) {
	if !strings.HasPrefix(r.Number, "+") && r.Number != call.Anonymous {
		return // an extension: no screen pop for colleagues
	}
	ring := contact.Ring{Org: r.Org, CallID: r.CallID, UserID: r.UserID, Phone: r.Number, Direct: r.Direct}
	if r.TransferredBy != nil && r.TransferredBy.UserID != "" {
		ring.TransferredBy = &event.Named{ID: r.TransferredBy.UserID, Name: r.TransferredBy.Name}
	}
	d.p.contacts.Ringing(ring)
}
