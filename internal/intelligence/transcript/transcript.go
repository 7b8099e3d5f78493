// Package transcript makes the transcript and the note (summary) of a call.
//
// Speech is recognised while the call runs, one speech segment of one channel at a time ([LiveTranscription]); at
// hang-up only the last segments are left. After a crash the rest is read from the recording, by the job that also
// writes the note.
package transcript

import (
	"slices"
	"strings"
)

// Engine identifies the engine of a result. Every transcript and every note has one.
type Engine struct {
	Name    string `json:"name" doc:"Engine that produced the result" example:"pocketsphinx"`
	Model   string `json:"model" doc:"Model the engine used" example:"en-us"`
	Version string `json:"version" doc:"Version of engine or model"`
}

// Speaker is the side of a call that speaks.
type Speaker string

// Sides of a call. The agent is on the organisation's side. The caller is the other party: who called in, or was called. In an internal
// call the caller is who called.
const (
	Caller Speaker = "caller"
	Agent  Speaker = "agent"
	AI     Speaker = "ai"
	Other  Speaker = "other"
)

// Word is one recognised word. Times count from the start of the recording.
type Word struct {
	Text       string  `json:"text" doc:"The word"`
	StartMS    int     `json:"start_ms" doc:"Start, milliseconds from the start of the recording"`
	EndMS      int     `json:"end_ms" doc:"End, milliseconds from the start of the recording"`
	Confidence float64 `json:"confidence" doc:"How sure the engine is, 0 to 1"`
}

// Segment is continuous speech of one side, between two pauses.
type Segment struct {
	Index      int     `json:"index" doc:"Position in the transcript, from 0; the turn id that notes cite"`
	Speaker    Speaker `json:"speaker" enum:"caller,agent,ai,other" doc:"Who speaks. agent: a user of the organisation; ai: its voice agent; caller: the other party, also if the organisation called it; other: both in a recording with one channel. In an internal call the caller is who called"`
	SpeakerID  *string `json:"speaker_id" doc:"User or contact who speaks, where known"`
	Channel    int     `json:"channel" doc:"Channel of the recording: 0 who called, 1 who was called"`
	StartMS    int     `json:"start_ms" doc:"Start, milliseconds from the start of the recording"`
	EndMS      int     `json:"end_ms" doc:"End, milliseconds from the start of the recording"`
	Text       string  `json:"text" doc:"What was said"`
	Confidence float64 `json:"confidence" doc:"Mean confidence of the words, 0 to 1"`
	Words      []Word  `json:"words,omitempty" doc:"Words with their times, when asked for"`
}

// speakerOf returns the side of a recording channel. The only channel of a one-channel recording has both sides.
func (f Format) speakerOf(channel int) Speaker {
	switch {
	case f.Channels == 1:
		return Other
	case channel == f.agentChannel():
		return Agent
	}
	return Caller
}

// agentChannel returns the channel of the organisation's side in a recording with two channels.
func (f Format) agentChannel() int {
	if f.Outbound {
		return 0
	}
	return 1
}

// inOrder sorts segments by time, channel 0 first if both start together, and numbers them.
func inOrder(segments []Segment) []Segment {
	slices.SortStableFunc(segments, func(a, b Segment) int {
		if a.StartMS != b.StartMS {
			return a.StartMS - b.StartMS
		}
		return a.Channel - b.Channel
	})
	for i := range segments {
		segments[i].Index = i
	}
	return segments
}

// TextOf joins segments to a text, with a line per change of speaker that begins with "Caller:" or "Agent:".
func TextOf(segments []Segment) string {
	var b strings.Builder
	var last Speaker
	for _, s := range segments {
		switch {
		case s.Speaker != last && b.Len() > 0:
			b.WriteByte('\n')
			fallthrough
		case s.Speaker != last:
			b.WriteString(s.Speaker.label() + ": ")
		default:
			b.WriteByte(' ')
		}
		b.WriteString(s.Text)
		last = s.Speaker
	}
	return b.String()
}

// label returns the speaker's name at the start of a line.
func (s Speaker) label() string {
	switch s {
	case Caller:
		return "Caller"
	case Agent:
		return "Agent"
	case AI:
		return "Assistant"
	}
	return "Speaker"
}

// wordCount counts the words of all segments.
func wordCount(segments []Segment) int {
	n := 0
	for _, s := range segments {
		n += len(strings.Fields(s.Text))
	}
	return n
}
