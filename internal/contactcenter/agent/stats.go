package agent

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
)

// Stats counts an agent's work in a span of time.
type Stats struct {
	AgentID              string  `json:"agent_id"`
	Since                db.Time `json:"since"`
	Until                db.Time `json:"until"`
	Answered             int     `json:"answered"`
	Missed               int     `json:"missed"`
	Offered              int     `json:"offered" doc:"By queues"`
	TalkSeconds          int     `json:"talk_seconds"`
	HoldSeconds          int     `json:"hold_seconds"`
	AverageHandleSeconds int     `json:"average_handle_seconds"`
	AvailableSeconds     int     `json:"available_seconds"`
	RingingSeconds       int     `json:"ringing_seconds"`
	BusySeconds          int     `json:"busy_seconds"`
	WrapUpSeconds        int     `json:"wrap_up_seconds"`
	AwaySeconds          int     `json:"away_seconds"`
	DNDSeconds           int     `json:"dnd_seconds"`
	OccupancyRate        int     `json:"occupancy_rate" doc:"Of the time neither away nor offline, how much was ringing, busy or wrap-up"`
}

// StatsIn identifies an agent and a span of time.
type StatsIn struct {
	OneIn
	op.Span
}

// maxSpan limits the span of time of one request.
const maxSpan = 400 * 24 * time.Hour

// Stats returns the work of an agent, by default of today.
func (s *Service) Stats(ctx context.Context, in *StatsIn) (*op.Out[Stats], error) {
	since, until, err := in.Times()
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	if _, err := getAgent(ctx, q, org, in.ID); db.IsNone(err) {
		return nil, op.NotFound("agent")
	} else if err != nil {
		return nil, fmt.Errorf("get agent: %w", err)
	}
	if since.IsZero() {
		if since, err = s.startOfDay(ctx, org); err != nil {
			return nil, err
		}
	}
	if until.IsZero() {
		until = db.At(s.cfg.Clock.Now())
	}
	if until.Sub(since.Time) > maxSpan || until.Before(since.Time) {
		return nil, &op.Error{Code: "invalid_query", Detail: "until must follow since, within 400 days",
			Fields: []op.Violation{op.Field("until", "out_of_range", "must follow since, within 400 days")}}
	}
	all, err := s.statsOf(ctx, q, org, []string{in.ID}, since, until)
	if err != nil {
		return nil, err
	}
	return op.OK(*all[in.ID])
}

// statsOf returns the work of agents, by id.
func (s *Service) statsOf(ctx context.Context, q db.Querier, org string, ids []string, since, until db.Time) (map[string]*Stats, error) {
	all := make(map[string]*Stats, len(ids))
	for _, id := range ids {
		all[id] = &Stats{AgentID: id, Since: since, Until: until}
	}
	for _, read := range []func(context.Context, db.Querier, string, []string, db.Time, db.Time, map[string]*Stats) error{countAnswered,
		countMissed, s.addSpells} {
		if err := read(ctx, q, org, ids, since, until, all); err != nil {
			return nil, err
		}
	}
	for _, w := range all {
		work := w.RingingSeconds + w.BusySeconds + w.WrapUpSeconds
		if w.Answered > 0 {
			w.AverageHandleSeconds = (w.TalkSeconds + w.HoldSeconds + w.Answered/2) / w.Answered
		}
		if there := work + w.AvailableSeconds; there > 0 {
			w.OccupancyRate = (100*work + there/2) / there
		}
	}
	return all, nil
}

// countAnswered counts the calls that agents served, and their own seconds of them. A call that several served counts
// for each. A call in progress counts as answered; its seconds count once the agent has left it.
func countAnswered(ctx context.Context, q db.Querier, org string, ids []string, since, until db.Time, all map[string]*Stats) error {
	view, err := visibility.From(ctx, q)
	if err != nil {
		return err
	}
	const text = `SELECT l.user_id, COUNT(DISTINCT c.id), COALESCE(SUM(l.talk_seconds), 0), COALESCE(SUM(l.hold_seconds), 0) FROM calls c
		JOIN legs l ON l.org_id = c.org_id AND l.call_id = c.id
		WHERE c.org_id = $1 AND c.answered_at IS NOT NULL AND (l.talk_seconds IS NOT NULL
			OR l.ended_at IS NULL AND l.answered_at IS NOT NULL AND (l.role = 'agent' OR l.role = 'caller' AND c.source = 'callback'))`
	f := inUsers(view.Narrow(db.Where(text, org), "c.id"), "l.user_id", ids).Between("c.started_at", since, until)
	statement, args := f.SQL()
	return db.ForEach(ctx, q, "count calls of agents", statement+` GROUP BY l.user_id`, args, func(scan func(...any) error) error {
		var id string
		var n, talk, hold int
		err := scan(&id, &n, &talk, &hold)
		if w := all[id]; w != nil {
			w.Answered, w.TalkSeconds, w.HoldSeconds = n, talk, hold
		}
		return err
	})
}

