package call

import (
	"encoding/json"
	"time"

	"soniq/internal/platform/event"
)

// Change is a change of a call in progress. It is written in one transaction with its events. It is written only if
// Revision is higher than the stored one, so writing it twice has the effect of once.
//
// The field names of Change and of the types in it are stored as JSON in the journal and in call_dialogs.
type Change struct {
	Org, ID  string
	Revision int
	At       time.Time

	Row        State
	Legs       []LegState        // new or changed ones; written by id
	Monitors   []MonitorState    // new or changed ones; written by id
	Recordings []RecordingChange // new or changed ones; written by id
	Events     []event.Payload
	// Dialogs holds the SIP dialogs that a restarted node needs to resume the call. nil leaves the stored ones
	// unchanged; if Fleeting is set, none are stored.
	Dialogs  json.RawMessage `json:",omitempty"`
	Fleeting bool
	// Done is called after the commit; it may be nil.
	Done func() `json:"-"`
}

// State holds the columns of a call's row that change while the call is in progress. It is always complete.
type State struct {
	Status     Status
	Stage      string
	RingingAt  time.Time
	AnsweredAt time.Time
	Ring       time.Duration
	HeldSince  time.Time
	Hold       time.Duration // without the current hold
	Muted      bool
	AnsweredBy string // callee or agent
	Agent      Party  // connected now, or last
	UserID     string // user on whose behalf the call was placed
	DeviceID   string
	TrunkID    string
	Transfer   *TransferState
	// TransferredTo is the target of the last completed transfer.
	TransferredTo string
	Machine       *bool  // answered by a machine (AMD); nil: unknown
	Recording     string // off, recording, paused, stopped
	RecordingID   string
	Consent       string
}

// LegState is the current state of a leg.
type LegState struct {
	ID         string
	Role       string // caller, callee, agent, ai, monitor, system
	UserID     string
	DeviceID   string
	TrunkID    string
	Number     string
	Status     string // ringing, answered, held, ended, failed
	Codec      string
	SRTP       bool
	HeldBy     string // peer, api
	SIPCallID  string
	StartedAt  time.Time
	AnsweredAt time.Time
	EndedAt    time.Time
	EndReason  string
	SIPStatus  int
	Quality    json.RawMessage `json:",omitempty"` // LegQuality as JSON (api-surface 6.17), set when the leg has ended
	Work       *Work           `json:",omitempty"` // set when the leg has ended, if its user served the call
}

// Work holds the seconds of a call that a user served. Those of all users are together at most the call's.
type Work struct{ Talk, Hold int }

// TransferState is the current state of a transfer (api-surface 7.1).
type TransferState struct {
	Mode          string     `json:"mode" enum:"blind,warm"`
	To            string     `json:"to"`
	TargetLegID   *string    `json:"target_leg_id"`
	Status        string     `json:"status" enum:"started,ringing,consulting,completed,failed,canceled"`
	StartedAt     time.Time  `json:"started_at"`
	FinishedAt    *time.Time `json:"finished_at"`
	FailureReason *string    `json:"failure_reason"`
	SIPStatus     *int       `json:"sip_status"`
}

// MonitorState is the current state of a supervisor on a call.
type MonitorState struct {
	ID           string
	SupervisorID string
	Mode         string
	Status       string // ringing, active, ended
	StartedAt    time.Time
	EndedAt      time.Time
}

// RecordingChange is the current state of a recording. New is set when it begins.
type RecordingChange struct {
	ID     string
	New    *NewRecording
	Status string // recording, paused, processing
	Pauses []Pause
}

// Timeline holds the events of a call in order, and its SIP messages.
type Timeline struct {
	Steps    []TimelineEntry
	Messages []Message
}

// CallTimeline is the timeline of a call that has ended.
type CallTimeline struct {
	Org, CallID string
	Timeline
}

// TimelineEntry is one event of a timeline (calls.events).
type TimelineEntry struct {
	At     time.Time      `json:"at"`
	Kind   string         `json:"kind"` // such as leg.ringing, call.held, transfer.failed, api.hold
	LegID  string         `json:"leg_id,omitempty"`
	Detail map[string]any `json:"detail,omitempty"`
}

// Message is one SIP message of a call, without secrets (calls.trace).
type Message struct {
	At        time.Time `json:"at"`
	Sent      bool      `json:"sent"`
	Transport string    `json:"transport"`
	Local     string    `json:"local"`
	Remote    string    `json:"remote"`
	LegID     string    `json:"leg_id,omitempty"`
	Text      string    `json:"text"`
}
