package memory

import (
	"context"
	"sort"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/visibility"
)

const (
	historyCalls = 100  // calls of a number over which topics and moods are counted
	maxRolling   = 1200 // bytes of the rolling summary
	maxOpenItems = 10
)

// OpenItem is an unfinished action item for a caller.
type OpenItem struct {
	Text   string  `json:"text"`
	CallID string  `json:"call_id"`
	At     db.Time `json:"at"`
}

// TopicCount has the number of calls about a topic.
type TopicCount struct {
	Topic string `json:"topic"`
	Count int    `json:"count"`
}

// PastCall is one call of a caller.
type PastCall struct {
	ID                  string  `json:"id"`
	At                  db.Time `json:"at"`
	Direction           string  `json:"direction"`
	Status              string  `json:"status"`
	TalkDurationSeconds int     `json:"talk_duration_seconds"`
	Agent               *Person `json:"agent"`
	AISummary           *string `json:"ai_summary"`
	Sentiment           *string `json:"sentiment"`
	RecordingURL        *string `json:"recording_url"`
}

// PastMessage is one text message.
type PastMessage struct {
	ID        string  `json:"id"`
	At        db.Time `json:"at"`
	Direction string  `json:"direction"`
	Body      string  `json:"body"`
}

// PastVoicemail is one voicemail message.
type PastVoicemail struct {
	ID   string  `json:"id"`
	At   db.Time `json:"at"`
	Text string  `json:"text"`
}

// Caller is the history of a number. Lists are never null.
type Caller struct {
	Phone          string          `json:"phone"`
	Contact        *Person         `json:"contact"`
	CallsTotal     int             `json:"calls_total" doc:"Calls within the window"`
	FirstCallAt    db.Time         `json:"first_call_at" nullable:"true"`
	LastCallAt     db.Time         `json:"last_call_at" nullable:"true"`
	Summary        string          `json:"summary" doc:"Summaries of the last calls, newest first, 1200 characters at most"`
	OpenItems      []OpenItem      `json:"open_items" nullable:"false" doc:"What was promised and not yet settled by a later call"`
	Facts          []Fact          `json:"facts" nullable:"false"`
	Topics         []TopicCount    `json:"topics" nullable:"false"`
	SentimentTrend string          `json:"sentiment_trend" enum:"improving,steady,declining,unknown"`
	Calls          []PastCall      `json:"calls" nullable:"false"`
	Messages       []PastMessage   `json:"messages" nullable:"false"`
	Voicemails     []PastVoicemail `json:"voicemails" nullable:"false"`
	Window         Span            `json:"window"`
	TookMS         int             `json:"took_ms" doc:"Time it took, milliseconds, rounded up"`
}

// Span is the period of the history.
type Span struct {
	Since db.Time `json:"since"`
	Until db.Time `json:"until"`
}

// Caller returns the history of a number with up to limit of its newest calls. A number without calls has an empty
// history, which is no error.
func (s *Service) Caller(ctx context.Context, org, phone string, limit int) (*Caller, error) {
	began := time.Now()
	phone = s.phone(ctx, org, phone)
	since := db.At(s.now().Add(-s.window))
	out := &Caller{Phone: phone, OpenItems: []OpenItem{}, Facts: []Fact{}, Topics: []TopicCount{}, Calls: []PastCall{},
		Messages: []PastMessage{}, Voicemails: []PastVoicemail{}, Window: Span{since, db.At(s.now())}}
	q := s.db.Read(ctx)
	view, err := visibility.From(ctx, q)
	if err != nil {
		return nil, err
	}
	if out.CallsTotal, out.FirstCallAt, out.LastCallAt, err = spanOf(ctx, q, view, org, phone, since); err != nil {
		return nil, wrapError("count calls of a number", err)
	}
	if out.Facts, err = factsOf(ctx, q, org, phone, out.Window.Until); err != nil {
		return nil, wrapError("read facts of a number", err)
	}
	calls, err := callsOf(ctx, q, view, org, phone, since, max(historyCalls, limit))
	if err != nil {
		return nil, wrapError("read calls of a number", err)
	}
	for _, c := range calls[:min(limit, len(calls))] {
		out.Calls = append(out.Calls, s.pastCall(org, c))
	}
	out.Summary, out.OpenItems = rollingSummary(calls), openItems(calls)
	out.Topics, out.SentimentTrend = topicsOf(calls), sentimentTrend(calls)
	out.TookMS = millis(time.Since(began))
	return out, nil
}

func (s *Service) pastCall(org string, c pastCallRow) PastCall {
	p := PastCall{ID: c.callID, At: c.at, Direction: c.direction, Status: c.status, TalkDurationSeconds: c.talkSeconds,
		Sentiment: c.sentiment.Ptr()}
	if c.agentID != "" {
		p.Agent = &Person{ID: string(c.agentID), Name: string(c.agentName)}
	}
	if c.summary != "" {
		p.AISummary = &c.summary
	}
	if url := s.recordingURL(org, string(c.recordingID)); url != "" {
		p.RecordingURL = &url
	}
	return p
}

// rollingSummary joins the summaries of the last calls, one line with a date each, up to maxRolling bytes.
func rollingSummary(calls []pastCallRow) string {
	out := ""
	for _, c := range calls {
		if c.summary == "" {
			continue
		}
		line := c.at.Format(time.DateOnly) + ": " + c.summary
		if out == "" {
			out = truncate(line, maxRolling)
			continue
		}
		if len(out)+1+len(line) > maxRolling {
			break
		}
		out += "\n" + line
	}
	return out
}

// openItems returns the action items since the last call with the outcome "resolved".
func openItems(calls []pastCallRow) []OpenItem {
	out := []OpenItem{}
	for _, c := range calls {
		if c.outcome == "resolved" {
			break
		}
		for _, i := range c.items.V {
			if len(out) == maxOpenItems {
				return out
			}
			out = append(out, OpenItem{Text: i.Text, CallID: c.callID, At: c.at})
		}
	}
	return out
}

// topicsOf counts topics over calls and returns the ten most frequent.
func topicsOf(calls []pastCallRow) []TopicCount {
	n := map[string]int{}
	for _, c := range calls {
		for _, t := range c.topics.V {
			n[t]++
		}
	}
	out := make([]TopicCount, 0, len(n))
	for t, c := range n {
		out = append(out, TopicCount{t, c})
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Count != out[j].Count {
			return out[i].Count > out[j].Count
		}
		return out[i].Topic < out[j].Topic
	})
	return out[:min(len(out), 10)]
}

// moodValue maps moods to numbers.
var moodValue = map[string]float64{"positive": 1, "neutral": 0, "mixed": 0, "negative": -1}

// sentimentTrend compares the mood of the newer half of the last ten calls with that of the older half. It is
// "unknown" for fewer than three.
func sentimentTrend(calls []pastCallRow) string {
	var moods []float64
	for _, c := range calls {
		if v, ok := moodValue[string(c.sentiment)]; ok && len(moods) < 10 {
			moods = append(moods, v)
		}
	}
	if len(moods) < 3 {
		return "unknown"
	}
	half := len(moods) / 2
	switch change := mean(moods[:half]) - mean(moods[len(moods)-half:]); {
	case change > 0.34:
		return "improving"
	case change < -0.34:
		return "declining"
	}
	return "steady"
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
