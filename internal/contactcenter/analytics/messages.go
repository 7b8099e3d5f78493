package analytics

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// MessagesIn selects text messages to count.
type MessagesIn struct {
	PeriodIn
	QueueID   string   `query:"queue_id" maxLength:"40" doc:"Messages of the numbers that lead to this queue now"`
	AgentID   string   `query:"agent_id" maxLength:"40" doc:"Messages this user wrote"`
	NumberID  string   `query:"number_id" maxLength:"40"`
	Direction string   `query:"direction" enum:"inbound,outbound"`
	Tag       []string `query:"tag" maxItems:"20" doc:"One or more tags, all of which the conversation has"`
	GroupBy   []string `query:"group_by" maxItems:"3" enum:"agent_id,number_id,direction" doc:"Count them apart, too"`
	Accept    string   `header:"Accept" maxLength:"200" doc:"text/csv for a table"`
}

// MessageTotals sums text messages.
type MessageTotals struct {
	Total         int64  `json:"total"`
	Inbound       int64  `json:"inbound"`
	Outbound      int64  `json:"outbound"`
	Segments      int64  `json:"segments" doc:"Messages of the network"`
	Sent          int64  `json:"sent" doc:"Handed to the carrier"`
	Delivered     int64  `json:"delivered"`
	Failed        int64  `json:"failed" doc:"Failed and undelivered"`
	Pending       int64  `json:"pending" doc:"Scheduled, queued or being sent"`
	Canceled      int64  `json:"canceled"`
	DeliveryRate  *int64 `json:"delivery_rate" doc:"Delivered of those delivered or failed, percent"`
	Conversations int64  `json:"conversations" doc:"Conversations with a message"`
	Written       int64  `json:"written_conversations" doc:"Conversations in which something was sent"`
	Replied       int64  `json:"replied_conversations" doc:"Of these, those whose other side wrote after that, within the whole period"`
	ReplyRate     *int64 `json:"reply_rate" doc:"Replied of written, percent"`
}

// MessagePoint is one step of the series.
type MessagePoint struct {
	At db.Time `json:"at" doc:"Where the step begins"`
	MessageTotals
}

// MessageGroup sums the messages of a number, a user or a direction.
type MessageGroup struct {
	By map[string]string `json:"by"`
	MessageTotals
}

// MessageReport sums the text messages of a period.
type MessageReport struct {
	Since    db.Time        `json:"since"`
	Until    db.Time        `json:"until"`
	Interval string         `json:"interval"`
	Timezone string         `json:"timezone"`
	Totals   MessageTotals  `json:"totals"`
	Series   []MessagePoint `json:"series" nullable:"false"`
	Groups   []MessageGroup `json:"groups,omitempty" doc:"With group_by, largest first"`
	AsOf     db.Time        `json:"as_of"`
}

// message holds the columns of a message that are counted.
type message struct {
	at                        db.Time
	thread, direction, status string
	number, user              string
	sent                      bool
	segments                  int64
}

func (m message) groupField(name string) string {
	switch name {
	case "agent_id":
		return m.user
	case "number_id":
		return m.number
	}
	return m.direction
}

// messageSums sums messages. threads maps conversation ids to whether a message was sent in them.
type messageSums struct {
	MessageTotals
	threads map[string]bool
}

// add counts a message. It reports whether it is the first sent message of its conversation.
func (p *messageSums) add(m message) (wrote bool) {
	p.Total, p.Segments = p.Total+1, p.Segments+m.segments
	if p.threads == nil {
		p.threads = map[string]bool{}
	}
	before, known := p.threads[m.thread]
	if !known {
		p.Conversations++
	}
	p.threads[m.thread] = before || m.sent
	if m.direction == "inbound" {
		p.Inbound++
		return false
	}
	p.Outbound++
	if n := p.counter(m.status); n != nil {
		*n++
	}
	if m.sent {
		p.Sent++
	}
	if wrote = m.sent && !before; wrote {
		p.Written++
	}
	return wrote
}

func (p *messageSums) counter(status string) *int64 {
	switch status {
	case "delivered":
		return &p.Delivered
	case "failed", "undelivered":
		return &p.Failed
	case "scheduled", "queued", "sending":
		return &p.Pending
	case "canceled":
		return &p.Canceled
	}
	return nil
}

