package transcript

import (
	"errors"

	"soniq/internal/platform/event"
)

// setOutcome sets the final state of the transcript. An error that is worth a retry is returned, except on the last
// attempt: then recognised segments are kept, or the transcript has failed.
func (s *Service) setOutcome(t *Transcript, segments []Segment, err error, last bool) error {
	missing, noEngine := AsMissingDependency(err)
	_, foreign := AsUnsupportedLanguage(err)
	switch {
	case foreign:
		segments = nil // words of another language mean nothing
		t.skip(SkippedLanguage, event.NewFault(SkippedLanguage, missing))
	case errors.Is(err, ErrDisabled):
		t.skip(SkippedDisabled, nil)
	case errors.Is(err, ErrTooShort):
		t.skip(SkippedTooShort, nil)
	case errors.Is(err, errNoFile):
		t.skip(SkippedNoAudio, nil)
	case noEngine:
		t.skip(SkippedNoEngine, event.NewFault(SkippedNoEngine, missing))
	case err != nil && !last:
		return err
	case err != nil && len(segments) == 0:
		t.Status, t.Error = Failed, event.NewFault("transcription_failed", err)
	case len(segments) == 0:
		t.skip(SkippedNoAudio, nil)
	default:
		t.Status = Completed
	}
	if t.Status == Completed {
		t.Engine = s.engineOf(segments)
	}
	t.Segments, t.Text, t.WordCount = segments, TextOf(segments), wordCount(segments)
	for _, x := range segments {
		t.DurationSeconds = max(t.DurationSeconds, (x.EndMS+999)/1000)
	}
	return nil
}

func (t *Transcript) skip(reason string, f *event.Fault) {
	t.Status, t.SkippedReason, t.Error = Skipped, &reason, f
}
