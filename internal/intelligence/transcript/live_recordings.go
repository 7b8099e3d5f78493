package transcript

import (
	"os"
	"time"

	"soniq/internal/platform/event"
)

// liveRecording is a recording that is or was transcribed while it was written.
type liveRecording struct {
	*LiveTranscription
	id      string // id of the future transcript
	path    string
	partial bool // its beginning was written by an earlier run of the process and not transcribed live
	began   time.Time
	ended   time.Time
}

// liveRecordings are the live recordings of one call, in order.
type liveRecordings []*liveRecording

// segments returns the segments recognised so far, with times from the start of the first recording.
func (h liveRecordings) segments() []Segment {
	var all []Segment
	for _, l := range h {
		all = append(all, shifted(l.Segments(), l.began.Sub(h[0].began))...)
	}
	return inOrder(all)
}

// forPath returns a recording that was transcribed live from its beginning; nil if there is none.
func (h liveRecordings) forPath(path string) *liveRecording {
	for _, l := range h {
		if l.path == path && !l.partial {
			return l
		}
	}
	return nil
}

// shifted adds a duration to the times of segments.
func shifted(segments []Segment, by time.Duration) []Segment {
	ms := int(by.Milliseconds())
	for i := range segments {
		s := &segments[i]
		s.StartMS, s.EndMS = s.StartMS+ms, s.EndMS+ms
		words := make([]Word, len(s.Words))
		for j, w := range s.Words {
			w.StartMS, w.EndMS = w.StartMS+ms, w.EndMS+ms
			words[j] = w
		}
		if s.Words != nil {
			s.Words = words
		}
	}
	return segments
}

// hasBeginning reports whether a recording already has audio from before a restart.
func hasBeginning(path string) bool {
	info, err := os.Stat(path + ".part")
	return err == nil && info.Size() > maxWAVHeader
}

// maxWAVHeader is more than the size of a recording without audio.
const maxWAVHeader = 64

// streamSegments returns a function that publishes a new segment on the live stream.
func (s *Service) streamSegments(org, callID string, offset time.Duration) func(Segment) {
	ms := int(offset.Milliseconds())
	return func(x Segment) {
		s.publishSegment(org, event.CallTranscriptSegment{CallID: callID, Speaker: string(x.Speaker), Channel: x.Channel,
			StartMS: x.StartMS + ms, EndMS: x.EndMS + ms, Text: x.Text, Confidence: x.Confidence})
	}
}
