package queue

import (
	"context"
	"fmt"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Stats holds the figures of a queue at one moment.
type Stats struct {
	CallersWaiting   int       `json:"callers_waiting"`
	AgentsAvailable  int       `json:"agents_available"`
	Today            Today     `json:"today"`
	LongestWait      int       `json:"longest_wait_seconds" doc:"Of those who wait now"`
	AverageWait      int       `json:"average_wait_seconds" doc:"Of those who were answered today"`
	EstimatedWait    *int      `json:"estimated_wait_seconds" doc:"For who would call now; null: not known, as nobody answers or nobody was answered today"`
	ServiceLevelRate int       `json:"service_level_rate" doc:"Of today's callers, how many were answered within service_level_seconds"`
	Agents           AgentsNow `json:"agents"`
	CallbacksPending int       `json:"callbacks_pending"`
	AsOf             db.Time   `json:"as_of"`
}

// Today counts the callers since midnight in the organisation's time zone.
type Today struct {
	Answered    int `json:"answered"`
	Abandoned   int `json:"abandoned" doc:"Without those who left within short_abandon_seconds"`
	AnswerRate  int `json:"answer_rate" doc:"Of answered and abandoned; 0 where there are neither"`
	Offered     int `json:"offered" doc:"All who entered"`
	Overflowed  int `json:"overflowed" doc:"Sent on, or out of time"`
	Callbacks   int `json:"callbacks"`
	AverageTalk int `json:"average_talk_seconds"`
}

// AgentsNow counts the members of a queue by presence. Paused members and members with do-not-disturb count as away.
type AgentsNow struct {
	SignedIn  int `json:"signed_in"`
	Available int `json:"available"`
	Ringing   int `json:"ringing"`
	Busy      int `json:"busy"`
	WrapUp    int `json:"wrap_up"`
	Away      int `json:"away"`
}

// Named holds the figures of one queue in a list.
type Named struct {
	QueueID string `json:"queue_id"`
	Name    string `json:"name"`
	Stats
}

// AllStats holds the figures of all queues at one moment.
type AllStats struct {
	Data []Named `json:"data" nullable:"false"`
	AsOf db.Time `json:"as_of"`
}

// staffedAgents returns the number of agents available for callers, now or after their current call.
func (x Stats) staffedAgents() int {
	return x.Agents.Available + x.Agents.Ringing + x.Agents.Busy + x.Agents.WrapUp
}

// ShowStats returns a queue's figures.
func (s *Service) ShowStats(ctx context.Context, in *OneIn) (*op.Out[Stats], error) {
	q := s.cfg.DB.Read(ctx)
	k, err := s.findQueue(ctx, q, in.ID)
	if err != nil {
		return nil, err
	}
	figures, err := s.stats(ctx, q, k.OrgID, []Queue{k})
	if err != nil {
		return nil, err
	}
	return op.OK(figures[0])
}

// maxQueues limits the queues whose figures are returned together.
const maxQueues = 5000

// StatsAll returns the figures of all queues.
func (s *Service) StatsAll(ctx context.Context, _ *struct{}) (*op.Out[AllStats], error) {
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	found, err := listQueues(ctx, q, db.Where(queueColumns, org), "", maxQueues)
	if err != nil {
		return nil, err
	}
	figures, err := s.stats(ctx, q, org, found)
	if err != nil {
		return nil, err
	}
	out := AllStats{Data: make([]Named, len(found)), AsOf: db.At(s.cfg.Clock.Now())}
	for i, k := range found {
		out.Data[i] = Named{k.ID, k.Name, figures[i]}
	}
	return op.OK(out)
}

// stats returns the figures of queues of one organisation, in the order of the queues.
func (s *Service) stats(ctx context.Context, q db.Querier, org string, queues []Queue) ([]Stats, error) {
	since, err := s.startOfDay(ctx, org)
	if err != nil {
		return nil, err
	}
	figures, at, ids := make([]Stats, len(queues)), map[string]int{}, []string{}
	for i, k := range queues {
		at[k.ID], ids = i, append(ids, k.ID)
		if err := s.countWaiting(ctx, q, k, &figures[i]); err != nil {
			return nil, err
		}
		if err := countToday(ctx, q, k, since, &figures[i]); err != nil {
			return nil, err
		}
	}
	if len(ids) > 100 { // more ids: read the members of all queues
		ids = nil
	}
	if err := s.countAgents(ctx, q, org, queues, ids, at, figures); err != nil {
		return nil, err
	}
	for i, k := range queues {
		x := &figures[i]
		x.EstimatedWait = throughput{x.Today.AverageTalk, k.WrapUp, x.staffedAgents(), x.Agents.Available > 0 &&
			x.CallersWaiting == 0}.estimatedWait(x.CallersWaiting + 1)
	}
	return figures, nil
}

// currentStats returns the figures of a queue except those of today.
func (s *Service) currentStats(ctx context.Context, q db.Querier, k Queue) (Stats, error) {
	one := make([]Stats, 1)
	if err := s.countWaiting(ctx, q, k, &one[0]); err != nil {
		return one[0], err
	}
	err := s.countAgents(ctx, q, k.OrgID, []Queue{k}, []string{k.ID}, map[string]int{k.ID: 0}, one)
	return one[0], err
}

// countWaiting sets the numbers of waiting callers and callbacks, and the longest wait.
func (s *Service) countWaiting(ctx context.Context, q db.Querier, k Queue, x *Stats) error {
	const waiting = `SELECT COUNT(CASE WHEN status IN ('waiting', 'offering') THEN 1 END),
		COUNT(CASE WHEN status IN ('callback_pending', 'callback_dialing') THEN 1 END),
			MIN(CASE WHEN status IN ('waiting', 'offering') THEN entered_at END)
		FROM queue_entries WHERE org_id = $1 AND queue_id = $2 AND ` + waitingCondition
	var oldest db.Time
	if err := q.QueryRow(ctx, waiting, k.OrgID, k.ID).Scan(&x.CallersWaiting, &x.CallbacksPending, &oldest); err != nil {
		return fmt.Errorf("count callers: %w", err)
	}
	x.AsOf = db.At(s.cfg.Clock.Now())
	if !oldest.IsZero() {
		x.LongestWait = max(int(x.AsOf.Sub(oldest.Time).Seconds()), 0)
	}
	return nil
}

// countToday sets the figures of the callers since midnight.
func countToday(ctx context.Context, q db.Querier, k Queue, since db.Time, x *Stats) error {
	c, err := figuresOf(ctx, q, k, func(f *db.Filter) *db.Filter { return f.Between("e.entered_at", since, db.Time{}) })
	if err != nil {
		return err
	}
	x.Today = Today{Answered: c.Answered, Abandoned: c.Abandoned, AnswerRate: percent(c.Answered, c.Served()), Offered: c.Offered,
		Overflowed: c.Overflowed, Callbacks: c.Callbacks, AverageTalk: c.AverageTalk}
	x.AverageWait, x.ServiceLevelRate = c.AverageWait, percent(c.InTime, c.Served())
	return nil
}

// percent returns part of whole in percent, rounded; 0 if whole is 0.
func percent(part, whole int) int {
	if whole == 0 {
		return 0
	}
	return (200*part + whole) / (2 * whole)
}

// countAgents counts members by presence.
func (s *Service) countAgents(ctx context.Context, q db.Querier, org string, queues []Queue, ids []string, at map[string]int,
	figures []Stats) error {
	found, err := members(ctx, q, org, ids)
	if err != nil {
		return err
	}
	if err := s.withPresence(ctx, q, org, found); err != nil {
		return err
	}
	for _, m := range found {
		i, ok := at[m.QueueID]
		if !ok || !m.SignedIn {
			continue
		}
		a := &figures[i].Agents
		a.SignedIn++
		switch p := m.Presence.Status; {
		case p == agent.Offline:
		case p == agent.Ringing:
			a.Ringing++
		case p == agent.Busy:
			a.Busy++
		case m.Paused || p == agent.Away || p == agent.DND:
			a.Away++
		case p == agent.WrapUp:
			a.WrapUp++
		default:
			a.Available++
			if m.isReachable() && m.hasSkills(queues[i].RequiredSkills) {
				figures[i].AgentsAvailable++
			}
		}
	}
	return nil
}
