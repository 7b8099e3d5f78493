package event

import "soniq/internal/platform/db"

// Payloads of webhook events, the published contract. All keys are always present; pointers may be null. New keys may
// be added at the end of a struct.

// CallStarted reports that a call was accepted for routing, or is about to be placed.
type CallStarted struct {
	CallID     string   `json:"call_id"`
	Direction  string   `json:"direction"`
	FromNumber string   `json:"from_number"`
	ToNumber   string   `json:"to_number"`
	FromName   *string  `json:"from_name"`
	NumberID   *string  `json:"number_id"`
	FlowID     *string  `json:"flow_id"`
	UserID     *string  `json:"user_id"`
	StartedAt  db.Time  `json:"started_at"`
	Source     string   `json:"source"`
	Contact    *Contact `json:"contact"`
}

// Contact is the known owner of a number.
type Contact struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Company string `json:"company"`
	Source  string `json:"source"`
}

// CallAnswered reports that a person or an AI agent is connected.
type CallAnswered struct {
	CallID       string  `json:"call_id"`
	Direction    string  `json:"direction"`
	FromNumber   string  `json:"from_number"`
	ToNumber     string  `json:"to_number"`
	AnsweredAt   db.Time `json:"answered_at"`
	AnsweredBy   string  `json:"answered_by"`
	AgentID      *string `json:"agent_id"`
	AgentName    *string `json:"agent_name"`
	QueueID      *string `json:"queue_id"`
	RingSeconds  int     `json:"ring_seconds"`
	QueueSeconds int     `json:"queue_seconds"`
	Transferred  bool    `json:"transferred"`
}

// CallEnded reports the end of a call, once per call and endpoint: when recording and summary are ready, or after 30
// s.
type CallEnded struct {
	CallID              string   `json:"call_id"`
	FromNumber          string   `json:"from_number"`
	TalkDurationSeconds int      `json:"talk_duration_seconds"`
	RecordingURL        *string  `json:"recording_url"`
	AISummary           *string  `json:"ai_summary" content:"words"`
	ToNumber            string   `json:"to_number"`
	Direction           string   `json:"direction"`
	Status              string   `json:"status"`
	StartedAt           db.Time  `json:"started_at"`
	AnsweredAt          *db.Time `json:"answered_at"`
	EndedAt             db.Time  `json:"ended_at"`
	EndReason           string   `json:"end_reason"`
	HangupBy            string   `json:"hangup_by"`
	AgentID             *string  `json:"agent_id"`
	QueueID             *string  `json:"queue_id"`
	HoldSeconds         int      `json:"hold_seconds"`
	Tags                []string `json:"tags" nullable:"false"`
	Contact             *Contact `json:"contact"`
	Quality             *Quality `json:"quality"`
	Enriched            bool     `json:"enriched"`
}

// Quality is the audio quality of a call.
type Quality struct {
	MOS            float64 `json:"mos"`
	PacketLossRate float64 `json:"packet_loss_rate"`
	JitterMS       float64 `json:"jitter_ms"`
	RTTMS          float64 `json:"rtt_ms"`
}

// CallMissed reports an inbound call that ended without being connected.
type CallMissed struct {
	CallID        string   `json:"call_id"`
	FromNumber    string   `json:"from_number"`
	ToNumber      string   `json:"to_number"`
	MissedReason  string   `json:"missed_reason"`
	StartedAt     db.Time  `json:"started_at"`
	EndedAt       db.Time  `json:"ended_at"`
	WaitSeconds   int      `json:"wait_seconds"`
	QueueID       *string  `json:"queue_id"`
	AgentsOffered int      `json:"agents_offered"`
	VoicemailID   *string  `json:"voicemail_id"`
	Contact       *Contact `json:"contact"`
}

// CallRecording reports that the recording is available, or has failed permanently.
type CallRecording struct {
	CallID          string  `json:"call_id"`
	RecordingID     string  `json:"recording_id"`
	Status          string  `json:"status"`
	RecordingURL    *string `json:"recording_url"`
	DurationSeconds int     `json:"duration_seconds"`
	Channels        int     `json:"channels"`
	Format          string  `json:"format"`
	Error           *Fault  `json:"error"`
	Truncated       bool    `json:"truncated"`       // audio is missing; Error says why
	MissingSeconds  int     `json:"missing_seconds"` // rounded up
}

// ActionItem is a task that a participant promised to do.
type ActionItem struct {
	Text  string  `json:"text"`
	Owner *string `json:"owner"`
	Due   *string `json:"due"`
}

// CallTranscription reports that transcript and summary are both finished, failed or skipped.
type CallTranscription struct {
	CallID        string       `json:"call_id"`
	TranscriptID  string       `json:"transcript_id"`
	Status        string       `json:"status"`
	Language      *string      `json:"language"`
	Text          *string      `json:"text" content:"words"`
	AISummary     *string      `json:"ai_summary" content:"words"`
	Topics        []string     `json:"topics" nullable:"false" content:"words"`
	ActionItems   []ActionItem `json:"action_items" nullable:"false" content:"words"`
	Sentiment     *string      `json:"sentiment" content:"words"`
	SummaryStatus string       `json:"summary_status"`
	Error         *Fault       `json:"error"`
}

// Mailbox identifies a voicemail box.
type Mailbox struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

