// Package call stores calls: their state while they are in progress, their call detail records (CDR), notes, tags and
// timelines. It also has the API operations on calls. Package pbx carries the calls and implements Switch. The packages
// inside it observe calls: recording, callback and cdr, which only reads.
package call

import (
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Call is one call, connected or attempted, as the API shows it.
type Call struct {
	ID                  string            `json:"id" example:"call_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Direction           Direction         `json:"direction" enum:"inbound,outbound,internal"`
	Status              Status            `json:"status" enum:"queued,ringing,in_progress,on_hold,completed,missed,no_answer,busy,failed,canceled"`
	Stage               string            `json:"stage" enum:"none,routing,ivr,ai_agent,queue,agent,voicemail,transfer,conference" doc:"Where the caller is now"`
	FromNumber          string            `json:"from_number" doc:"E.164, an extension, or anonymous"`
	ToNumber            string            `json:"to_number"`
	FromName            *string           `json:"from_name"`
	Contact             *event.Contact    `json:"contact"`
	NumberID            *string           `json:"number_id"`
	FlowID              *string           `json:"flow_id"`
	QueueID             *string           `json:"queue_id"`
	DeviceID            *string           `json:"device_id"`
	AgentID             *string           `json:"agent_id" doc:"User who is connected, or was last"`
	UserID              *string           `json:"user_id" doc:"User on whose behalf it was placed"`
	StartedAt           db.Time           `json:"started_at"`
	RingingAt           *db.Time          `json:"ringing_at"`
	AnsweredAt          *db.Time          `json:"answered_at"`
	EndedAt             *db.Time          `json:"ended_at"`
	RingSeconds         int               `json:"ring_seconds"`
	QueueSeconds        int               `json:"queue_seconds"`
	HoldSeconds         int               `json:"hold_seconds"`
	TalkDurationSeconds int               `json:"talk_duration_seconds" doc:"From answer to end, less hold"`
	TotalSeconds        int               `json:"total_seconds"`
	Held                bool              `json:"held"`
	HeldSince           *db.Time          `json:"held_since"`
	Muted               bool              `json:"muted"`
	Recording           RecordingState    `json:"recording"`
	Transfer            *TransferStatus   `json:"transfer"`
	QueueEntry          *event.QueueEntry `json:"queue_entry" doc:"While the caller waits"`
	RecordingURL        *string           `json:"recording_url" doc:"Set once the audio can be fetched"`
	TranscriptID        *string           `json:"transcript_id"`
	AISummary           *string           `json:"ai_summary"`
	Sentiment           *string           `json:"sentiment" enum:"positive,neutral,negative,mixed"`
	Tags                []string          `json:"tags" nullable:"false"`
	NotesCount          int               `json:"notes_count"`
	Disposition         *string           `json:"disposition"`
	EndReason           *string           `json:"end_reason"`
	HangupBy            *string           `json:"hangup_by" enum:"caller,callee,agent,system,api"`
	MissedReason        *string           `json:"missed_reason"`
	SIPStatus           *int              `json:"sip_status"`
	Q850Cause           *int              `json:"q850_cause"`
	Quality             *event.Quality    `json:"quality"`
	Source              string            `json:"source" enum:"inbound,api,mcp,console,device,callback,sandbox"`
	Metadata            map[string]string `json:"metadata"`
	ClientReference     *string           `json:"client_reference"`
	Sandbox             bool              `json:"sandbox"`
	AnsweredByMachine   *bool             `json:"answered_by_machine"`
	Legs                []Leg             `json:"legs,omitempty" doc:"With expand=legs, and always for calls in progress"`
	Notes               []Note            `json:"notes,omitempty" doc:"With expand=notes"`
	Summary             any               `json:"summary,omitempty" doc:"With expand=summary"`
	Transcript          any               `json:"transcript,omitempty" doc:"With expand=transcript"`

	internal internalColumns
}

// internalColumns holds the columns of a call's row that the API does not show in Call.
type internalColumns struct {
	CDRID          string
	TrunkID        string
	AgentName      string
	AgentExtension string
	AnsweredBy     string
	EndPublished   bool
	TransferredTo  string
	FlowVersion    *int
	VoicemailID    string
}

// RecordingState reports whether a call is recorded, in which state the recording is, and the consent.
type RecordingState struct {
	State       string  `json:"state" enum:"off,recording,paused,stopped"`
	RecordingID *string `json:"recording_id"`
	Consent     string  `json:"consent" enum:"not_required,announced,accepted,declined"`
}

// Leg is one party's connection to a call.
type Leg struct {
	ID         string   `json:"id"`
	Role       string   `json:"role" enum:"caller,callee,agent,ai,monitor,system"`
	UserID     *string  `json:"user_id"`
	DeviceID   *string  `json:"device_id"`
	TrunkID    *string  `json:"trunk_id"`
	Number     string   `json:"number"`
	Status     string   `json:"status" enum:"ringing,answered,held,ended,failed"`
	Codec      *string  `json:"codec"`
	SRTP       bool     `json:"srtp"`
	HeldBy     *string  `json:"held_by" enum:"peer,api" doc:"peer where this side's phone put the call on hold, api where a request did"`
	SIPCallID  string   `json:"sip_call_id"`
	StartedAt  db.Time  `json:"started_at"`
	AnsweredAt *db.Time `json:"answered_at"`
	EndedAt    *db.Time `json:"ended_at"`
	EndReason  *string  `json:"end_reason"`
	SIPStatus  *int     `json:"sip_status" doc:"Why it failed, as the other side said"`

	quality string
}

// TransferStatus reports the state of the latest transfer of a call.
type TransferStatus struct {
	Mode          string   `json:"mode" enum:"blind,warm"`
	To            string   `json:"to"`
	TargetLegID   *string  `json:"target_leg_id"`
	Status        string   `json:"status" enum:"started,ringing,consulting,completed,failed,canceled"`
	StartedAt     db.Time  `json:"started_at"`
	FinishedAt    *db.Time `json:"finished_at"`
	FailureReason *string  `json:"failure_reason"`
	SIPStatus     *int     `json:"sip_status"`
}

// Direction distinguishes inbound, outbound and internal calls.
type Direction string

// The directions of a call.
const (
	Inbound  Direction = "inbound"
	Outbound Direction = "outbound"
	Internal Direction = "internal"
)

// Anonymous replaces the number of a caller that withholds it.
const Anonymous = "anonymous"