func (p *messageSums) totals() MessageTotals {
	t := p.MessageTotals
	t.DeliveryRate, t.ReplyRate = percent(t.Delivered, t.Delivered+t.Failed), percent(t.Replied, t.Written)
	return t
}

func (s *Service) messages(ctx context.Context, in *MessagesIn) (*huma.StreamResponse, error) {
	q, err := s.newQuery(ctx, in.PeriodIn, FilterIn{})
	if err != nil {
		return nil, err
	}
	names := unique(in.GroupBy)
	sums, waiting := newAggregation[messageSums](q, names), map[string][]*messageSums{}
	err = s.eachMessage(ctx, q, in, func(m message) {
		if in.matches(m) {
			for _, p := range sums.at(q, m.at.Time, m.groupField) {
				if p.add(m) {
					waiting[m.thread] = append(waiting[m.thread], p)
				}
			}
		}
		if m.direction == "inbound" {
			for _, p := range waiting[m.thread] {
				p.Replied++
			}
			delete(waiting, m.thread)
		}
	})
	if err != nil {
		return nil, err
	}
	r := MessageReport{Interval: q.interval, Timezone: q.zone.String(), Totals: sums.all.totals(),
		Series: make([]MessagePoint, len(q.steps)), AsOf: db.At(s.cfg.Clock.Now())}
	r.Since, r.Until = q.times()
	for i, at := range q.steps {
		r.Series[i] = MessagePoint{db.At(at), sums.steps[i].totals()}
	}
	for _, key := range sums.sorted(func(p *messageSums) int64 { return p.Total }) {
		r.Groups = append(r.Groups, MessageGroup{sums.by(key), sums.groups[key].totals()})
	}
	if strings.Contains(in.Accept, "text/csv") {
		return csvResponse(r.rows(names)), nil
	}
	return op.JSONStream(r), nil
}

func (r MessageReport) rows(names []string) [][]string {
	var lines []csvRow
	for _, p := range r.Series {
		lines = append(lines, csvRow{at: p.At, figures: p.MessageTotals})
	}
	if len(names) > 0 {
		lines = nil
	}
	for _, g := range r.Groups {
		lines = append(lines, csvRow{by: g.By, figures: g.MessageTotals})
	}
	return csvRows(names, lines, MessageTotals{})
}

// matches reports whether a message is counted. A message that does not match may still be a reply.
func (in *MessagesIn) matches(m message) bool {
	return (in.AgentID == "" || in.AgentID == m.user) && (in.Direction == "" || in.Direction == m.direction)
}

// eachMessage calls do for each message, in the order of creation.
func (s *Service) eachMessage(ctx context.Context, q callQuery, in *MessagesIn, do func(message)) error {
	const text = `SELECT m.created_at, m.conversation_id, m.direction, m.status, c.number_id, m.user_id, m.sent_at, m.segments
		FROM messages m JOIN conversations c ON c.org_id = m.org_id AND c.id = m.conversation_id WHERE m.org_id = $1`
	since, until := q.times()
	f := db.Where(text, q.org).Between("m.created_at", since, until).Equal("c.number_id", in.NumberID)
	if in.QueueID != "" {
		f.And("c.number_id IN (SELECT id FROM numbers n WHERE n.org_id = m.org_id AND n.queue_id = ?)", in.QueueID)
	}
	for _, t := range in.Tag {
		quoted, _ := json.Marshal(t) // tags are kept as a JSON list
		f.And(`c.tags LIKE ? ESCAPE '\'`, "%"+db.Escape(string(quoted))+"%")
	}
	return s.eachRow(ctx, f, " ORDER BY m.created_at, m.id", func(rows *sql.Rows) error {
		var m message
		var number, user db.Null
		var sent db.Time
		err := rows.Scan(&m.at, &m.thread, &m.direction, &m.status, &number, &user, &sent, &m.segments)
		m.number, m.user, m.sent = string(number), string(user), !sent.IsZero()
		if err == nil {
			do(m)
		}
		return err
	})
}
