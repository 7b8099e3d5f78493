package transcript

import (
	"context"
	"time"

	"soniq/internal/platform/db"
)

// Turn is one segment as a writer reads it.
type Turn struct {
	ID      int // the segment's index
	Speaker Speaker
	Text    string
	StartMS int
	EndMS   int
}

// Conversation is what a note is written from.
type Conversation struct {
	CallID    string
	Direction string // inbound, outbound or internal
	StartedAt time.Time
	Language  string
	Turns     []Turn
}

// Note is what a writer makes of a conversation.
type Note struct {
	Summary     string       // two to four readable sentences
	Reason      string       // why the caller called, one sentence
	Outcome     Outcome      // how it ended
	Topics      []string     // at most eight, most telling first
	ActionItems []ActionItem // who promised what
	Sentiment   Sentiment
	Flags       []Flag     // what somebody should look at, each with its turn
	Entities    []Entity   // names, amounts, dates that were said, each with its turn
	Stats       *TalkStats // how the sides talked; added from the times of the segments, whatever the writer
	Evidence    []int      // ids of the turns the note rests on
	Engine      Engine
}

// ActionItem is something a side promised or was asked to do.
type ActionItem struct {
	Text  string  `json:"text" doc:"What is to be done"`
	Owner *string `json:"owner" enum:"caller,agent" doc:"Who is to do it"`
	Due   *string `json:"due" doc:"By when, in the words used"`
	DueAt db.Time `json:"due_at" nullable:"true" doc:"The same as a time, where it can be told: a day means its end, in the organisation's time zone"`
	Turn  *int    `json:"turn" doc:"Index of the transcript's segment it was said in"`
}

// Flag is something in a call that somebody should look at.
type Flag struct {
	Kind string `json:"kind" enum:"escalation_request,churn_risk,recording_disclosure,do_not_contact,emergency" doc:"What it is"`
	Turn int    `json:"turn" doc:"Index of the transcript's segment it was said in"`
}

// FlagKinds are the kinds of flags.
var FlagKinds = []string{"escalation_request", "churn_risk", "recording_disclosure", "do_not_contact", "emergency"}

// Entity is something that was named on a call, in the words used.
type Entity struct {
	Type  string `json:"type" enum:"person,money,date,time,email,phone,reference" doc:"What it is"`
	Value string `json:"value" doc:"In the words used"`
	Turn  int    `json:"turn" doc:"Index of the transcript's segment it was said in"`
}

// EntityTypes are the types of entities.
var EntityTypes = []string{"person", "money", "date", "time", "email", "phone", "reference"}

// Outcome is how a call ended for the caller.
type Outcome string

// The outcomes a note may name. The empty outcome is one that cannot be told.
const (
	Resolved    Outcome = "resolved"
	Unresolved  Outcome = "unresolved"
	FollowUp    Outcome = "follow_up"
	Transferred Outcome = "transferred"
	Voicemail   Outcome = "voicemail"
)

// Mood is one side's mood.
type Mood string

// The moods a note may name.
const (
	Positive Mood = "positive"
	Neutral  Mood = "neutral"
	Negative Mood = "negative"
	Mixed    Mood = "mixed"
)

// Sentiment is the mood of the call and of each side.
type Sentiment struct {
	Overall Mood `json:"overall" enum:"positive,neutral,negative,mixed" doc:"Mood of the call"`
	Caller  Mood `json:"caller" enum:"positive,neutral,negative,mixed" doc:"Mood of the caller"`
	Agent   Mood `json:"agent" enum:"positive,neutral,negative,mixed" doc:"Mood of the agent"`

	CallerTrend Trend `json:"caller_trend" enum:"improving,steady,declining,unknown" doc:"How the caller's mood went from the first half of the call to the second"`
	AgentTrend  Trend `json:"agent_trend" enum:"improving,steady,declining,unknown" doc:"The same of the agent"`
}

// Trend is where a mood went during a call.
type Trend string

// The trends a note may name.
const (
	Improving Trend = "improving"
	Steady    Trend = "steady"
	Declining Trend = "declining"
	Unknown   Trend = "unknown"
)

// Trends are all of them.
var Trends = []string{string(Improving), string(Steady), string(Declining), string(Unknown)}

// Writer writes the note of a conversation. Implementations are safe for use by several goroutines. A writer
// that rests on a remote engine falls back to the builtin one rather than fail where it can.
type Writer interface {
	Summarise(ctx context.Context, c Conversation) (Note, error)
}

// conversation gives the segments of a call to a writer.
func conversation(segments []Segment) []Turn {
	turns := make([]Turn, len(segments))
	for i, s := range segments {
		turns[i] = Turn{ID: s.Index, Speaker: s.Speaker, Text: s.Text, StartMS: s.StartMS, EndMS: s.EndMS}
	}
	return turns
}
