package call

import (
	"context"
	"errors"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// actionOperations returns the API operations on a call in progress.
func (s *Service) actionOperations() []op.Operation {
	w := access.CallsWrite
	return []op.Operation{
		op.New("calls.end", "POST /calls/{id}/end", w, "End the call", s.EndCall).WithSideEffects().Async(),
		op.New("calls.hold", "POST /calls/{id}/hold", w, "Put the call on hold", s.HoldCall).WithSideEffects().Async(),
		op.New("calls.unhold", "POST /calls/{id}/unhold", w, "Take the call off hold", s.UnholdCall).WithSideEffects().Async(),
		op.New("calls.dtmf", "POST /calls/{id}/dtmf", w, "Send DTMF tones", s.SendDTMF).WithSideEffects().Async(),
		op.New("calls.mute", "POST /calls/{id}/mute", w, "Mute one side of the call", s.MuteCall).WithSideEffects().Async(),
		op.New("calls.unmute", "POST /calls/{id}/unmute", w, "Unmute one side of the call", s.UnmuteCall).WithSideEffects().Async(),
		op.New("calls.answer", "POST /calls/{id}/answer", w, "Answer a ringing call on a phone of the user",
			s.AnswerCall).WithSideEffects().Async(),
		op.New("calls.announce", "POST /calls/{id}/announce", w, "Play an announcement into the call",
			s.AnnounceCall).WithSideEffects().Async(),
	}
}

// EndIn holds the input of EndCall.
type EndIn struct {
	ActionIn
	Body *struct {
		Reason string `json:"reason,omitempty" maxLength:"120" doc:"For the record"`
	}
}

// EndCall hangs up every side, or cancels the dialling. It is idempotent: for a call that has ended already it
// returns the call with status 200.
func (s *Service) EndCall(ctx context.Context, in *EndIn) (*op.Out[Call], error) {
	var c End
	if in.Body != nil {
		c.Reason = in.Body.Reason
	}
	out, err := s.RunAction(ctx, in.ActionIn, c)
	var e *op.Error
	if !errors.As(err, &e) || e.Code != "invalid_state" {
		return out, err
	}
	now, failed := s.currentCall(ctx, in.ID)
	if failed != nil || !now.Body.Status.Final() {
		return nil, err
	}
	return now, nil
}

// HoldIn holds the input of HoldCall.
type HoldIn struct {
	ActionIn
	Body *struct {
		AudioID string `json:"audio_id,omitempty" maxLength:"40" doc:"Music; the organisation's own unless given"`
	}
}

// HoldCall puts the other side on hold with music. It returns an error if the organisation does not have the audio
// file.
func (s *Service) HoldCall(ctx context.Context, in *HoldIn) (*op.Out[Call], error) {
	var c Hold
	if in.Body != nil {
		c.AudioID = in.Body.AudioID
	}
	if _, err := s.findCall(ctx, in.ID); err != nil {
		return nil, err
	}
	if err := s.checkAudio(ctx, "audio_id", c.AudioID); err != nil {
		return nil, err
	}
	return s.RunAction(ctx, in.ActionIn, c)
}

// EmptyIn holds the input of actions without settings.
type EmptyIn struct {
	ActionIn
	Body *struct{}
}

// UnholdCall takes the call off hold.
func (s *Service) UnholdCall(ctx context.Context, in *EmptyIn) (*op.Out[Call], error) {
	return s.RunAction(ctx, in.ActionIn, Unhold{})
}

// LegIn holds the input of an action on one leg of a call.
type LegIn struct {
	ActionIn
	Body *struct {
		LegID string `json:"leg_id,omitempty" maxLength:"40" doc:"The agent's unless given"`
	}
}

func (in *LegIn) leg() string {
	if in.Body == nil {
		return ""
	}
	return in.Body.LegID
}

// MuteCall mutes a leg: no other side of the call hears it. The agent's leg is muted if none is named.
func (s *Service) MuteCall(ctx context.Context, in *LegIn) (*op.Out[Call], error) {
	return s.RunAction(ctx, in.ActionIn, Mute{LegID: in.leg(), On: true})
}

// UnmuteCall unmutes a leg.
func (s *Service) UnmuteCall(ctx context.Context, in *LegIn) (*op.Out[Call], error) {
	return s.RunAction(ctx, in.ActionIn, Mute{LegID: in.leg()})
}

// AnswerIn holds the input of AnswerCall.
type AnswerIn struct {
	ActionIn
	Body *struct {
		DeviceID string `json:"device_id,omitempty" maxLength:"40" doc:"Any phone that rings unless given"`
	}
}

// AnswerCall makes a ringing phone answer.
func (s *Service) AnswerCall(ctx context.Context, in *AnswerIn) (*op.Out[Call], error) {
	var c Accept
	if in.Body != nil {
		c.DeviceID = in.Body.DeviceID
	}
	return s.RunAction(ctx, in.ActionIn, c)
}

// DTMFIn holds the input of SendDTMF.
type DTMFIn struct {
	ActionIn
	Body DTMFRequest
}

// DTMFRequest holds the digits to send and the way of sending them.
type DTMFRequest struct {
	Digits     string `json:"digits" pattern:"^[0-9*#A-Dw]{1,64}$" doc:"0-9, *, #, A-D; w waits 500 ms" example:"1234#"`
	DurationMS int    `json:"duration_ms,omitempty" minimum:"40" maximum:"500" default:"120"`
	GapMS      int    `json:"gap_ms,omitempty" minimum:"40" maximum:"500" default:"80"`
	Method     string `json:"method,omitempty" enum:"auto,rfc4733,info,inband" default:"auto"`
	LegID      string `json:"leg_id,omitempty" maxLength:"40" doc:"The far side's unless given"`
}

// DTMFSent reports how many digits were sent, and by which method.
type DTMFSent struct {
	CallID     string `json:"call_id"`
	DigitsSent int    `json:"digits_sent"`
	Method     string `json:"method" enum:"rfc4733,info,inband"`
}

// SendDTMF sends digits and returns once the last one is sent. If sending would take longer than the request may
// (actionTime less one second), it returns 202 and the digits are sent afterwards.
func (s *Service) SendDTMF(ctx context.Context, in *DTMFIn) (*op.Out[DTMFSent], error) {
	c, err := s.findInProgress(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	b := in.Body
	command := DTMF{Digits: b.Digits, Duration: time.Duration(b.DurationMS) * time.Millisecond,
		Gap: time.Duration(b.GapMS) * time.Millisecond, Method: b.Method, LegID: b.LegID}
	if in.isAsync() || command.duration() > actionTime-time.Second {
		out, err := s.runActionAsync(ctx, c, command)
		if err != nil {
			return nil, err
		}
		return &op.Out[DTMFSent]{Status: out.Status, Body: DTMFSent{CallID: c.ID, Method: b.Method}}, nil
	}
	r, err := s.runCommand(ctx, in.ID, command)
	if err != nil {
		return nil, err
	}
	return op.OK(DTMFSent{CallID: in.ID, DigitsSent: r.Digits, Method: r.Method})
}

// duration returns how long sending the digits takes.
func (c DTMF) duration() (d time.Duration) {
	for _, r := range c.Digits {
		if r == 'w' {
			d += 500 * time.Millisecond
		} else {
			d += c.Duration + c.Gap
		}
	}
	return d
}

// AnnounceIn holds the input of AnnounceCall.
type AnnounceIn struct {
	ActionIn
	Body AnnounceRequest
}

// AnnounceRequest names the announcement: an audio file, or a text for speech synthesis.
type AnnounceRequest struct {
	AudioID   string `json:"audio_id,omitempty" maxLength:"40"`
	Text      string `json:"text,omitempty" maxLength:"1000" doc:"Spoken instead of audio_id"`
	Voice     string `json:"voice,omitempty" maxLength:"60"`
	To        string `json:"to,omitempty" enum:"caller,agent,all" default:"all"`
	Interrupt bool   `json:"interrupt,omitempty" doc:"Instead of an announcement that is playing, not after it"`
}

// AnnounceCall plays an announcement to one side or all.
func (s *Service) AnnounceCall(ctx context.Context, in *AnnounceIn) (*op.Out[Call], error) {
	b := in.Body
	if _, err := s.findCall(ctx, in.ID); err != nil {
		return nil, err
	}
	if (b.AudioID == "") == (b.Text == "") {
		return nil, op.Invalid(op.Field("audio_id", "required", "give audio_id or text, one of them"))
	}
	if err := s.checkAudio(ctx, "audio_id", b.AudioID); err != nil {
		return nil, err
	}
	return s.RunAction(ctx, in.ActionIn, Announce(b))
}

// checkAudio returns an error if the organisation does not have the audio file. An empty id passes.
func (s *Service) checkAudio(ctx context.Context, field, id string) error {
	if id == "" {
		return nil
	}
	ok, err := false, error(nil)
	if s.cfg.Prompts != nil {
		ok, err = s.cfg.Prompts.HasAudio(ctx, access.Org(ctx), id)
	}
	if err == nil && !ok {
		err = op.Invalid(op.Field(field, "not_found", "no such audio file"))
	}
	return err
}
