package call

import (
	"context"
	"time"
)

// Switch carries out commands on calls in progress. Package pbx implements it.
//
// A command returns once the other side has confirmed its effect and the effect is stored. Otherwise it returns an
// *op.Error, and the call is unchanged: op.NotFound if the call is not in progress here, op.State with the actions
// that the call allows.
type Switch interface {
	// Place starts an outbound call. Its row is committed when Place returns. Ringing and answer follow as changes.
	Place(ctx context.Context, p Placement) error
	// Do carries out a command on a call in progress.
	Do(ctx context.Context, org, id string, c Command) (Result, error)
	// Timeline returns the timeline of a call in progress so far. ok is false if the call is not in progress here.
	Timeline(org, id string) (s Timeline, ok bool)
}

// Placement describes a call to place. The user's phones ring first, then the destination is dialled.
type Placement struct {
	Org, ID      string
	Sandbox      bool
	Source       string // api, mcp, console, callback
	UserID       string // user to ring first
	DeviceID     string // rings only this device of the user; "" for all
	ScriptTarget string // flow:flw_… or queue:que_…: no user's phone rings; the script runs for the called party; "" for none
	To           string // E.164, extension, or sip: address, as requested
	From         string // E.164 of the organisation to show; "" for the user's or organisation's own
	RingTimeout  time.Duration
	DialTimeout  time.Duration // how long the destination rings; 0: as long as the user's phones
	// name on the user's phones for a call that the user did not request, such as the queue's title; the phones ring as for any call
	DisplayName string
	MaxDuration time.Duration
	Record      string // default, on, off
	Machine     string // off, detect, hangup
	Announce    string // text spoken to the called party before both are connected
	Headers     map[string]string
	Metadata    map[string]string
	Reference   string // client_reference
	Reason      string
	By          Author // author of the request; zero: the user
}

// Command is one of the types below, which act on a call in progress.
type Command interface{ command() }

// Result holds the results of a command that are not in the call's row.
type Result struct {
	MonitorID string
	LegID     string
	Digits    int
	Method    string // for DTMF: rfc4733, info or inband
}

// End hangs up every side. Before the answer it cancels the call.
type End struct {
	Reason string // free text, stored in the call's record
}

// Hold puts the other side on hold with music. An empty AudioID selects the organisation's music.
type Hold struct{ AudioID string }

// Unhold takes the call off hold.
type Unhold struct{}

// Transfer connects the remaining side to another party.
type Transfer struct {
	To          string // number, ext:, user:, sip:
	Warm        bool   // the agent talks to the target first
	From        string
	Timeout     time.Duration
	OnFail      string // return, voicemail, hangup
	NoScreenPop bool   // the target gets no screen pop
}

// CompleteTransfer ends the consultation of a warm transfer. It connects the two other parties, or all three if
// Conference is set.
type CompleteTransfer struct{ Conference bool }

// CancelTransfer ends the consultation of a warm transfer and resumes the party on hold.
type CancelTransfer struct{}

// DTMF sends digits to a leg. Without LegID it is the leg of the far side.
type DTMF struct {
	Digits        string // 0-9 * # A-D, w waits 500 ms
	Duration, Gap time.Duration
	Method        string // auto, rfc4733, info, inband
	LegID         string
}

// Mute mutes a leg for all other sides, or unmutes it. Without LegID it is the agent's leg.
type Mute struct {
	LegID string
	On    bool
}

// StartRecording starts a recording.
type StartRecording struct {
	Channels int // 1 or 2
	Announce *bool
	Trigger  string // agent, api, supervisor
}

// StopRecording ends the recording; it becomes available while the call goes on.
type StopRecording struct{}

// PauseRecording pauses the recording. Speech during the pause is not in the recording, its transcript or anything
// derived from them.
type PauseRecording struct {
	Reason     string        // payment, sensitive, consent, other
	AutoResume time.Duration // 0: until ResumeRecording
}

// ResumeRecording ends a pause.
type ResumeRecording struct{}

// Announce plays a prompt to one side or all.
type Announce struct {
	AudioID     string
	Text, Voice string
	To          string // caller, agent, all
	Interrupt   bool   // replaces a prompt that is playing, instead of following it
}

// StartMonitor connects a supervisor's device, which listens, whispers or barges in.
type StartMonitor struct {
	ID               string // of the monitor record; "" creates one
	UserID, DeviceID string
	Mode             string // listen, whisper, barge
	BrowserOnly      bool   // rings only phones in browsers (WebRTC)
}

// UpdateMonitor changes the mode of a supervisor.
type UpdateMonitor struct{ ID, Mode string }

// EndMonitor hangs up the supervisor's leg.
type EndMonitor struct{ ID string }

// Accept makes the user's ringing device answer, if the device supports remote answer.
type Accept struct{ DeviceID string }

// AddParticipant dials another party into the call.
type AddParticipant struct {
	LegID    string // of the first leg that is dialled; "" creates one
	To, From string
	Timeout  time.Duration
}

// RemoveParticipant hangs up one leg. If only two legs are left, it fails: End hangs up both.
type RemoveParticipant struct{ LegID string }

func (End) command()               {}
func (Hold) command()              {}
func (Unhold) command()            {}
func (Transfer) command()          {}
func (CompleteTransfer) command()  {}
func (CancelTransfer) command()    {}
func (DTMF) command()              {}
func (Mute) command()              {}
func (StartRecording) command()    {}
func (StopRecording) command()     {}
func (PauseRecording) command()    {}
func (ResumeRecording) command()   {}
func (Announce) command()          {}
func (StartMonitor) command()      {}
func (UpdateMonitor) command()     {}
func (EndMonitor) command()        {}
func (Accept) command()            {}
func (AddParticipant) command()    {}
func (RemoveParticipant) command() {}