// notWithdrawn excludes legs that rang for an offer that ended while the caller went on waiting: the agent was away by
// then, or another reason of the queue ended it. The agent did not miss that caller.
const notWithdrawn = ` AND NOT EXISTS (SELECT 1 FROM queue_offers o JOIN queue_entries e ON e.org_id = o.org_id AND e.id = o.entry_id
	WHERE o.org_id = l.org_id AND o.agent_id = l.user_id AND o.offered_at >= c.started_at AND o.offered_at <= l.started_at
	AND o.call_id = c.id
		AND o.status = 'canceled' AND o.ended_at >= l.started_at AND (e.exited_at IS NULL OR e.exited_at > o.ended_at))`

// countMissed counts calls that rang agents and were not answered, and the offers of queues.
func countMissed(ctx context.Context, q db.Querier, org string, ids []string, since, until db.Time, all map[string]*Stats) error {
	view, err := visibility.From(ctx, q)
	if err != nil {
		return err
	}
	rung := inUsers(view.Narrow(db.Where(`SELECT l.user_id AS agent_id, c.id AS call_id, 0 AS offer FROM calls c
		JOIN legs l ON l.org_id = c.org_id AND l.call_id = c.id
		WHERE c.org_id = $1 AND c.missed_reason IS NOT NULL AND l.role <> 'caller' AND l.answered_at IS NULL`+notWithdrawn, org), "c.id"),
		"l.user_id", ids).
		Between("c.started_at", since, until)
	text, args := rung.SQL()
	offers := inUsers(view.Narrow(db.Where(text+` UNION ALL SELECT agent_id, call_id,
		CASE WHEN status IN ('no_answer', 'rejected', 'expired') THEN 1 ELSE 2 END
			FROM queue_offers WHERE org_id = $1`, args...), "call_id"),
		"agent_id", ids).Between("offered_at", since, until)
	text, args = offers.SQL()
	text = `SELECT agent_id, COUNT(DISTINCT CASE WHEN offer < 2 THEN call_id END), COUNT(CASE WHEN offer > 0 THEN 1 END) FROM (` + text +
		`) AS rung GROUP BY agent_id`
	return db.ForEach(ctx, q, "count missed calls of agents", text, args, func(scan func(...any) error) error {
		var id string
		var n, offered int
		err := scan(&id, &n, &offered)
		if w := all[id]; w != nil {
			w.Missed, w.Offered = n, offered
		}
		return err
	})
}

// addSpells sums how long agents had each presence, including the current one.
func (s *Service) addSpells(ctx context.Context, q db.Querier, org string, ids []string, since, until db.Time,
	all map[string]*Stats) error {
	const text = `SELECT user_id, status, since, until_at FROM agent_spells WHERE org_id = $1 AND until_at > $2`
	statement, args := inUsers(db.Where(text, org, since), "user_id", ids).And("since < ?", until).SQL()
	lasted := map[string]map[string]time.Duration{}
	add := func(id, status string, from, to time.Time) {
		if from.Before(since.Time) {
			from = since.Time
		}
		if to.After(until.Time) {
			to = until.Time
		}
		if lasted[id] == nil {
			lasted[id] = map[string]time.Duration{}
		}
		lasted[id][status] += max(to.Sub(from), 0)
	}
	err := db.ForEach(ctx, q, "add up presence", statement, args, func(scan func(...any) error) error {
		var id, status string
		var from, to db.Time
		err := scan(&id, &status, &from, &to)
		add(id, status, from.Time, to.Time)
		return err
	})
	if err != nil {
		return err
	}
	now, err := readRows(ctx, q, org, ids)
	if err != nil {
		return fmt.Errorf("read agents: %w", err)
	}
	for id, x := range now {
		add(id, x.row.published.status, x.row.published.since.Time, s.cfg.Clock.Now())
	}
	for id, w := range all {
		w.setDurations(lasted[id])
	}
	return nil
}

func (w *Stats) setDurations(lasted map[string]time.Duration) {
	for status, to := range map[string]*int{Available: &w.AvailableSeconds, Ringing: &w.RingingSeconds, Busy: &w.BusySeconds,
		WrapUp: &w.WrapUpSeconds, Away: &w.AwaySeconds, DND: &w.DNDSeconds} {
		*to = int(lasted[status].Round(time.Second) / time.Second)
	}
}
