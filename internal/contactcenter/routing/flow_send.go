package routing

import (
	"context"
	"slices"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/messaging/sms"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// text sends the caller a message; sent says that it is on its way.
func (w *walk) text(ctx context.Context, x *flow.SMS) (outcome string) {
	to := w.v.Info().From
	if to == call.Anonymous || to == "" {
		w.problem = "the caller's number is not known"
		return "failed"
	}
	in := &sms.CreateIn{Body: sms.Create{To: to, From: x.From, Body: w.fill(ctx, x.Body)}}
	ctx, cancel := w.writing(ctx)
	defer cancel()
	if _, err := w.s.Messages.Create(ctx, in); err != nil {
		w.problem = "the message was not sent: " + err.Error()
		return "failed"
	}
	return "sent"
}

// record says whether the conversation that follows is recorded.
func (w *walk) record(ctx context.Context, x *flow.Record) (outcome string) {
	on := x.Action == "start" || x.Action == "resume"
	w.v.SetRecording(on)
	if on && x.Announce {
		clip, err := w.voice(ctx, flow.Prompt{Text: "This call is recorded."})
		if err != nil {
			clip = recorded()
		}
		if err := w.v.Play(ctx, clip, pbx.Playing{}); err != nil {
			return Gone
		}
	}
	return "done"
}

// endings are what a flow may say of why it ends a call, in the words of the record.
var endings = []string{"busy", "rejected", "no_answer", "timeout", "no_route", "blocked", "canceled"}

// hangUp ends the call. A reason in other words is for those who read the timeline.
func (w *walk) hangUp(ctx context.Context, x *flow.Hangup) (outcome string) {
	reason := x.Reason
	if !slices.Contains(endings, reason) {
		w.problem, reason = reason, ""
	}
	_ = w.v.HangUp(ctx, reason) // who is gone already has hung up
	return Ended
}
