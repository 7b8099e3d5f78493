package analytics

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
)

// Operations returns the API operations of analytics.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.NewStream("analytics.calls", "GET /analytics/calls", access.CallsRead, "Count calls by time, queue, agent, number or direction",
			s.calls).
			Answers(200, "application/json", Report{}).Answers(200, "text/csv", nil).Tool("get_call_analytics"),
		op.NewStream("analytics.queues", "GET /analytics/queues", access.Either(access.CallsRead, access.QueuesRead),
			"Service level, waits and abandons per queue", s.queues).
			Answers(200, "application/json", QueueReport{}).Answers(200, "text/csv", nil),
		op.NewStream("analytics.agents", "GET /analytics/agents", access.CallsRead, "Calls, talk and hold per agent", s.agents).
			Answers(200, "application/json", AgentReport{}).Answers(200, "text/csv", nil),
		op.NewStream("analytics.insights", "GET /analytics/insights", access.MemoryRead,
			"What calls were about, how they went, and who called again", s.insights).
			Answers(200, "application/json", InsightReport{}).Answers(200, "text/csv", nil),
		op.NewStream("analytics.quality", "GET /analytics/quality", access.CallsRead, "How calls sounded, by trunk, device, codec or agent",
			s.quality).
			Answers(200, "application/json", QualityReport{}).Answers(200, "text/csv", nil),
		op.NewStream("analytics.sms", "GET /analytics/sms", access.SMSRead, "Text messages sent, delivered, failed and replied to",
			s.messages).
			Answers(200, "application/json", MessageReport{}).Answers(200, "text/csv", nil),
	}
}

// FilterIn restricts the calls that are counted.
type FilterIn struct {
	QueueID   string   `query:"queue_id" maxLength:"40"`
	AgentID   string   `query:"agent_id" maxLength:"40"`
	NumberID  string   `query:"number_id" maxLength:"40"`
	Direction string   `query:"direction" enum:"inbound,outbound,internal"`
	Tag       []string `query:"tag" maxItems:"20" doc:"One or more tags, all of which the call has"`
	Accept    string   `header:"Accept" maxLength:"200" doc:"text/csv for a table"`
}

// CallsIn selects calls to count.
type CallsIn struct {
	PeriodIn
	FilterIn
	GroupBy []string `query:"group_by" maxItems:"4" enum:"queue_id,agent_id,number_id,direction" doc:"Count them apart, too"`
}

func (s *Service) newQuery(ctx context.Context, p PeriodIn, f FilterIn, group ...string) (callQuery, error) {
	q := callQuery{org: access.Org(ctx), filters: map[string]string{}, group: group}
	var err error
	if q.view, err = visibility.From(ctx, s.cfg.DB.Read(ctx)); err != nil {
		return q, err
	}
	if q.period, err = s.period(ctx, q.org, p); err != nil {
		return q, err
	}
	for d, key := range map[string]string{ByQueue: f.QueueID, ByAgent: f.AgentID, ByNumber: f.NumberID, ByDirection: f.Direction} {
		if key != "" {
			q.filters[d] = key
		}
	}
	for _, t := range f.Tag {
		q.tags = append(q.tags, strings.ToLower(strings.TrimSpace(t)))
	}
	return q, nil
}

// by returns the fields of a group key, by name.
func (q callQuery) by(key string) map[string]string {
	by := map[string]string{}
	for i, v := range strings.Split(key, "\n") {
		by[dimensionFields[q.group[i]]] = v
	}
	return by
}

func (f FilterIn) csv() bool { return strings.Contains(f.Accept, "text/csv") }

func (s *Service) calls(ctx context.Context, in *CallsIn) (*huma.StreamResponse, error) {
	var group []string
	for _, g := range in.GroupBy {
		for d, name := range dimensionFields {
			if name == g && !slices.Contains(group, d) {
				group = append(group, d)
			}
		}
	}
	q, err := s.newQuery(ctx, in.PeriodIn, in.FilterIn, group...)
	if err != nil {
		return nil, err
	}
	a, err := s.run(ctx, q)
	if err != nil {
		return nil, err
	}
	r := a.report(q, s.cfg.Clock.Now())
	if in.csv() {
		return csvResponse(r.rows(q)), nil
	}
	return op.JSONStream(r), nil
}

// GroupsIn selects calls to count per queue or agent.
type GroupsIn struct {
	PeriodIn
	FilterIn
}

// QueueTotals sums the calls of a queue.
type QueueTotals struct {
	QueueID          string  `json:"queue_id"`
	Name             *string `json:"name"`
	Offered          int64   `json:"offered"`
	Answered         int64   `json:"answered"`
	Abandoned        int64   `json:"abandoned"`
	Missed           int64   `json:"missed" doc:"Abandoned, overflowed and turned away"`
	AnswerRate       *int64  `json:"answer_rate"`
	AverageWait      *int64  `json:"average_wait_seconds"`
	AverageTalk      *int64  `json:"average_talk_seconds"`
	ServiceLevelRate *int64  `json:"service_level_rate"`
}

