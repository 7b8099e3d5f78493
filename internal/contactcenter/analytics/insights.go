package analytics

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// maxTopics and maxRepeatCallers limit the lists of a report.
const maxTopics, maxRepeatCallers = 50, 50

// InsightTotals sums the sentiment and the outcome of analysed calls.
type InsightTotals struct {
	Calls         int64  `json:"calls" doc:"Calls that are remembered"`
	Positive      int64  `json:"positive"`
	Neutral       int64  `json:"neutral"`
	Negative      int64  `json:"negative"`
	Mixed         int64  `json:"mixed"`
	Resolved      int64  `json:"resolved"`
	Unresolved    int64  `json:"unresolved"`
	FollowUp      int64  `json:"follow_up"`
	Transferred   int64  `json:"transferred"`
	Voicemail     int64  `json:"voicemail"`
	PositiveRate  *int64 `json:"positive_rate" doc:"Of calls with a known mood, percent"`
	NegativeRate  *int64 `json:"negative_rate" doc:"Of calls with a known mood, percent"`
	ResolvedRate  *int64 `json:"resolved_rate" doc:"Of calls with a known outcome, percent"`
	UniqueCallers int    `json:"unique_callers" doc:"Different numbers on the other side"`
	RepeatCallers int    `json:"repeat_callers" doc:"Numbers with more than one call"`
}

// InsightPoint is one step of the series.
type InsightPoint struct {
	At db.Time `json:"at" doc:"Where the step begins"`
	InsightTotals
}

// InsightGroup sums the calls of a queue, an agent, a number or a direction.
type InsightGroup struct {
	By map[string]string `json:"by"`
	InsightTotals
}

// Topic is a topic of calls.
type Topic struct {
	Topic    string `json:"topic"`
	Calls    int64  `json:"calls"`
	Negative int64  `json:"negative" doc:"Calls about it with a negative mood"`
}

// RepeatCaller is a number with more than one call.
type RepeatCaller struct {
	Phone      string  `json:"phone"`
	Calls      int64   `json:"calls"`
	Unresolved int64   `json:"unresolved"`
	LastCallAt db.Time `json:"last_call_at"`
}

// InsightReport holds the topics, sentiment and outcomes of calls in a period.
type InsightReport struct {
	Since         db.Time        `json:"since"`
	Until         db.Time        `json:"until"`
	Interval      string         `json:"interval"`
	Timezone      string         `json:"timezone"`
	Totals        InsightTotals  `json:"totals"`
	Topics        []Topic        `json:"topics" nullable:"false" doc:"The 50 most frequent"`
	RepeatCallers []RepeatCaller `json:"repeat_callers" nullable:"false" doc:"The 50 with most calls"`
	Series        []InsightPoint `json:"series" nullable:"false"`
	Groups        []InsightGroup `json:"groups,omitempty" doc:"With group_by, largest first"`
	AsOf          db.Time        `json:"as_of"`
}

// insight is an analysed call.
type insight struct {
	record
	phone, sentiment, outcome string
	topics                    []string
}

// groupField returns the value of a field by which calls are grouped.
func (i insight) groupField(name string) string {
	return i.columnValue(name)
}

// insightSums sums insights.
type insightSums struct {
	InsightTotals
	callers map[string]int
}

func (m *insightSums) add(i insight) {
	m.Calls++
	if n := m.counter(i.sentiment); n != nil {
		*n++
	}
	if n := m.counter(i.outcome); n != nil {
		*n++
	}
	if i.phone != "" && i.phone != "anonymous" {
		if m.callers == nil {
			m.callers = map[string]int{}
		}
		m.callers[i.phone]++
	}
}

func (m *insightSums) counter(name string) *int64 {
	switch name {
	case "positive":
		return &m.Positive
	case "neutral":
		return &m.Neutral
	case "negative":
		return &m.Negative
	case "mixed":
		return &m.Mixed
	case "resolved":
		return &m.Resolved
	case "unresolved":
		return &m.Unresolved
	case "follow_up":
		return &m.FollowUp
	case "transferred":
		return &m.Transferred
	case "voicemail":
		return &m.Voicemail
	}
	return nil
}

func (m *insightSums) totals() InsightTotals {
	t := m.InsightTotals
	moods := t.Positive + t.Neutral + t.Negative + t.Mixed
	t.PositiveRate, t.NegativeRate = percent(t.Positive, moods), percent(t.Negative, moods)
	t.ResolvedRate = percent(t.Resolved, t.Resolved+t.Unresolved+t.FollowUp+t.Transferred+t.Voicemail)
	t.UniqueCallers = len(m.callers)
	for _, n := range m.callers {
		if n > 1 {
			t.RepeatCallers++
		}
	}
	return t
}

