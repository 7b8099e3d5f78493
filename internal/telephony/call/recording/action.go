package recording

import (
	"context"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

func (s *Service) recordingOperations() []op.Operation {
	w := access.CallsWrite
	return []op.Operation{
		op.New("calls.recording.start", "POST /calls/{id}/recording/start", w, "Start recording the call",
			s.RecordCall).WithSideEffects().Async().Fails("recording_disabled", "plan_limit"),
		op.New("calls.recording.stop", "POST /calls/{id}/recording/stop", w, "Stop recording the call",
			s.StopRecord).WithSideEffects().Async(),
		op.New("calls.recording.pause", "POST /calls/{id}/recording/pause", w, "Leave what is said from now on out of the recording",
			s.PauseRecord).WithSideEffects().Async(),
		op.New("calls.recording.resume", "POST /calls/{id}/recording/resume", w, "Record again", s.ResumeRecord).WithSideEffects().Async(),
	}
}

// RecordCallIn holds the input of RecordCall.
type RecordCallIn struct {
	call.ActionIn
	Body *struct {
		Channels int   `json:"channels,omitempty" minimum:"1" maximum:"2" default:"2" doc:"2: the caller left, who answered right; 1: both in one"`
		Announce *bool `json:"announce,omitempty" doc:"Tell both sides; as the organisation's settings say unless given"`
	}
}

// RecordCall starts a recording of the call.
func (s *Service) RecordCall(ctx context.Context, in *RecordCallIn) (*op.Out[call.Call], error) {
	c := call.StartRecording{Channels: 2, Trigger: "api"}
	if p, _ := access.From(ctx); p.UserID != "" {
		c.Trigger = "agent"
	}
	if in.Body != nil {
		c.Announce = in.Body.Announce
		if in.Body.Channels != 0 {
			c.Channels = in.Body.Channels
		}
	}
	return s.cfg.Calls.RunAction(ctx, in.ActionIn, c)
}

// StopRecord ends the recording; it becomes available while the call goes on.
func (s *Service) StopRecord(ctx context.Context, in *call.EmptyIn) (*op.Out[call.Call], error) {
	return s.cfg.Calls.RunAction(ctx, in.ActionIn, call.StopRecording{})
}

// PauseIn holds the input of PauseRecord.
type PauseIn struct {
	call.ActionIn
	Body *struct {
		Reason            string `json:"reason,omitempty" enum:"payment,sensitive,consent,other" default:"other"`
		AutoResumeSeconds int    `json:"auto_resume_seconds,omitempty" minimum:"5" maximum:"600" doc:"Record again by itself after this time; until resumed unless given"`
	}
}

// PauseRecord pauses the recording. Speech during the pause is not in the recording, the transcript or anything
// derived from them.
func (s *Service) PauseRecord(ctx context.Context, in *PauseIn) (*op.Out[call.Call], error) {
	c := call.PauseRecording{Reason: "other"}
	if in.Body != nil {
		c.AutoResume = time.Duration(in.Body.AutoResumeSeconds) * time.Second
		if in.Body.Reason != "" {
			c.Reason = in.Body.Reason
		}
	}
	return s.cfg.Calls.RunAction(ctx, in.ActionIn, c)
}

// ResumeRecord ends a pause of the recording.
func (s *Service) ResumeRecord(ctx context.Context, in *call.EmptyIn) (*op.Out[call.Call], error) {
	return s.cfg.Calls.RunAction(ctx, in.ActionIn, call.ResumeRecording{})
}
