package event

import "soniq/internal/platform/db"

// Payloads of the event stream (GET /events/stream). They are never sent to webhooks: a webhook for all kinds gets
// the twelve of the contract. They are committed with their change like the others, except the ephemeral ones.

// StreamPayload is a payload that goes to event streams only.
type StreamPayload interface {
	Payload
	live()
}

// CallRinging reports that a phone of the call rings.
type CallRinging struct {
	CallID     string  `json:"call_id"`
	LegID      string  `json:"leg_id"`
	Role       string  `json:"role"`
	Direction  string  `json:"direction"`
	FromNumber string  `json:"from_number"`
	ToNumber   string  `json:"to_number"`
	Number     string  `json:"number"`
	UserID     *string `json:"user_id"`
	DeviceID   *string `json:"device_id"`
	SIPCallID  string  `json:"sip_call_id" doc:"Call-ID of the SIP dialog with the phone that rings"`
	At         db.Time `json:"at"`
}

// CallHeld reports that the other side hears music on hold. By is peer if a phone did it, api if a request did.
type CallHeld struct {
	CallID string  `json:"call_id"`
	LegID  string  `json:"leg_id"`
	By     string  `json:"held_by"`
	At     db.Time `json:"at"`
}

// CallUnheld reports the end of a hold.
type CallUnheld struct {
	CallID string  `json:"call_id"`
	LegID  string  `json:"leg_id"`
	By     string  `json:"held_by"`
	At     db.Time `json:"at"`
}

// CallTransfer reports the progress of a transfer.
type CallTransfer struct {
	CallID        string  `json:"call_id"`
	Mode          string  `json:"mode"`
	To            string  `json:"to"`
	Status        string  `json:"status"`
	TargetLegID   *string `json:"target_leg_id"`
	FailureReason *string `json:"failure_reason"`
	SIPStatus     *int    `json:"sip_status"`
	At            db.Time `json:"at"`
}

// CallDTMF reports a pressed key. It is not sent while the recording is paused, because the key may be part of a card
// number.
type CallDTMF struct {
	CallID string  `json:"call_id"`
	LegID  string  `json:"leg_id"`
	Digit  string  `json:"digit"`
	Method string  `json:"method"`
	At     db.Time `json:"at"`
}

// CallTranscriptSegment contains a recognised segment. It is ephemeral, because the transcript contains it.
type CallTranscriptSegment struct {
	CallID     string  `json:"call_id"`
	Speaker    string  `json:"speaker"`
	Channel    int     `json:"channel"`
	StartMS    int     `json:"start_ms"`
	EndMS      int     `json:"end_ms"`
	Text       string  `json:"text" content:"words"`
	Confidence float64 `json:"confidence"`
}

// CallQuality contains the quality of a leg in the last seconds. It is ephemeral, because the leg's record contains
// it.
type CallQuality struct {
	CallID   string  `json:"call_id"`
	LegID    string  `json:"leg_id"`
	MOS      float64 `json:"mos"`
	LossRate float64 `json:"loss_rate"`
	JitterMS float64 `json:"jitter_ms"`
	RTTMS    float64 `json:"rtt_ms"`
	At       db.Time `json:"at"`
}

// QueueUpdated reports a change of the callers or agents of a queue.
type QueueUpdated struct {
	QueueID            string  `json:"queue_id"`
	QueueName          string  `json:"queue_name"`
	CallersWaiting     int     `json:"callers_waiting"`
	AgentsAvailable    int     `json:"agents_available"`
	LongestWaitSeconds int     `json:"longest_wait_seconds"`
	At                 db.Time `json:"at"`
}

// AgentPresence reports a change of an agent's presence.
type AgentPresence struct {
	AgentID string   `json:"agent_id"`
	Status  string   `json:"status"`
	Reason  *string  `json:"reason"`
	CallID  *string  `json:"active_call_id"`
	Since   db.Time  `json:"since"`
	Until   *db.Time `json:"until"`
}

// ScreenPop reports the caller to an agent. It is sent again with Complete set when all lookups have finished.
type ScreenPop struct {
	Phone    string   `json:"phone"`
	CallID   *string  `json:"call_id"`
	UserID   *string  `json:"user_id"`
	Contact  *Contact `json:"contact"`
	Complete bool     `json:"complete"`
	LookupMS int      `json:"lookup_ms"`
	At       db.Time  `json:"at"`
	Queue    *Named   `json:"queue"`

	TransferredBy *Named `json:"transferred_by"` // user who transfers the call
}

