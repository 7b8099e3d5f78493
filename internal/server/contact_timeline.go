package server

import (
	"context"

	"soniq/internal/customer/contact"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/voicemail"
)

// Messages and voicemail in the timeline of a contact.

// messageLine returns the messages with a contact. Their texts are included only if the client may read messages.
func (p *Platform) messageLine(ctx context.Context, org string, q contact.TimelineQuery) ([]contact.Item, error) {
	if !q.Wants("message") {
		return nil, nil
	}
	found, err := p.messages.History(ctx, org, sms.History{Numbers: q.Numbers, Since: q.Since, Until: q.Until, Before: q.Before,
		BeforeID: q.BeforeID, Limit: q.Limit})
	if err != nil {
		return nil, err
	}
	who, _ := access.From(ctx)
	readable := access.SMSRead.Need().MetBy(who.Scopes)
	people := map[string]*contact.Person{}
	all := make([]contact.Item, len(found))
	for i, m := range found {
		all[i] = contact.Item{Kind: "message", ID: m.ID, At: m.CreatedAt, Phone: db.Null(m.Peer()).Ptr(), Direction: &m.Direction, Status: &m.Status,
			Conversation: &m.ConversationID}
		if readable {
			all[i].Text = &m.Body
		}
		if all[i].Agent, err = p.person(ctx, org, m.UserID, people); err != nil {
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

// voicemailLine returns the voicemail messages of a contact.
func (p *Platform) voicemailLine(ctx context.Context, org string, q contact.TimelineQuery) ([]contact.Item, error) {
	if !q.Wants("voicemail") {
		return nil, nil
	}
	found, err := p.voicemail.FromNumbers(ctx, org, voicemail.History{Numbers: q.Numbers, Since: q.Since, Until: q.Until, Before: q.Before,
		BeforeID: q.BeforeID, Limit: q.Limit})
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
