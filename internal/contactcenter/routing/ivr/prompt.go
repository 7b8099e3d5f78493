package ivr

import (
	"cmp"
	"context"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/telephony/pbx"
)

// playPrompt plays a prompt to the caller. If it cannot be played, the problem is written to the call's timeline and
// the flow continues without it.
func (w *flowRun) playPrompt(ctx context.Context, p flow.Prompt, keys bool) error {
	if p.AudioID == "" && p.Text == "" {
		return w.v.Answer(ctx)
	}
	clip, err := w.promptClip(ctx, p)
	if ctx.Err() != nil {
		return pbx.ErrGone
	}
	if err != nil {
		w.problem = "the prompt was not heard: " + err.Error()
		return w.v.Answer(ctx)
	}
	return w.v.Play(ctx, clip, pbx.PlayOptions{Keys: keys})
}

// promptClip returns the audio of a prompt.
func (w *flowRun) promptClip(ctx context.Context, p flow.Prompt) (*clip.Clip, error) {
	if err := w.v.Answer(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, routing.SpeechTimeout)
	defer cancel()
	if p.AudioID != "" {
		return w.v.Clip(ctx, p.AudioID)
	}
	return w.v.Say(ctx, w.fillTemplate(ctx, p.Text), p.Voice, w.languageOf(p))
}

// languageOf returns the language of a prompt, which is that of the flow unless the prompt has its own.
func (w *flowRun) languageOf(p flow.Prompt) string { return cmp.Or(p.Lang, w.language) }

// setMissedReason sets why the call counts as missed if it ends before it is answered. After a closed business-hours
// step the reason is always "after_hours".
func (w *flowRun) setMissedReason(reason string) {
	if w.flowContext.AfterHours {
		reason = "after_hours"
	}
	w.v.SetMissed(reason)
}

// seekPerson sets that the call is meant for a person, so that it counts as missed if none answers.
func (w *flowRun) seekPerson() {
	w.flowContext.Sought = "no_answer"
	w.setMissedReason("no_answer")
}

func (w *flowRun) play(ctx context.Context, x *flow.Play) (outcome string) {
	w.setMissedReason("abandoned_in_menu")
	if err := w.playPrompt(ctx, x.Prompt, x.Interrupt); err != nil {
		return routing.CallerGone
	}
	return "done"
}