// VoicemailReceived reports a new voicemail message.
type VoicemailReceived struct {
	VoicemailID     string   `json:"voicemail_id"`
	CallID          string   `json:"call_id"`
	Mailbox         Mailbox  `json:"mailbox"`
	FromNumber      string   `json:"from_number"`
	DurationSeconds int      `json:"duration_seconds"`
	ReceivedAt      db.Time  `json:"received_at"`
	AudioURL        string   `json:"audio_url"`
	Text            *string  `json:"text" content:"words"`
	Contact         *Contact `json:"contact"`
}

// Media is an attachment of a message.
type Media struct {
	URL         string `json:"url"`
	ContentType string `json:"content_type"`
	SizeBytes   int64  `json:"size_bytes"`
}

// SMSReceived reports an inbound message.
type SMSReceived struct {
	MessageID      string   `json:"message_id"`
	ConversationID string   `json:"conversation_id"`
	FromNumber     string   `json:"from_number"`
	ToNumber       string   `json:"to_number"`
	Body           string   `json:"body"`
	Segments       int      `json:"segments"`
	Media          []Media  `json:"media" nullable:"false"`
	ReceivedAt     db.Time  `json:"received_at"`
	Contact        *Contact `json:"contact"`
}

// SMSSent reports that a message was sent to the carrier.
type SMSSent struct {
	MessageID      string   `json:"message_id"`
	ConversationID string   `json:"conversation_id"`
	FromNumber     string   `json:"from_number"`
	ToNumber       string   `json:"to_number"`
	Body           string   `json:"body"`
	Segments       int      `json:"segments"`
	Status         string   `json:"status"`
	SentAt         db.Time  `json:"sent_at"`
	UserID         *string  `json:"user_id"`
	Metadata       Metadata `json:"metadata"`
}

// UserCreated reports a new user.
type UserCreated struct {
	UserID    string  `json:"user_id"`
	Email     string  `json:"email"`
	Name      string  `json:"name"`
	Role      string  `json:"role"`
	Extension *string `json:"extension"`
	CreatedAt db.Time `json:"created_at"`
	OrgID     string  `json:"org_id"`
}

// Assignment is the target of calls to a number.
type Assignment struct {
	Type string  `json:"type"`
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

// NumberAllocated reports that the organisation can use a number.
type NumberAllocated struct {
	NumberID     string     `json:"number_id"`
	Number       string     `json:"number"`
	Country      string     `json:"country"`
	Type         string     `json:"type"`
	Capabilities []string   `json:"capabilities" nullable:"false"`
	AssignedTo   Assignment `json:"assigned_to"`
	AllocatedAt  db.Time    `json:"allocated_at"`
}

// QueueCallWaiting reports that a caller entered a queue.
type QueueCallWaiting struct {
	QueueID              string   `json:"queue_id"`
	QueueName            string   `json:"queue_name"`
	CallID               string   `json:"call_id"`
	FromNumber           string   `json:"from_number"`
	Position             int      `json:"position"`
	CallersWaiting       int      `json:"callers_waiting"`
	AgentsAvailable      int      `json:"agents_available"`
	EstimatedWaitSeconds *int     `json:"estimated_wait_seconds"`
	EnteredAt            db.Time  `json:"entered_at"`
	Contact              *Contact `json:"contact"`
}

// Payloads has one payload per webhook kind: the twelve of the contract, a closed set in v1.
var Payloads = []Payload{
	CallStarted{}, CallAnswered{}, CallEnded{}, CallMissed{}, CallRecording{}, CallTranscription{},
	VoicemailReceived{}, SMSReceived{}, SMSSent{}, UserCreated{}, NumberAllocated{}, QueueCallWaiting{},
}

// Kinds returns all webhook kinds.
func Kinds() []Kind {
	all := make([]Kind, len(Payloads))
	for i, p := range Payloads {
		all[i] = p.Kind()
	}
	return all
}

// Kind implements Payload.
func (CallStarted) Kind() Kind       { return "call.started" }
func (CallAnswered) Kind() Kind      { return "call.answered" }
func (CallEnded) Kind() Kind         { return "call.ended" }
func (CallMissed) Kind() Kind        { return "call.missed" }
func (CallRecording) Kind() Kind     { return "call.recording" }
func (CallTranscription) Kind() Kind { return "call.transcription" }
func (VoicemailReceived) Kind() Kind { return "voicemail.received" }
func (SMSReceived) Kind() Kind       { return "sms.received" }
func (SMSSent) Kind() Kind           { return "sms.sent" }
func (UserCreated) Kind() Kind       { return "user.created" }
func (NumberAllocated) Kind() Kind   { return "number.allocated" }
func (QueueCallWaiting) Kind() Kind  { return "queue.call_waiting" }

// Call implements Payload.
func (e CallStarted) Call() string       { return e.CallID }
func (e CallAnswered) Call() string      { return e.CallID }
func (e CallEnded) Call() string         { return e.CallID }
func (e CallMissed) Call() string        { return e.CallID }
func (e CallRecording) Call() string     { return e.CallID }
func (e CallTranscription) Call() string { return e.CallID }
func (e VoicemailReceived) Call() string { return e.CallID }
func (SMSReceived) Call() string         { return "" }
func (SMSSent) Call() string             { return "" }
func (UserCreated) Call() string         { return "" }
func (NumberAllocated) Call() string     { return "" }
func (e QueueCallWaiting) Call() string  { return e.CallID }
