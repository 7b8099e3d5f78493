package event

import "soniq/internal/platform/db"

// The payloads of the live stream (GET /events/stream). They are never webhooks: whoever asks for all kinds of webhooks gets
// the twelve of the contract. They are committed with their fact like the others, but for those that say they are ephemeral.

// Live is a payload that goes to the live stream only.
type Live interface {
	Payload
	live()
}

// CallRinging: a phone of the call rings.
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
	At         db.Time `json:"at"`
}

// CallHeld: the other side hears music. By is peer where a phone did it, api where a request did.
type CallHeld struct {
	CallID string  `json:"call_id"`
	LegID  string  `json:"leg_id"`
	By     string  `json:"held_by"`
	At     db.Time `json:"at"`
}

// CallUnheld: nobody holds the call any more.
type CallUnheld struct {
	CallID string  `json:"call_id"`
	LegID  string  `json:"leg_id"`
	By     string  `json:"held_by"`
	At     db.Time `json:"at"`
}

// CallTransfer: a transfer came one step further.
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

// CallDTMF: somebody pressed a key. It is not told while the recording is paused: then it may be part of a card number.
type CallDTMF struct {
	CallID string  `json:"call_id"`
	LegID  string  `json:"leg_id"`
	Digit  string  `json:"digit"`
	Method string  `json:"method"`
	At     db.Time `json:"at"`
}

// CallTranscriptSegment is what was just said. It is ephemeral: the transcript has it.
type CallTranscriptSegment struct {
	CallID     string  `json:"call_id"`
	Speaker    string  `json:"speaker"`
	Channel    int     `json:"channel"`
	StartMS    int     `json:"start_ms"`
	EndMS      int     `json:"end_ms"`
	Text       string  `json:"text"`
	Confidence float64 `json:"confidence"`
}

// CallQuality is how a leg sounded in the last seconds. It is ephemeral: the leg's record has it.
type CallQuality struct {
	CallID   string  `json:"call_id"`
	LegID    string  `json:"leg_id"`
	MOS      float64 `json:"mos"`
	LossRate float64 `json:"loss_rate"`
	JitterMS float64 `json:"jitter_ms"`
	RTTMS    float64 `json:"rtt_ms"`
	At       db.Time `json:"at"`
}

// QueueUpdated: callers or agents of a queue came or went.
type QueueUpdated struct {
	QueueID            string  `json:"queue_id"`
	QueueName          string  `json:"queue_name"`
	CallersWaiting     int     `json:"callers_waiting"`
	AgentsAvailable    int     `json:"agents_available"`
	LongestWaitSeconds int     `json:"longest_wait_seconds"`
	At                 db.Time `json:"at"`
}

// AgentPresence: what an agent does has changed.
type AgentPresence struct {
	AgentID string   `json:"agent_id"`
	Status  string   `json:"status"`
	Reason  *string  `json:"reason"`
	CallID  *string  `json:"active_call_id"`
	Since   db.Time  `json:"since"`
	Until   *db.Time `json:"until"`
}

// ScreenPop tells an agent who calls. It is sent again, complete, when late answers have arrived.
type ScreenPop struct {
	Phone    string   `json:"phone"`
	CallID   *string  `json:"call_id"`
	UserID   *string  `json:"user_id"`
	Contact  *Contact `json:"contact"`
	Complete bool     `json:"complete"`
	LookupMS int      `json:"lookup_ms"`
	At       db.Time  `json:"at"`
	Queue    *Named   `json:"queue"`

	TransferredBy *Named `json:"transferred_by"` // the user who hands the call over
}

// Named is something with an id and a name.
type Named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// DeviceRegistration: a phone signed in, or is gone. Refreshes are not told.
type DeviceRegistration struct {
	DeviceID  string   `json:"device_id"`
	UserID    *string  `json:"user_id"`
	Status    string   `json:"status"`
	Transport *string  `json:"transport"`
	UserAgent *string  `json:"user_agent"`
	ExpiresAt *db.Time `json:"expires_at"`
	At        db.Time  `json:"at"`
}

// WebhookHealth: an endpoint's state has changed.
type WebhookHealth struct {
	WebhookID           string  `json:"webhook_id"`
	Status              string  `json:"status"`
	ConsecutiveFailures int     `json:"consecutive_failures"`
	DisabledReason      *string `json:"disabled_reason"`
	At                  db.Time `json:"at"`
}

// EmergencyCallPlaced: somebody calls for help.
type EmergencyCallPlaced struct {
	CallID   string  `json:"call_id"`
	Number   string  `json:"number"`
	UserID   *string `json:"user_id"`
	DeviceID *string `json:"device_id"`
	Address  *string `json:"address"`
	At       db.Time `json:"at"`
	Callback *string `json:"callback_number"`
	Test     bool    `json:"test"` // of emergency calls: 933
}

// LivePayloads lists every kind of the live stream that is no webhook, by its payload.
var LivePayloads = []Live{
	CallRinging{}, CallHeld{}, CallUnheld{}, CallTransfer{}, CallDTMF{}, CallTranscriptSegment{}, CallQuality{}, QueueUpdated{},
	AgentPresence{}, ScreenPop{}, DeviceRegistration{}, WebhookHealth{}, EmergencyCallPlaced{},
}

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
