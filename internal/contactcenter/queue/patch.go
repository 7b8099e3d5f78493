package queue

import (
	"maps"

	"soniq/internal/identity/org"
	"soniq/internal/platform/op"
)

// Fields are the values of a new queue, or a merge patch of one. null restores the default.
type Fields struct {
	Name              op.Change[string]         `json:"name,omitzero"`
	Extension         op.Change[string]         `json:"extension,omitzero" doc:"2 to 6 digits that nobody else has"`
	Strategy          op.Change[string]         `json:"strategy,omitzero" doc:"ring_all, round_robin, longest_idle, fewest_calls, priority, skills or random"`
	RingTimeout       op.Change[int]            `json:"ring_timeout_seconds,omitzero" doc:"5 to 120; 20 unless given"`
	RetryDelay        op.Change[int]            `json:"retry_delay_seconds,omitzero"`
	WrapUp            op.Change[int]            `json:"wrap_up_seconds,omitzero"`
	MaxWait           op.Change[int]            `json:"max_wait_seconds,omitzero"`
	MaxCallers        op.Change[int]            `json:"max_callers,omitzero"`
	JoinWhenNoAgents  op.Change[bool]           `json:"join_when_no_agents,omitzero"`
	LeaveWhenNoAgents op.Change[bool]           `json:"leave_when_no_agents,omitzero"`
	Overflow          op.Change[OverflowPatch]  `json:"overflow,omitzero"`
	Priority          op.Change[int]            `json:"priority,omitzero"`
	MusicAudioID      op.Change[string]         `json:"music_audio_id,omitzero"`
	Announce          op.Change[AnnouncePatch]  `json:"announce,omitzero"`
	Callback          op.Change[CallbackPatch]  `json:"callback,omitzero"`
	WhisperAudioID    op.Change[string]         `json:"whisper_audio_id,omitzero"`
	RecordingMode     op.Change[string]         `json:"recording_mode,omitzero" doc:"inherit, on or off"`
	ServiceLevel      op.Change[int]            `json:"service_level_seconds,omitzero"`
	ShortAbandon      op.Change[int]            `json:"short_abandon_seconds,omitzero"`
	MissedOffersLimit op.Change[int]            `json:"missed_offers_limit,omitzero"`
	MissedOffersPause op.Change[int]            `json:"missed_offers_pause_seconds,omitzero"`
	RequiredSkills    op.Change[map[string]int] `json:"required_skills,omitzero" doc:"Level 1 to 10 by skill; replaced as a whole"`
	Hours             op.Change[org.Hours]      `json:"hours,omitzero" doc:"Replaced as a whole"`

	Dispositions        op.Change[[]Disposition] `json:"dispositions,omitzero" doc:"At most 100, with different codes of 1 to 64 characters and labels of 1 to 120; replaced as a whole"`
	DispositionRequired op.Change[bool]          `json:"disposition_required,omitzero"`
}

// OverflowPatch changes Overflow.
type OverflowPatch struct {
	To           op.Change[string] `json:"to,omitzero"`
	AfterSeconds op.Change[int]    `json:"after_seconds,omitzero"`
}

// AnnouncePatch changes Announce.
type AnnouncePatch struct {
	Position      op.Change[bool]   `json:"position,omitzero"`
	EstimatedWait op.Change[bool]   `json:"estimated_wait,omitzero"`
	EverySeconds  op.Change[int]    `json:"every_seconds,omitzero"`
	AudioID       op.Change[string] `json:"audio_id,omitzero"`
}

// CallbackPatch changes Callback.
type CallbackPatch struct {
	Enabled           op.Change[bool]   `json:"enabled,omitzero"`
	Key               op.Change[string] `json:"key,omitzero"`
	OfferAfterSeconds op.Change[int]    `json:"offer_after_seconds,omitzero"`
	MaxAttempts       op.Change[int]    `json:"max_attempts,omitzero"`
}

// applyChange applies a change. null sets the default.
func applyChange[T any](c op.Change[T], to *T, usual T) {
	switch {
	case c.Null:
		*to = usual
	case c.Set:
		*to = c.V
	}
}

