package call

import (
	"context"
	"time"
)

// A Switch carries out commands on calls in progress. Package pbx fills it.
//
// A command returns when its effect is confirmed by the other side and written down, or with an *op.Error that has left the
// call as it was: op.NotFound when the call is not in progress here, op.State with the actions the call allows.
type Switch interface {
	// Place starts a call of ours. Its row is committed when it returns; ringing and answers follow as facts.
	Place(ctx context.Context, p Placement) error
	// Do carries out a command on a call in progress.
	Do(ctx context.Context, org, id string, c Command) (Result, error)
	// Story tells the steps of a call in progress so far; ok is false when it is not in progress here.
	Story(org, id string) (s Story, ok bool)
}

// A Placement is a call to place: the user's phones ring first, then the destination is dialled.
type Placement struct {
	Org, ID     string
	Sandbox     bool
	Source      string // api, mcp, console, callback
	UserID      string // whose phones ring first
	DeviceID    string // ring only this device of theirs; may be empty
	Lead        string // flow:flw_… or queue:que_…: rings nobody of ours, and leads who answers there; "" else
	To          string // E.164, extension, or sip: address, as asked
	From        string // E.164 of the organisation to show; "" for the user's or organisation's own
	RingTimeout time.Duration
	DialTimeout time.Duration // how long the destination rings; 0: as long as the user's phones
	Show        string        // of a call the user did not ask for: what it is about, such as the name of a queue; their phones ring as for any call
	MaxDuration time.Duration
	Record      string // default, on, off
	Machine     string // off, detect, hangup
	Announce    string // said to who answers before both are connected
	Headers     map[string]string
	Metadata    map[string]string
	Reference   string // client_reference
	Reason      string
	By          Author // who asks; zero: nobody but the user
}

// A Command is something to do with a call in progress: one of the types below.
type Command interface{ command() }

// A Result tells what a command did, where the call's row does not.
type Result struct {
	MonitorID string
	LegID     string
	Digits    int
	Method    string // of DTMF: rfc4733, info or inband
}

// End hangs up every side. Before the answer it cancels.
type End struct {
	Reason string // free text, for the record
}

// Hold puts the other side on hold with music; AudioID "" is the organisation's own.
type Hold struct{ AudioID string }

// Unhold takes the call off hold.
type Unhold struct{}

// Transfer hands the remaining side over to somebody else.
type Transfer struct {
	To      string // number, ext:, user:, sip:
	Warm    bool   // the agent talks to the target first
	From    string
	Timeout time.Duration
	OnFail  string // return, voicemail, hangup
	Unshown bool   // the target gets no screen pop
}

// CompleteTransfer ends the consultation of a warm transfer by connecting the two others, or all three.
type CompleteTransfer struct{ Conference bool }

// CancelTransfer goes back to the party on hold.
type CancelTransfer struct{}

// DTMF sends digits to a leg, the far side's unless one is named.
type DTMF struct {
	Digits        string // 0-9 * # A-D, w waits 500 ms
	Duration, Gap time.Duration
	Method        string // auto, rfc4733, info, inband
	LegID         string
}

// Mute keeps what a leg says from everybody, the agent's unless one is named.
type Mute struct {
	LegID string
	On    bool
}

// StartRecording records from now on.
type StartRecording struct {
	Channels int // 1 or 2
	Announce *bool
	Trigger  string // agent, api, supervisor
}

// StopRecording ends the recording; it becomes available while the call goes on.
type StopRecording struct{}

// PauseRecording keeps what is said out of the recording, its transcript and everything made of it.
type PauseRecording struct {
	Reason     string        // payment, sensitive, consent, other
	AutoResume time.Duration // 0: until resumed
}

// ResumeRecording records again.
type ResumeRecording struct{}

// Announce plays a prompt to one side or all.
type Announce struct {
	AudioID     string
	Text, Voice string
	To          string // caller, agent, all
	Interrupt   bool   // instead of a prompt that is playing, not after it
}

// StartMonitor lets a supervisor listen, whisper or barge, by a device of theirs.
type StartMonitor struct {
	ID               string // of the record; "": a new one
	UserID, DeviceID string
	Mode             string // listen, whisper, barge
	Browser          bool   // rings no phone but those in browsers
}

// UpdateMonitor changes the mode.
type UpdateMonitor struct{ ID, Mode string }

// EndMonitor hangs the supervisor up.
type EndMonitor struct{ ID string }

// Accept answers a ringing call on the user's device, where the device can be told to.
type Accept struct{ DeviceID string }

// AddParticipant dials somebody into the call.
type AddParticipant struct {
	LegID    string // of the first leg that is dialled; "": a new one
	To, From string
	Timeout  time.Duration
}

// RemoveParticipant hangs up one leg; the last two cannot be removed but by End.
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
