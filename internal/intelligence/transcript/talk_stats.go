package transcript

import (
	"math"
	"strings"
)

// TalkStats has statistics of the two sides of a call, from the times of their segments.
type TalkStats struct {
	Caller                SideStats `json:"caller"`
	Agent                 SideStats `json:"agent"`
	SilenceSeconds        float64   `json:"silence_seconds" doc:"Between the first word and the last, while nobody spoke"`
	LongestSilenceSeconds float64   `json:"longest_silence_seconds"`
	OverlapSeconds        float64   `json:"overlap_seconds" doc:"While both spoke"`
}

// SideStats has the statistics of one side. Questions are counted by their words.
type SideStats struct {
	TalkSeconds          float64 `json:"talk_seconds"`
	Share                float64 `json:"share" minimum:"0" maximum:"1" doc:"Of the time somebody spoke"`
	LongestTurnSeconds   float64 `json:"longest_turn_seconds" doc:"Longest the side spoke before the other did"`
	WordsPerMinute       int     `json:"words_per_minute" doc:"While it spoke"`
	Questions            int     `json:"questions"`
	Interruptions        int     `json:"interruptions" doc:"Times it began while the other spoke, and the other stopped within two seconds"`
	LongestAnswerSeconds float64 `json:"longest_answer_seconds" doc:"Longest the other side waited for its answer"`
}

// yieldsWithin is the time in ms within which an interrupted speaker stops.
const yieldsWithin = 2000

// talkStatsOf returns the statistics of a call; nil if the sides are not separate, or without segments.
func talkStatsOf(segments []Segment) *TalkStats {
	if len(segments) == 0 {
		return nil
	}
	t := &talkCounter{first: segments[0].StartMS}
	for _, s := range segments {
		side := t.side(s.Speaker)
		if side == nil {
			return nil
		}
		t.addSegment(s, side)
	}
	return t.stats()
}

// talkCounter collects the statistics. Segments are added in order of time.
type talkCounter struct {
	caller, agent            sideCounter
	first, until             int // start of the call's first word, and end of the last so far
	silence, longest, shared int
	last                     *sideCounter // the last speaker
}

// sideCounter collects the statistics of one side.
type sideCounter struct {
	SideStats
	ms, words, turn, longestTurn, longestAnswer, until int
}

// side returns the counter of a speaker: an assistant counts as the agent. It is nil if the side is unknown.
func (t *talkCounter) side(s Speaker) *sideCounter {
	switch s {
	case Caller:
		return &t.caller
	case Agent, AI:
		return &t.agent
	}
	return nil
}

func (t *talkCounter) opposite(s *sideCounter) *sideCounter {
	if s == &t.caller {
		return &t.agent
	}
	return &t.caller
}

// addSegment counts a segment.
func (t *talkCounter) addSegment(s Segment, of *sideCounter) {
	other := t.opposite(of)
	if gap := s.StartMS - t.until; t.until > 0 && gap > 0 {
		t.silence, t.longest = t.silence+gap, max(t.longest, gap)
	}
	t.shared += max(min(s.EndMS, other.until)-s.StartMS, 0)
	switch {
	case t.last == other && s.StartMS < other.until && s.EndMS > other.until && other.until-s.StartMS <= yieldsWithin:
		of.Interruptions++
	case t.last == other:
		of.longestAnswer = max(of.longestAnswer, s.StartMS-other.until)
	}
	if t.last != of {
		of.turn = 0
	}
	of.turn += s.EndMS - s.StartMS
	of.longestTurn = max(of.longestTurn, of.turn)
	of.ms += s.EndMS - s.StartMS
	of.words += len(strings.Fields(s.Text))
	of.Questions += questions(s.Text)
	of.until, t.until, t.last = max(of.until, s.EndMS), max(t.until, s.EndMS), of
}

func (t *talkCounter) stats() *TalkStats {
	all := t.caller.ms + t.agent.ms
	return &TalkStats{Caller: t.caller.stats(all), Agent: t.agent.stats(all), SilenceSeconds: seconds(t.silence),
		LongestSilenceSeconds: seconds(t.longest), OverlapSeconds: seconds(t.shared)}
}

func (s *sideCounter) stats(all int) SideStats {
	out := s.SideStats
	out.TalkSeconds, out.LongestTurnSeconds, out.LongestAnswerSeconds = seconds(s.ms), seconds(s.longestTurn), seconds(s.longestAnswer)
	if s.ms > 0 {
		out.Share = math.Round(1000*float64(s.ms)/float64(all)) / 1000
		out.WordsPerMinute = int(math.Round(60000 * float64(s.words) / float64(s.ms)))
	}
	return out
}

func seconds(ms int) float64 { return math.Round(float64(ms)/100) / 10 }

// questionWords are words that begin a question.
var questionWords = []string{"what", "where", "when", "who", "why", "how", "which", "can", "could", "would", "do", "does", "did", "is",
	"are", "was", "will", "should", "have", "may"}

// questions counts the questions in a text by their marks. In recognised speech without punctuation it decides by the
// first word.
func questions(text string) int {
	if n := strings.Count(text, "?"); n > 0 || strings.ContainsAny(strings.TrimRight(text, ". "), ".!") {
		return n
	}
	first, rest, _ := strings.Cut(strings.ToLower(strings.TrimSpace(text)), " ")
	for _, a := range questionWords {
		if first == a && strings.Contains(rest, " ") {
			return 1
		}
	}
	return 0
}
