package transcript

import (
	"context"
	"errors"
	"slices"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Spoken is something whose words are known without a recogniser: what a voice agent said, and what it understood of the caller.
type Spoken struct {
	Talk         string // the conversation with the agent
	Agent        bool   // said it
	Text         string
	Began, Ended time.Time
}

// AgentEngine stands for the recogniser of a transcript that has nothing but words of voice agents and of those who talked to them.
const AgentEngine = "voice-agent"

func (s *Service) spoken(ctx context.Context, q db.Querier, org, callID string) ([]Spoken, error) {
	if s.Spoken == nil {
		return nil, nil
	}
	return s.Spoken(ctx, q, org, callID)
}

// Tell has the live stream told of words that are known; zero is when the first of them were said.
func (s *Service) Tell(org, callID string, x Spoken, zero time.Time) {
	if h := s.heardOf(org, callID); h != nil {
		zero = h[0].began
	}
	g := x.segment(zero)
	e := event.CallTranscriptSegment{CallID: callID, Speaker: string(g.Speaker), Channel: g.Channel, StartMS: g.StartMS, EndMS: g.EndMS, Text: g.Text,
		Confidence: g.Confidence}
	if err := s.Outbox.Tell(org, e); err != nil {
		s.Log.Warn("words of a call not streamed", "org", org, "call", callID, "err", err)
	}
}

// segment is what was said as transcripts show it.
func (x Spoken) segment(zero time.Time) Segment {
	g := Segment{Speaker: Caller, StartMS: max(int(x.Began.Sub(zero).Milliseconds()), 0), Text: x.Text, Confidence: 1}
	g.EndMS = max(int(x.Ended.Sub(zero).Milliseconds()), g.StartMS)
	if x.Agent {
		g.Speaker, g.Channel = AI, 1
	}
	return g
}

// settleLimit bounds how long the last words of a conversation are waited for.
const settleLimit = 15 * time.Second

// settled waits for the last words of a call's conversations with voice agents.
func (s *Service) settled(ctx context.Context, org, callID string) error {
	if s.Settled == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	if s.Settled(limited, org, callID) != nil && ctx.Err() == nil {
		s.Log.Warn("the last words of a voice agent are missing in the transcript", "call", callID)
	}
	return ctx.Err()
}

// allSegments is what was recognised in the recordings of a call, and in its conversations with voice agents what is known.
func (s *Service) allSegments(ctx context.Context, org string, t Transcript) ([]Segment, error) {
	if err := s.settled(ctx, org, t.CallID); err != nil {
		return nil, err
	}
	said, err := s.spoken(ctx, s.DB.Read(ctx), org, t.CallID)
	if err != nil {
		return nil, err
	}
	heard, failed := s.segments(ctx, org, t)
	if len(said) == 0 {
		return heard, failed
	}
	zero := said[0].Began
	parts, err := s.Calls.Parts(ctx, org, t.CallID)
	if err != nil {
		return nil, err
	}
	if len(parts) > 0 {
		zero = parts[0].StartedAt
	}
	if _, missing := IsMissing(failed); missing || errors.Is(failed, errDisabled) || errors.Is(failed, errNoFile) || errors.Is(failed, ErrTooShort) {
		failed = nil // the words that are known are what there is
	}
	return withSpoken(heard, said, zero), failed
}

// aside is how far what was recognised may lie from what is known, in ms, where it is the same.
const aside = 400

// withSpoken puts what is known in the place of what was recognised meanwhile. Zero is when the recording began.
func withSpoken(heard []Segment, said []Spoken, zero time.Time) []Segment {
	talks := map[string][2]int{}
	var all []Segment
	for _, x := range said {
		g := x.segment(zero)
		all = append(all, g)
		talk, is := talks[x.Talk]
		if !is {
			talk = [2]int{g.StartMS, g.EndMS}
		}
		talks[x.Talk] = [2]int{min(talk[0], g.StartMS), max(talk[1], g.EndMS)}
	}
	for _, g := range heard {
		middle := (g.StartMS + g.EndMS) / 2
		if !slices.ContainsFunc(said, func(x Spoken) bool { return middle >= talks[x.Talk][0]-aside && middle <= talks[x.Talk][1]+aside }) {
			all = append(all, g)
		}
	}
	return inOrder(all)
}

// engineOf names what understood the segments.
func (s *Service) engineOf(segments []Segment) Engine {
	known := slices.ContainsFunc(segments, func(g Segment) bool { return g.Speaker == AI })
	recognised := slices.ContainsFunc(segments, func(g Segment) bool { return g.Speaker == Agent || g.Speaker == Other })
	switch {
	case known && !recognised:
		return Engine{Name: AgentEngine}
	case s.Listener == nil:
		return Engine{}
	}
	return s.Listener.Engine()
}
