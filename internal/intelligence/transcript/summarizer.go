package transcript

import (
	"context"
	"time"

	"soniq/internal/platform/db"
)

// Turn is one segment in the input of a summariser.
type Turn struct {
	ID      int // the segment's index
	Speaker Speaker
	Text    string
	StartMS int
	EndMS   int
}

// Conversation is the input of a summariser.
type Conversation struct {
	CallID    string
	Direction string // inbound, outbound or internal
	StartedAt time.Time
	Language  string
	Turns     []Turn
}

// Note is the result of a summariser. It is stored as JSON with these field names.
type Note struct {
	Summary     string       // two to four readable sentences, or lines with speaker and time
	Reason      string       // why the caller called, one sentence
	Outcome     Outcome      // how the call ended
	Topics      []string     // at most eight, most telling first
	ActionItems []ActionItem // promises and requests of the sides
	Sentiment   Sentiment
	Flags       []Flag     // statements for review by a supervisor, each with its turn
	Entities    []Entity   // names, amounts, dates that were said, each with its turn
	Stats       *TalkStats // talk statistics; computed from the segments, independent of the summariser
	Evidence    []int      // ids of the turns on which the note is based
	Engine      Engine
}

// ActionItem is an action that a side promised or was asked to do.
type ActionItem struct {
	Text  string  `json:"text" doc:"What is to be done"`
	Owner *string `json:"owner" enum:"caller,agent" doc:"Who is to do it"`
	Due   *string `json:"due" doc:"By when, in the words used"`
	DueAt db.Time `json:"due_at" nullable:"true" doc:"The same as a time, where it can be told: a day means its end, in the organisation's time zone"`
	Turn  *int    `json:"turn" doc:"Index of the transcript's segment it was said in"`
}

// Flag marks a statement in a call that a supervisor should look at.
type Flag struct {
	Kind string `json:"kind" enum:"escalation_request,churn_risk,recording_disclosure,do_not_contact,emergency" doc:"What it is"`
	Turn int    `json:"turn" doc:"Index of the transcript's segment it was said in"`
}

// FlagKinds lists the kinds of flags.
var FlagKinds = []string{"escalation_request", "churn_risk", "recording_disclosure", "do_not_contact", "emergency"}

// Entity is a name, amount, date or number mentioned on a call, in the words used.
type Entity struct {
	Type  string `json:"type" enum:"person,money,date,time,email,phone,reference" doc:"What it is"`
	Value string `json:"value" doc:"In the words used"`
	Turn  int    `json:"turn" doc:"Index of the transcript's segment it was said in"`
}

// EntityTypes lists the types of entities.
var EntityTypes = []string{"person", "money", "date", "time", "email", "phone", "reference"}

// Outcome is how a call ended for the caller.
type Outcome string

// Outcomes of a note. The empty outcome means unknown.
const (
	Resolved    Outcome = "resolved"
	Unresolved  Outcome = "unresolved"
	FollowUp    Outcome = "follow_up"
	Transferred Outcome = "transferred"
	Voicemail   Outcome = "voicemail"
)

// Mood is one side's mood.
type Mood string

// Moods of a note.
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

// Trend is the change of a mood during a call.
type Trend string

// Trends of a note.
const (
	Improving Trend = "improving"
	Steady    Trend = "steady"
	Declining Trend = "declining"
	Unknown   Trend = "unknown"
)

// Trends lists all trends.
var Trends = []string{string(Improving), string(Steady), string(Declining), string(Unknown)}

// Summarizer writes the note of a conversation. Implementations are safe for concurrent use. One with a remote engine
// falls back to the builtin rules instead of returning an error, if possible.
type Summarizer interface {
	Summarise(ctx context.Context, c Conversation) (Note, error)
}

// turnsOf returns the segments of a call as turns.
func turnsOf(segments []Segment) []Turn {
	turns := make([]Turn, len(segments))
	for i, s := range segments {
		turns[i] = Turn{ID: s.Index, Speaker: s.Speaker, Text: s.Text, StartMS: s.StartMS, EndMS: s.EndMS}
	}
	return turns
}
