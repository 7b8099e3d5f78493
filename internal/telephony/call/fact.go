package call

import (
	"encoding/json"
	"time"

	"soniq/internal/platform/event"
)

// A Change is what has changed in a call in progress. It is written in one transaction with its events, and only where
// Revision is higher than what is written already: writing it twice has the effect of once.
type Change struct {
	Org, ID  string
	Revision int
	At       time.Time

	Row        State
	Legs       []LegState      // new or changed ones; written by id
	Monitors   []MonitorState  // new or changed ones; written by id
	Recordings []RecordingFact // new or changed ones; written by id
	Events     []event.Payload
	// Dialogs is what a restarted node needs to carry the call on; nil leaves what is there, which is nothing where Fleeting is set.
	Dialogs  json.RawMessage `json:",omitempty"`
	Fleeting bool
	// Done is called once it is committed; nil: nobody is told.
	Done func() `json:"-"`
}

// A State is the part of a call's row that changes while it runs, all of it.
type State struct {
	Status     Status
	Stage      string
	RingingAt  time.Time
	AnsweredAt time.Time
	Ring       time.Duration
	HeldSince  time.Time
	Hold       time.Duration // without the hold that lasts
	Muted      bool
	AnsweredBy string // callee or agent
	Agent      Party  // who is connected, or was last
	UserID     string // on whose behalf it was placed
	DeviceID   string
	TrunkID    string
	Transfer   *TransferState
	// TransferredTo is where the last completed transfer led.
	TransferredTo string
	Machine       *bool  // answered by a machine
	Recording     string // off, recording, paused, stopped
	RecordingID   string
	Consent       string
}

// A LegState is one leg as it is now.
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
	Quality    json.RawMessage `json:",omitempty"` // api-surface 6.17, when it has ended
}

// A TransferState is how far a transfer has come (api-surface 7.1).
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

// A MonitorState is a supervisor on a call, as it is now.
type MonitorState struct {
	ID           string
	SupervisorID string
	Mode         string
	Status       string // ringing, active, ended
	StartedAt    time.Time
	EndedAt      time.Time
}

// A RecordingFact is a recording as it is now; New is set when it begins.
type RecordingFact struct {
	ID     string
	New    *NewRecording
	Status string // recording, paused, processing
	Pauses []Pause
}

// A Story is what happened in a call, step by step, and the messages that made it happen.
type Story struct {
	Steps    []Step
	Messages []Message
}

// Told is the story of a call that is over.
type Told struct {
	Org, CallID string
	Story
}

// A Step is one thing that happened (calls.events).
type Step struct {
	At     time.Time      `json:"at"`
	Kind   string         `json:"kind"` // such as leg.ringing, call.held, transfer.failed, api.hold
	LegID  string         `json:"leg_id,omitempty"`
	Detail map[string]any `json:"detail,omitempty"`
}

// A Message is one SIP message of a call, secrets removed (calls.trace).
type Message struct {
	At        time.Time `json:"at"`
	Sent      bool      `json:"sent"`
	Transport string    `json:"transport"`
	Local     string    `json:"local"`
	Remote    string    `json:"remote"`
	LegID     string    `json:"leg_id,omitempty"`
	Text      string    `json:"text"`
}