// applyOptional applies a change to a field that may be null.
func applyOptional[T comparable](c op.Change[T], to **T) {
	var none T
	switch {
	case c.Null || c.Set && c.V == none && any(none) == any(""):
		*to = nil
	case c.Set:
		v := c.V
		*to = &v
	}
}

func (f Fields) apply(k *Queue) {
	d := defaults()
	applyChange(f.Name, &k.Name, "")
	applyOptional(f.Extension, &k.Extension)
	applyChange(f.Strategy, &k.Strategy, d.Strategy)
	applyChange(f.RingTimeout, &k.RingTimeout, d.RingTimeout)
	applyChange(f.RetryDelay, &k.RetryDelay, d.RetryDelay)
	applyChange(f.WrapUp, &k.WrapUp, d.WrapUp)
	applyChange(f.MaxWait, &k.MaxWait, d.MaxWait)
	applyChange(f.MaxCallers, &k.MaxCallers, d.MaxCallers)
	applyChange(f.JoinWhenNoAgents, &k.JoinWhenNoAgents, d.JoinWhenNoAgents)
	applyChange(f.LeaveWhenNoAgents, &k.LeaveWhenNoAgents, d.LeaveWhenNoAgents)
	applyChange(f.Priority, &k.Priority, d.Priority)
	applyOptional(f.MusicAudioID, &k.MusicAudioID)
	applyOptional(f.WhisperAudioID, &k.WhisperAudioID)
	applyChange(f.RecordingMode, &k.RecordingMode, d.RecordingMode)
	applyChange(f.ServiceLevel, &k.ServiceLevel, d.ServiceLevel)
	applyChange(f.ShortAbandon, &k.ShortAbandon, d.ShortAbandon)
	applyChange(f.MissedOffersLimit, &k.MissedOffersLimit, d.MissedOffersLimit)
	applyChange(f.MissedOffersPause, &k.MissedOffersPause, d.MissedOffersPause)
	if f.RequiredSkills.Set {
		k.RequiredSkills = map[string]int{}
		maps.Copy(k.RequiredSkills, f.RequiredSkills.V)
	}
	if f.Dispositions.Set {
		k.Dispositions = append([]Disposition{}, f.Dispositions.V...)
	}
	applyChange(f.DispositionRequired, &k.DispositionRequired, false)
	if f.Hours.Set {
		k.Hours = nil
		if !f.Hours.Null {
			k.Hours = &f.Hours.V
		}
	}
	f.applyNested(k, d)
}

// applyNested applies the changes of fields that are objects.
func (f Fields) applyNested(k *Queue, d Settings) {
	switch {
	case f.Overflow.Null:
		k.Overflow = nil
	case f.Overflow.Set:
		o := Overflow{}
		if k.Overflow != nil {
			o = *k.Overflow
		}
		applyChange(f.Overflow.V.To, &o.To, "")
		applyOptional(f.Overflow.V.AfterSeconds, &o.AfterSeconds)
		k.Overflow = &o
	}
	if f.Announce.Null {
		k.Announce = d.Announce
	}
	a := f.Announce.V
	applyChange(a.Position, &k.Announce.Position, false)
	applyChange(a.EstimatedWait, &k.Announce.EstimatedWait, false)
	applyChange(a.EverySeconds, &k.Announce.EverySeconds, d.Announce.EverySeconds)
	applyOptional(a.AudioID, &k.Announce.AudioID)
	if f.Callback.Null {
		k.Callback = d.Callback
	}
	c := f.Callback.V
	applyChange(c.Enabled, &k.Callback.Enabled, false)
	applyChange(c.Key, &k.Callback.Key, d.Callback.Key)
	applyChange(c.OfferAfterSeconds, &k.Callback.OfferAfterSeconds, d.Callback.OfferAfterSeconds)
	applyChange(c.MaxAttempts, &k.Callback.MaxAttempts, d.Callback.MaxAttempts)
}
