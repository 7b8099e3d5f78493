package server

import (
	"context"

	"soniq/internal/customer/contact"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/voicemail"
)

// Calls, messages and voicemail in the timeline of a contact.

type (
	callItems      struct{ p *Platform }
	messageItems   struct{ p *Platform }
	voicemailItems struct{ p *Platform }
)

// TimelineItems returns the messages with a contact. Their texts are included only if the client may read messages.
func (d messageItems) TimelineItems(ctx context.Context, org string, q contact.TimelineQuery) ([]contact.Item, error) {
	if !q.Wants("message") {
		return nil, nil
	}
	found, err := d.p.messages.History(ctx, org, sms.History{Numbers: q.Numbers, Since: q.Since, Until: q.Until, Before: q.Before,
		BeforeID: q.BeforeID, Limit: q.Limit})
	if err != nil {
		return nil, err
	}
	who, _ := access.From(ctx)
	readable := access.SMSRead.Need().MetBy(who.Scopes)
	people := map[string]*contact.Person{}
	all := make([]contact.Item, len(found))
	for i, m := range found {
		all[i] = contact.Item{Kind: "message", ID: m.ID, At: m.CreatedAt, Phone: db.Null(m.Peer()).Ptr(), Direction: &m.Direction,
			Status: &m.Status, Conversation: &m.ConversationID}
		if readable {
			all[i].Text = &m.Body
		}
		if all[i].Agent, err = d.p.person(ctx, org, m.UserID, people); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// person returns a user by id, and caches the result in found. It returns nil if the id is nil or the user does not
// exist.
func (p *Platform) person(ctx context.Context, org string, id *string, found map[string]*contact.Person) (*contact.Person, error) {
	if id == nil {
		return nil, nil
	}
	if known, ok := found[*id]; ok {
		return known, nil
	}
	u, err := p.users.Get(ctx, p.db.Read(ctx), org, *id)
	if db.IsNone(err) {
		found[*id] = nil
		return nil, nil
	}
	found[*id] = &contact.Person{ID: u.ID, Name: u.Name}
	return found[*id], err
}

// TimelineItems returns the voicemail messages of a contact.
func (d voicemailItems) TimelineItems(ctx context.Context, org string, q contact.TimelineQuery) ([]contact.Item, error) {
	if !q.Wants("voicemail") {
		return nil, nil
	}
	found, err := d.p.voicemail.FromNumbers(ctx, org, voicemail.History{Numbers: q.Numbers, Since: q.Since, Until: q.Until,
		Before: q.Before, BeforeID: q.BeforeID, Limit: q.Limit})
	if err != nil {
		return nil, err
	}
	all, direction := make([]contact.Item, len(found)), "inbound"
	for i, v := range found {
		all[i] = contact.Item{Kind: "voicemail", ID: v.ID, At: v.ReceivedAt, Phone: &v.FromNumber, Direction: &direction, Status: &v.Status,
			Text: v.AISummary, CallID: &v.CallID, RecordingURL: v.AudioURL}
		if v.Transcript != nil {
			all[i].Text = v.Transcript.Text
		}
	}
	return all, nil
}

// TimelineItems returns the calls with a contact.
func (d callItems) TimelineItems(ctx context.Context, org string, q contact.TimelineQuery) ([]contact.Item, error) {
	if !q.Wants("call") {
		return nil, nil
	}
	calls, err := d.p.calls.History(ctx, org, call.History{Contact: q.Contact.ID, Numbers: q.Numbers, Since: q.Since, Until: q.Until,
		Before: q.Before, BeforeID: q.BeforeID, Limit: q.Limit})
	if err != nil {
		return nil, err
	}
	all := make([]contact.Item, len(calls))
	for i, c := range calls {
		direction, status := string(c.Direction), string(c.Status)
		all[i] = contact.Item{Kind: "call", ID: c.ID, At: c.StartedAt, Phone: db.Null(c.ExternalNumber()).Ptr(), Direction: &direction,
			Status: &status, Text: c.AISummary, TalkSeconds: &c.TalkDurationSeconds, CallID: &c.ID, RecordingURL: c.RecordingURL}
		if a := c.Agent(); a != nil {
			all[i].Agent = &contact.Person{ID: a.ID, Name: a.Name}
		}
	}
	return all, nil
}
