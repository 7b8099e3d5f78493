package transcript

import (
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Status is the state of a transcript or a summary.
type Status string

// States. Pending is a summary's, the others up to Processing a transcript's; the last three are final.
const (
	InProgress Status = "live"
	Queued     Status = "queued"
	Processing Status = "processing"
	Pending    Status = "pending"
	Completed  Status = "completed"
	Failed     Status = "failed"
	Skipped    Status = "skipped"
)

// final reports whether the state no longer changes.
func (s Status) final() bool { return s == Completed || s == Failed || s == Skipped }

// Reasons why a transcript was skipped.
const (
	SkippedDisabled = "disabled"
	SkippedNoEngine = "no_engine"
	SkippedNoAudio  = "no_audio"
	SkippedTooShort = "too_short"
	SkippedLanguage = "language_not_supported"
)

// Transcript is the text of a call.
type Transcript struct {
	ID              string       `json:"id" example:"trn_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	CallID          string       `json:"call_id"`
	VoicemailID     *string      `json:"voicemail_id"`
	Status          Status       `json:"status" enum:"live,queued,processing,completed,failed,skipped"`
	Language        string       `json:"language" doc:"BCP 47"`
	Engine          Engine       `json:"engine"`
	DurationSeconds int          `json:"duration_seconds"`
	WordCount       int          `json:"word_count"`
	Text            string       `json:"text" doc:"All that was said, a line per change of speaker"`
	Segments        []Segment    `json:"segments,omitempty" doc:"Left out in lists"`
	Redactions      []Redaction  `json:"redactions" nullable:"false"`
	SkippedReason   *string      `json:"skipped_reason" enum:"disabled,no_engine,no_audio,too_short,no_consent,over_quota,language_not_supported"`
	Error           *event.Fault `json:"error" doc:"Why it failed, or what is missing and what helps"`
	CreatedAt       db.Time      `json:"created_at"`
	CompletedAt     *db.Time     `json:"completed_at"`
}

// Redaction is a part that was removed intentionally.
type Redaction struct {
	Kind    string `json:"kind" enum:"card,expiry,cvv,account,health,social,pin,custom"`
	StartMS int    `json:"start_ms"`
	EndMS   int    `json:"end_ms"`
}

// Summary is the note of a call in the API.
type Summary struct {
	CallID      string       `json:"call_id"`
	Status      Status       `json:"status" enum:"pending,completed,failed,skipped"`
	AISummary   string       `json:"ai_summary" doc:"Two to four sentences"`
	Topics      []string     `json:"topics" nullable:"false"`
	ActionItems []ActionItem `json:"action_items" nullable:"false"`
	Outcome     *string      `json:"outcome" enum:"resolved,unresolved,follow_up,transferred,voicemail"`
	Sentiment   *Sentiment   `json:"sentiment"`
	Flags       []Flag       `json:"flags" nullable:"false" doc:"What somebody should look at"`
	Entities    []Entity     `json:"entities" nullable:"false" doc:"What was named"`
	Stats       *TalkStats   `json:"stats" doc:"How the two sides talked; null where they cannot be told apart"`
	Language    string       `json:"language"`
	Engine      Engine       `json:"engine"`
	Embedding   Embedding    `json:"embedding"`
	CreatedAt   db.Time      `json:"created_at"`
	Reason      *string      `json:"reason" doc:"Why the caller called, one sentence"`
	Evidence    []int        `json:"evidence" nullable:"false" doc:"Indexes of the transcript's segments that the note rests on"`
	Error       *event.Fault `json:"error"`
}

// Embedding reports whether the call can be found by meaning.
type Embedding struct {
	Status     string `json:"status" enum:"pending,indexed,failed,skipped"`
	Model      string `json:"model"`
	Dimensions int    `json:"dimensions"`
}

// States of an embedding.
const (
	embeddingPending = "pending"
	embeddingIndexed = "indexed"
	embeddingFailed  = "failed"
	embeddingSkipped = "skipped"
)

// withWords keeps the words of the segments, or drops them.
func (t Transcript) withWords(keep bool) Transcript {
	if keep {
		return t
	}
	segments := make([]Segment, len(t.Segments))
	for i, s := range t.Segments {
		s.Words = nil
		segments[i] = s
	}
	t.Segments = segments
	return t
}
