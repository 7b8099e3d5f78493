package ivr

import (
	"cmp"
	"context"
	"slices"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/messaging/sms"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// sendSMS sends the caller a text message. The outcome "sent" means that the message was accepted for sending.
func (w *flowRun) sendSMS(ctx context.Context, x *flow.SMS) (outcome string) {
	to := w.v.Info().From
	if to == call.Anonymous || to == "" {
		w.problem = "the caller's number is not known"
		return "failed"
	}
	in := &sms.CreateIn{Body: sms.Create{To: to, From: x.From, Body: w.fillTemplate(ctx, x.Body)}}
	ctx, cancel := w.writeContext(ctx)
	defer cancel()
	if _, err := w.s.cfg.Messages.Create(ctx, in); err != nil {
		w.problem = "the message was not sent: " + err.Error()
		return "failed"
	}
	return "sent"
}

// record sets whether the following conversation is recorded.
func (w *flowRun) record(ctx context.Context, x *flow.Record) (outcome string) {
	on := x.Action == "start" || x.Action == "resume"
	w.v.SetRecording(on)
	if on && x.Announce {
		clip, err := w.promptClip(ctx, flow.Prompt{Text: "This call is recorded."})
		if err != nil {
			clip = recordingTone()
		}
		if err := w.v.Play(ctx, clip, pbx.PlayOptions{}); err != nil {
			return routing.CallerGone
		}
	}
	return "done"
}

// hangUpReasons are the end reasons of the call record that a flow may set.
var hangUpReasons = []string{"busy", "rejected", "no_answer", "timeout", "no_route", "blocked", "canceled"}

// hangUp ends the call. A reason that is not in hangUpReasons is written to the timeline only.
func (w *flowRun) hangUp(ctx context.Context, x *flow.Hangup) (outcome string) {
	reason := x.Reason
	if !slices.Contains(hangUpReasons, reason) {
		w.problem, reason = reason, ""
	}
	w.endCall(ctx, reason)
	return routing.Ended
}

// endCall ends the call at the end of the flow. The call counts as missed only if it was meant for a person, or came after hours.
func (w *flowRun) endCall(ctx context.Context, reason string) {
	switch {
	case w.flowContext.Sought != "":
		w.setMissedReason(w.flowContext.Sought)
	case !w.flowContext.AfterHours:
		w.v.SetMissed(call.Served)
	}
	_ = w.v.HangUp(ctx, cmp.Or(reason, call.FlowEnded)) // an error means that the caller hung up already, or talks to a person
}

// recordingTone returns the tone that replaces the announcement "This call is recorded" if there is no text to
// speech.
func recordingTone() *clip.Clip {
	return clip.New(dsp.Tone(1400, -12, 400*time.Millisecond, 8000), 8000)
}