// Named is a reference with ID and name.
type Named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// DeviceRegistration reports that a phone registered, or that its registration ended. Refreshes are not reported.
type DeviceRegistration struct {
	DeviceID  string   `json:"device_id"`
	UserID    *string  `json:"user_id"`
	Status    string   `json:"status"`
	Transport *string  `json:"transport"`
	UserAgent *string  `json:"user_agent"`
	ExpiresAt *db.Time `json:"expires_at"`
	At        db.Time  `json:"at"`
}

// WebhookHealth reports a change of an endpoint's state.
type WebhookHealth struct {
	WebhookID           string  `json:"webhook_id"`
	Status              string  `json:"status"`
	ConsecutiveFailures int     `json:"consecutive_failures"`
	DisabledReason      *string `json:"disabled_reason"`
	At                  db.Time `json:"at"`
}

// EmergencyCallPlaced reports an emergency call.
type EmergencyCallPlaced struct {
	CallID   string  `json:"call_id"`
	Number   string  `json:"number"`
	UserID   *string `json:"user_id"`
	DeviceID *string `json:"device_id"`
	Address  *string `json:"address"`
	At       db.Time `json:"at"`
	Callback *string `json:"callback_number"`
	Test     bool    `json:"test"` // test of emergency calls: 933
}

// StreamPayloads has one payload per kind of the event stream that webhooks do not get.
var StreamPayloads = []StreamPayload{
	CallRinging{}, CallHeld{}, CallUnheld{}, CallTransfer{}, CallDTMF{}, CallTranscriptSegment{}, CallQuality{}, QueueUpdated{},
	AgentPresence{}, ScreenPop{}, DeviceRegistration{}, WebhookHealth{}, EmergencyCallPlaced{}, SMSStatus{}, ConversationUpdated{},
	VoicemailUpdated{},
}

// Kind implements Payload.
func (CallRinging) Kind() Kind           { return "call.ringing" }
func (CallHeld) Kind() Kind              { return "call.held" }
func (CallUnheld) Kind() Kind            { return "call.unheld" }
func (CallTransfer) Kind() Kind          { return "call.transfer" }
func (CallDTMF) Kind() Kind              { return "call.dtmf" }
func (CallTranscriptSegment) Kind() Kind { return "call.transcript_segment" }
func (CallQuality) Kind() Kind           { return "call.quality" }
func (QueueUpdated) Kind() Kind          { return "queue.updated" }
func (AgentPresence) Kind() Kind         { return "agent.presence" }
func (ScreenPop) Kind() Kind             { return "screen_pop" }
func (DeviceRegistration) Kind() Kind    { return "device.registration" }
func (WebhookHealth) Kind() Kind         { return "webhook.health" }
func (EmergencyCallPlaced) Kind() Kind   { return "emergency.call_placed" }

// Call implements Payload.
func (e CallRinging) Call() string           { return e.CallID }
func (e CallHeld) Call() string              { return e.CallID }
func (e CallUnheld) Call() string            { return e.CallID }
func (e CallTransfer) Call() string          { return e.CallID }
func (e CallDTMF) Call() string              { return e.CallID }
func (e CallTranscriptSegment) Call() string { return e.CallID }
func (e CallQuality) Call() string           { return e.CallID }
func (QueueUpdated) Call() string            { return "" }
func (AgentPresence) Call() string           { return "" }
func (ScreenPop) Call() string               { return "" }
func (DeviceRegistration) Call() string      { return "" }
func (WebhookHealth) Call() string           { return "" }
func (e EmergencyCallPlaced) Call() string   { return e.CallID }

func (CallRinging) live()           {}
func (CallHeld) live()              {}
func (CallUnheld) live()            {}
func (CallTransfer) live()          {}
func (CallDTMF) live()              {}
func (CallTranscriptSegment) live() {}
func (CallQuality) live()           {}
func (QueueUpdated) live()          {}
func (AgentPresence) live()         {}
func (ScreenPop) live()             {}
func (DeviceRegistration) live()    {}
func (WebhookHealth) live()         {}
func (EmergencyCallPlaced) live()   {}