// QueueReport holds QueueTotals for each queue with calls, busiest first.
type QueueReport struct {
	Since db.Time       `json:"since"`
	Until db.Time       `json:"until"`
	Data  []QueueTotals `json:"data" nullable:"false"`
	AsOf  db.Time       `json:"as_of"`
}

// queues counts the callers of queues by the definitions of package queue.
func (s *Service) queues(ctx context.Context, in *GroupsIn) (*huma.StreamResponse, error) {
	q, err := s.newQuery(ctx, in.PeriodIn, in.FilterIn, ByQueue)
	if err != nil {
		return nil, err
	}
	all, err := queue.FiguresByQueue(ctx, s.cfg.DB.Read(ctx), q.org, q.filterEntries)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b queue.NamedFigures) int {
		return cmp.Or(b.Offered-a.Offered, strings.Compare(a.QueueID, b.QueueID))
	})
	since, until := q.times()
	r := QueueReport{Since: since, Until: until, Data: make([]QueueTotals, len(all)), AsOf: db.At(s.cfg.Clock.Now())}
	for i, f := range all {
		r.Data[i] = queueTotals(f)
	}
	if in.csv() {
		return csvResponse(r.rows()), nil
	}
	return op.JSONStream(r), nil
}

func queueTotals(f queue.NamedFigures) QueueTotals {
	t := QueueTotals{QueueID: f.QueueID, Name: &f.Name, Offered: int64(f.Offered), Answered: int64(f.Answered),
		Abandoned: int64(f.Abandoned), Missed: int64(f.Abandoned + f.Overflowed), AnswerRate: percent(int64(f.Answered), int64(f.Served())),
		ServiceLevelRate: percent(int64(f.InTime), int64(f.Served()))}
	if f.Answered > 0 {
		wait, talk := int64(f.AverageWait), int64(f.AverageTalk)
		t.AverageWait, t.AverageTalk = &wait, &talk
	}
	return t
}

// AgentTotals sums the calls of an agent.
type AgentTotals struct {
	AgentID       string  `json:"agent_id"`
	Name          *string `json:"name"`
	Handled       int64   `json:"handled"`
	Missed        int64   `json:"missed"`
	Inbound       int64   `json:"inbound"`
	Outbound      int64   `json:"outbound"`
	TalkSeconds   int64   `json:"talk_seconds"`
	HoldSeconds   int64   `json:"hold_seconds"`
	AverageTalk   *int64  `json:"average_talk_seconds"`
	AverageHandle *int64  `json:"average_handle_seconds" doc:"Talk and hold of a call"`
	UniqueCallers int     `json:"unique_callers"`
}

// AgentReport holds AgentTotals for each agent with calls, busiest first.
type AgentReport struct {
	Since db.Time       `json:"since"`
	Until db.Time       `json:"until"`
	Data  []AgentTotals `json:"data" nullable:"false"`
	AsOf  db.Time       `json:"as_of"`
}

func (s *Service) agents(ctx context.Context, in *GroupsIn) (*huma.StreamResponse, error) {
	q, a, names, err := s.grouped(ctx, in, ByAgent)
	if err != nil {
		return nil, err
	}
	since, until := q.times()
	r := AgentReport{Since: since, Until: until, Data: []AgentTotals{}, AsOf: db.At(s.cfg.Clock.Now())}
	for _, key := range a.sorted() {
		c := a.groups[key]
		r.Data = append(r.Data, AgentTotals{AgentID: key, Name: names[key], Handled: c.Answered, Missed: c.Missed, Inbound: c.Inbound,
			Outbound: c.Outbound, TalkSeconds: c.Talk, HoldSeconds: c.Hold, AverageTalk: average(c.Talk, c.Answered),
			AverageHandle: average(c.Talk+c.Hold, c.Answered), UniqueCallers: len(c.Callers)})
	}
	if in.csv() {
		return csvResponse(r.rows()), nil
	}
	return op.JSONStream(r), nil
}

// grouped counts calls by one dimension and reads the names of its keys.
func (s *Service) grouped(ctx context.Context, in *GroupsIn, dimension string) (q callQuery, a *callSums, names map[string]*string,
	err error) {
	if q, err = s.newQuery(ctx, in.PeriodIn, in.FilterIn, dimension); err != nil {
		return q, nil, nil, err
	}
	if a, err = s.run(ctx, q); err != nil {
		return q, nil, nil, err
	}
	names = map[string]*string{}
	for key := range a.groups {
		name, err := s.cfg.Names.GroupName(ctx, q.org, dimension, key)
		if err != nil {
			return q, nil, nil, err
		}
		if name != "" {
			names[key] = &name
		}
	}
	return q, a, names, nil
}
