package transcript

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/call"
)

// KnownUtterance is an utterance whose text is known without recognition: one of a voice agent, or one that the agent
// recognised of the caller.
type KnownUtterance struct {
	ConversationID string // id of the conversation with the agent
	ByAgent        bool   // true: by the agent; false: by the caller
	Text           string
	Began, Ended   time.Time
}

// AgentEngine is the engine of a transcript that consists only of conversations with voice agents.
const AgentEngine = "voice-agent"

func (s *Service) knownUtterances(ctx context.Context, q db.Querier, org, callID string) ([]KnownUtterance, error) {
	return s.cfg.Utterances.KnownUtterances(ctx, q, org, callID)
}

// PublishUtterance publishes a known utterance on the live stream; zero is the start of the first.
func (s *Service) PublishUtterance(org, callID string, x KnownUtterance, zero time.Time) {
	outbound := false
	if h := s.liveOf(org, callID); h != nil {
		zero, outbound = h[0].began, h[0].format.Outbound
	}
	g := x.segment(zero, outbound)
	s.publishSegment(org, event.CallTranscriptSegment{CallID: callID, Speaker: string(g.Speaker), Channel: g.Channel, StartMS: g.StartMS,
		EndMS: g.EndMS, Text: g.Text, Confidence: g.Confidence})
}

// segment returns the utterance as a segment of an outbound or other call.
func (x KnownUtterance) segment(zero time.Time, outbound bool) Segment {
	agent := Format{Outbound: outbound}.agentChannel()
	g := Segment{Speaker: Caller, Channel: 1 - agent, StartMS: max(int(x.Began.Sub(zero).Milliseconds()), 0), Text: x.Text, Confidence: 1}
	g.EndMS = max(int(x.Ended.Sub(zero).Milliseconds()), g.StartMS)
	if x.ByAgent {
		g.Speaker, g.Channel = AI, agent
	}
	return g
}

// utteranceTimeout limits the wait for the last utterances of a conversation.
const utteranceTimeout = 15 * time.Second

// awaitUtterances waits for the last utterances of a call's conversations with voice agents.
func (s *Service) awaitUtterances(ctx context.Context, org, callID string) error {
	limited, cancel := context.WithTimeout(ctx, utteranceTimeout)
	defer cancel()
	if s.cfg.Utterances.AwaitUtterances(limited, org, callID) != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("the last words of a voice agent are missing in the transcript", "call", callID)
	}
	return ctx.Err()
}

// allSegments returns the recognised segments of a call, with those of conversations with voice agents replaced by
// the known utterances.
//
// Both are without numbers that the organisation removes.
func (s *Service) allSegments(ctx context.Context, org string, t Transcript) (out heardCall, err error) {
	policy, err := s.policy(ctx, org, t.Language)
	if err != nil {
		return out, err
	}
	if err := s.awaitUtterances(ctx, org, t.CallID); err != nil {
		return out, err
	}
	said, err := s.knownUtterances(ctx, s.cfg.DB.Read(ctx), org, t.CallID)
	if err != nil {
		return out, err
	}
	outbound, err := s.isOutbound(ctx, org, t.CallID)
	if err != nil {
		return out, err
	}
	heard, failed := s.segments(ctx, org, t, outbound)
	if policy.Audio && !errors.Is(failed, errNoFile) && !errors.Is(failed, ErrTooShort) {
		out.unsearched = failed
	}
	out.segments, out.removed = redactSegments(policy, heard)
	if len(said) == 0 {
		return out, failed
	}
	zero := said[0].Began
	parts, err := s.cfg.Recordings.Parts(ctx, org, t.CallID)
	if err != nil {
		return out, err
	}
	if len(parts) > 0 {
		zero = parts[0].StartedAt
	}
	if _, missing := AsMissingDependency(failed); missing || errors.Is(failed, ErrDisabled) || errors.Is(failed, errNoFile) ||
		errors.Is(failed, ErrTooShort) {
		failed = nil // the known utterances are the complete transcript
	}
	all, more := redactSegments(policy, withUtterances(heard, said, zero, outbound))
	out.segments, out.removed = all, append(out.removed, more...)
	return out, failed
}

// isOutbound reports whether the organisation placed a call.
func (s *Service) isOutbound(ctx context.Context, org, callID string) (bool, error) {
	c, err := s.cfg.Calls.FindCDR(ctx, org, callID)
	if err != nil {
		return false, fmt.Errorf("read direction of call %s: %w", callID, err)
	}
	return c.Direction == call.Outbound, nil
}

// matchTolerance is the distance in ms up to which a recognised segment counts as part of a conversation.
const matchTolerance = 400

// withUtterances replaces the segments recognised during conversations by the known utterances. zero is the start of
// the recording.
func withUtterances(heard []Segment, said []KnownUtterance, zero time.Time, outbound bool) []Segment {
	talks := map[string][2]int{}
	var all []Segment
	for _, x := range said {
		g := x.segment(zero, outbound)
		all = append(all, g)
		talk, is := talks[x.ConversationID]
		if !is {
			talk = [2]int{g.StartMS, g.EndMS}
		}
		talks[x.ConversationID] = [2]int{min(talk[0], g.StartMS), max(talk[1], g.EndMS)}
	}
	for _, g := range heard {
		middle := (g.StartMS + g.EndMS) / 2
		if !slices.ContainsFunc(said, func(x KnownUtterance) bool {
			return middle >= talks[x.ConversationID][0]-matchTolerance && middle <= talks[x.ConversationID][1]+matchTolerance
		}) {
			all = append(all, g)
		}
	}
	return inOrder(all)
}

// engineOf returns the engine that recognised the segments.
func (s *Service) engineOf(segments []Segment) Engine {
	known := slices.ContainsFunc(segments, func(g Segment) bool { return g.Speaker == AI })
	recognised := slices.ContainsFunc(segments, func(g Segment) bool { return g.Speaker == Agent || g.Speaker == Other })
	switch {
	case known && !recognised:
		return Engine{Name: AgentEngine}
	case s.cfg.Recognizer == nil:
		return Engine{}
	}
	return s.cfg.Recognizer.Engine()
}
