package event

import "soniq/internal/platform/db"

// Payloads for those who work with text messages and voicemail: what changed after a message was stored.

// SMSStatus reports a new state of a text message. sms.sent reports that it was sent, sms.received that it was received.
type SMSStatus struct {
	MessageID      string  `json:"message_id"`
	ConversationID string  `json:"conversation_id"`
	Status         string  `json:"status"`
	ErrorCode      *string `json:"error_code"`
	At             db.Time `json:"at"`
}

// ConversationUpdated reports that a person changed a conversation.
type ConversationUpdated struct {
	ConversationID string  `json:"conversation_id"`
	Status         string  `json:"status"`
	AssigneeID     *string `json:"assignee_id"`
	UnreadCount    int     `json:"unread_count"`
	At             db.Time `json:"at"`
}

// VoicemailUpdated reports that a voicemail message was heard, transcribed, assigned, archived or deleted.
type VoicemailUpdated struct {
	VoicemailID string  `json:"voicemail_id"`
	CallID      string  `json:"call_id"`
	Mailbox     Mailbox `json:"mailbox"`
	Status      string  `json:"status"`
	AssigneeID  *string `json:"assignee_id"`
	At          db.Time `json:"at"`
}

// Kind implements Payload.
func (SMSStatus) Kind() Kind           { return "sms.status" }
func (ConversationUpdated) Kind() Kind { return "conversation.updated" }
func (VoicemailUpdated) Kind() Kind    { return "voicemail.updated" }

// Call implements Payload.
func (SMSStatus) Call() string           { return "" }
func (ConversationUpdated) Call() string { return "" }
func (e VoicemailUpdated) Call() string  { return e.CallID }

func (SMSStatus) live()           {}
func (ConversationUpdated) live() {}
func (VoicemailUpdated) live()    {}
