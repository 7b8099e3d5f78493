package transcript

import (
	"os"
	"time"

	"soniq/internal/platform/event"
)

// listened is a recording that is, or was just now, listened to while it is made.
type listened struct {
	*Live
	id      string // of the transcript to be
	path    string
	partial bool // it began before we listened: an earlier run of the process recorded its beginning
	began   time.Time
	ended   time.Time
}

// A hearing is what is listened to of one call, recording by recording.
type hearing []*listened

// segments is what was said so far, with times from the start of the first recording.
func (h hearing) segments() []Segment {
	var all []Segment
	for _, l := range h {
		all = append(all, later(l.Segments(), l.began.Sub(h[0].began))...)
	}
	return inOrder(all)
}

// of finds what was heard of a recording from its beginning; nil where that was not listened to.
func (h hearing) of(path string) *listened {
	for _, l := range h {
		if l.path == path && !l.partial {
			return l
		}
	}
	return nil
}

// later moves segments by a time.
func later(segments []Segment, by time.Duration) []Segment {
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

// continued reports whether a recording that is to be listened to has a beginning already.
func continued(path string) bool {
	info, err := os.Stat(path + ".part")
	return err == nil && info.Size() > wavHead
}

// wavHead is more than the header of a recording that holds nothing yet.
const wavHead = 64

// tell has the live stream told of what was just said.
func (s *Service) tell(org, callID string, offset time.Duration) func(Segment) {
	ms := int(offset.Milliseconds())
	return func(x Segment) {
		e := event.CallTranscriptSegment{CallID: callID, Speaker: string(x.Speaker), Channel: x.Channel, StartMS: x.StartMS + ms,
			EndMS: x.EndMS + ms, Text: x.Text, Confidence: x.Confidence}
		if err := s.Outbox.Tell(org, e); err != nil {
			s.Log.Warn("words of a call not streamed", "org", org, "call", callID, "err", err)
		}
	}
}