func (s *Service) insights(ctx context.Context, in *CallsIn) (*huma.StreamResponse, error) {
	q, err := s.newQuery(ctx, in.PeriodIn, in.FilterIn)
	if err != nil {
		return nil, err
	}
	names := unique(in.GroupBy)
	sums, topics, again := newAggregation[insightSums](q, names), map[string]*Topic{}, map[string]*RepeatCaller{}
	err = s.eachInsight(ctx, q, func(i insight) {
		for _, m := range sums.at(q, i.at.Time, i.groupField) {
			m.add(i)
		}
		i.count(topics, again)
	})
	if err != nil {
		return nil, err
	}
	r := InsightReport{Interval: q.interval, Timezone: q.zone.String(), Totals: sums.all.totals(), Topics: topTopics(topics),
		RepeatCallers: topRepeatCallers(again), Series: make([]InsightPoint, len(q.steps)), AsOf: db.At(s.cfg.Clock.Now())}
	r.Since, r.Until = q.times()
	for i, at := range q.steps {
		r.Series[i] = InsightPoint{db.At(at), sums.steps[i].totals()}
	}
	for _, key := range sums.sorted(func(m *insightSums) int64 { return m.Calls }) {
		r.Groups = append(r.Groups, InsightGroup{sums.by(key), sums.groups[key].totals()})
	}
	if in.csv() {
		return csvResponse(r.rows(names)), nil
	}
	return op.JSONStream(r), nil
}

func (r InsightReport) rows(names []string) [][]string {
	var lines []csvRow
	for _, p := range r.Series {
		lines = append(lines, csvRow{at: p.At, figures: p.InsightTotals})
	}
	if len(names) > 0 {
		lines = nil
	}
	for _, g := range r.Groups {
		lines = append(lines, csvRow{by: g.By, figures: g.InsightTotals})
	}
	return csvRows(names, lines, InsightTotals{})
}

// eachInsight calls do for each analysed call.
func (s *Service) eachInsight(ctx context.Context, q callQuery, do func(insight)) error {
	const text = `SELECT calls.started_at, calls.direction, calls.queue_id, calls.agent_id, calls.number_id, m.phone, m.sentiment,
		m.outcome, m.topics
		FROM memory_calls m JOIN calls ON calls.org_id = m.org_id AND calls.id = m.call_id WHERE m.org_id = $1`
	return s.eachRow(ctx, q.filterCalls(db.Where(text, q.org)), "", func(rows *sql.Rows) error {
		var i insight
		var queue, agent, number, sentiment db.Null
		var topics db.JSON[[]string]
		err := rows.Scan(&i.at, &i.direction, &queue, &agent, &number, &i.phone, &sentiment, &i.outcome, &topics)
		i.queue, i.agent, i.number, i.sentiment, i.topics = string(queue), string(agent), string(number), string(sentiment), topics.V
		if err == nil {
			do(i)
		}
		return err
	})
}

// count adds a call to its topics and to its caller.
func (i insight) count(topics map[string]*Topic, again map[string]*RepeatCaller) {
	for _, name := range unique(i.topics) {
		if topics[name] == nil {
			topics[name] = &Topic{Topic: name}
		}
		topics[name].Calls++
		if i.sentiment == "negative" {
			topics[name].Negative++
		}
	}
	if i.phone == "" || i.phone == "anonymous" {
		return
	}
	c := again[i.phone]
	if c == nil {
		c = &RepeatCaller{Phone: i.phone}
		again[i.phone] = c
	}
	c.Calls++
	if i.outcome == "unresolved" || i.outcome == "follow_up" {
		c.Unresolved++
	}
	if i.at.After(c.LastCallAt.Time) {
		c.LastCallAt = i.at
	}
}

func topTopics(topics map[string]*Topic) []Topic {
	all := make([]Topic, 0, len(topics))
	for _, t := range topics {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b Topic) int {
		if a.Calls != b.Calls {
			return int(b.Calls - a.Calls)
		}
		return strings.Compare(a.Topic, b.Topic)
	})
	return all[:min(len(all), maxTopics)]
}

func topRepeatCallers(again map[string]*RepeatCaller) []RepeatCaller {
	all := []RepeatCaller{}
	for _, c := range again {
		if c.Calls > 1 {
			all = append(all, *c)
		}
	}
	slices.SortFunc(all, func(a, b RepeatCaller) int {
		if a.Calls != b.Calls {
			return int(b.Calls - a.Calls)
		}
		return strings.Compare(a.Phone, b.Phone)
	})
	return all[:min(len(all), maxRepeatCallers)]
}
