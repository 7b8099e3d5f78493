package queue

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

var (
	extensionForm = regexp.MustCompile(`^[0-9]{2,6}$`)
	keyForm       = regexp.MustCompile(`^[0-9*#]$`)
	strategies    = []string{"ring_all", "round_robin", "longest_idle", "fewest_calls", "priority", "skills", "random"}
)

// check returns an error that lists every violation of a queue. was is its extension before the change; nil for none.
func (s *Service) check(ctx context.Context, k Queue, was *string) error {
	wrong := k.violations()
	more, err := s.referenceViolations(ctx, k, was)
	if err != nil {
		return err
	}
	if wrong = append(wrong, more...); len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	return nil
}

// violations lists the violations that need no database.
func (k Queue) violations() (wrong []op.Violation) {
	want := func(ok bool, field, code, message string) {
		if !ok {
			wrong = append(wrong, op.Field(field, code, message))
		}
	}
	want(strings.TrimSpace(k.Name) != "" && len([]rune(k.Name)) <= 120, "name", "invalid_length", "must have 1 to 120 characters")
	want(k.Extension == nil || extensionForm.MatchString(*k.Extension), "extension", "invalid_extension", "must be 2 to 6 digits")
	want(slices.Contains(strategies, k.Strategy), "strategy", "invalid_value", "must be one of "+strings.Join(strategies, ", "))
	want(slices.Contains([]string{"inherit", "on", "off"}, k.RecordingMode), "recording_mode", "invalid_value",
		"must be inherit, on or off")
	want(keyForm.MatchString(k.Callback.Key), "callback.key", "invalid_key", "must be a digit, * or #")
	for _, x := range k.ranges() {
		want(x.is >= x.from && x.is <= x.to, x.field, "out_of_range", fmt.Sprintf("must be %d to %d", x.from, x.to))
	}
	want(len(k.RequiredSkills) <= 20, "required_skills", "too_many", "at most 20 skills")
	wrong = append(wrong, skillViolations("required_skills", k.RequiredSkills)...)
	wrong = append(wrong, dispositionViolations(k.Dispositions)...)
	if k.Hours != nil {
		wrong = append(wrong, k.Hours.Violations("hours")...)
	}
	return wrong
}

type numberRange struct {
	field        string
	is, from, to int
}

// ranges returns the numeric settings of a queue and their limits.
func (k Queue) ranges() []numberRange {
	all := []numberRange{
		{"ring_timeout_seconds", k.RingTimeout, 5, 120}, {"retry_delay_seconds", k.RetryDelay, 0, 600},
		{"wrap_up_seconds", k.WrapUp, 0, 3600}, {"max_wait_seconds", k.MaxWait, 5, 86400}, {"max_callers", k.MaxCallers, 0, 10000},
		{"priority", k.Priority, -100, 100}, {"announce.every_seconds", k.Announce.EverySeconds, 10, 3600},
		{"callback.offer_after_seconds", k.Callback.OfferAfterSeconds, 0, 86400}, {"callback.max_attempts", k.Callback.MaxAttempts, 1, 10},
		{"service_level_seconds", k.ServiceLevel, 1, 3600}, {"short_abandon_seconds", k.ShortAbandon, 0, 300},
		{"missed_offers_limit", k.MissedOffersLimit, 0, 100}, {"missed_offers_pause_seconds", k.MissedOffersPause, 1, 86400},
	}
	if k.Overflow != nil && k.Overflow.AfterSeconds != nil {
		all = append(all, numberRange{"overflow.after_seconds", *k.Overflow.AfterSeconds, 0, 86400})
	}
	return all
}

func skillViolations(field string, skills map[string]int) (wrong []op.Violation) {
	for name, level := range skills {
		if name == "" || len([]rune(name)) > 40 || level < 1 || level > 10 {
			wrong = append(wrong, op.Field(field+"."+name, "invalid_skill",
				"a skill has a name of 1 to 40 characters and a level of 1 to 10"))
		}
	}
	return wrong
}

// referenceViolations lists references of a queue to objects that do not exist.
func (s *Service) referenceViolations(ctx context.Context, k Queue, was *string) (wrong []op.Violation, err error) {
	for field, id := range map[string]*string{"music_audio_id": k.MusicAudioID, "whisper_audio_id": k.WhisperAudioID,
		"announce.audio_id": k.Announce.AudioID} {
		if id == nil {
			continue
		}
		if has, err := s.cfg.Prompts.HasAudio(ctx, k.OrgID, *id); err != nil {
			return nil, err
		} else if !has {
			wrong = append(wrong, op.Field(field, "not_found", "there is no such audio"))
		}
	}
	if k.Overflow != nil {
		no, err := s.cfg.Destinations.CheckDestination(ctx, k.OrgID, k.Overflow.To)
		if err != nil {
			return nil, err
		}
		if k.Overflow.To == "queue:"+k.ID {
			no = "a queue cannot overflow into itself"
		}
		if no != "" {
			wrong = append(wrong, op.Field("overflow.to", "invalid_destination", no))
		}
	}
	o, err := s.cfg.Orgs.Get(ctx, k.OrgID)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	// An extension from before its number was reserved stays, so that the queue can still be changed.
	changed := k.Extension != nil && (was == nil || *was != *k.Extension)
	if changed && s.cfg.Destinations.IsReserved(o.Country, *k.Extension) {
		wrong = append(wrong, op.Field("extension", "reserved", *k.Extension+" reaches an emergency service or a crisis line"))
	}
	return wrong, nil
}

// save writes a queue. It refuses an extension that is taken.
func (s *Service) save(ctx context.Context, k Queue, write func(context.Context, db.Querier, Queue) error) error {
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return write(ctx, tx, k) })
	if db.IsConflict(err) {
		return op.Fail("extension_taken", "extension "+*k.Extension+" is taken")
	}
	return err
}
