package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"soniq/internal/platform/clock/localday"
	"soniq/internal/platform/db"
)

const agentColumns = `SELECT u.id, u.first_name, u.last_name, u.email, u.extension, u.skills FROM users u
	WHERE u.org_id = $1 AND u.status <> 'removed'`

func scanAgent(scan func(...any) error) (Agent, error) {
	a := Agent{Queues: []Membership{}}
	var first, last string
	var skills db.JSON[map[string]int]
	err := scan(&a.ID, &first, &last, &a.Email, &a.Extension, &skills)
	a.Name, a.Skills = strings.TrimSpace(first+" "+last), skills.V
	if a.Skills == nil {
		a.Skills = map[string]int{}
	}
	return a, err
}

func getAgent(ctx context.Context, q db.Querier, org, id string) (Agent, error) {
	return scanAgent(q.QueryRow(ctx, agentColumns+` AND u.id = $2`, org, id).Scan)
}

// listAgents reads up to limit users after an id.
func listAgents(ctx context.Context, q db.Querier, org string, in *ListIn, after string, limit int) (all []Agent, err error) {
	f := db.Where(agentColumns, org)
	if in.Q != "" {
		like := "%" + db.Escape(in.Q) + "%"
		f.And(`lower(u.email) LIKE lower(?) ESCAPE '\' OR lower(u.first_name || ' ' || u.last_name) LIKE lower(?) ESCAPE '\' OR u.extension = ?`,
			like, like, in.Q)
	}
	if in.QueueID != "" {
		f.And(`EXISTS (SELECT 1 FROM queue_members m JOIN queues k ON k.org_id = m.org_id AND k.id = m.queue_id
			WHERE m.org_id = u.org_id AND m.user_id = u.id AND m.queue_id = ? AND k.removed_at IS NULL)`, in.QueueID)
	}
	if after != "" {
		f.And("u.id > ?", after)
	}
	text, args := f.SQL()
	text += fmt.Sprintf(" ORDER BY u.id LIMIT %d", limit)
	err = db.ForEach(ctx, q, "list agents", text, args, func(scan func(...any) error) error {
		a, err := scanAgent(scan)
		all = append(all, a)
		return err
	})
	return all, err
}

// withDetails sets the queues and today's counts of agents.
func (s *Service) withDetails(ctx context.Context, q db.Querier, org string, agents []Agent) error {
	if len(agents) == 0 {
		return nil
	}
	ids, at := make([]string, len(agents)), map[string]*Agent{}
	for i := range agents {
		ids[i], at[agents[i].ID] = agents[i].ID, &agents[i]
	}
	if err := memberships(ctx, q, org, ids, at); err != nil {
		return err
	}
	since, err := s.startOfDay(ctx, org)
	if err != nil {
		return err
	}
	work, err := s.statsOf(ctx, q, org, ids, since, db.At(s.cfg.Clock.Now()))
	if err != nil {
		return err
	}
	for id, a := range at {
		w := work[id]
		a.Today = Today{Answered: w.Answered, Missed: w.Missed, TalkSeconds: w.TalkSeconds, AvailableSeconds: w.AvailableSeconds,
			AverageHandleSeconds: w.AverageHandleSeconds}
	}
	return nil
}

func memberships(ctx context.Context, q db.Querier, org string, ids []string, at map[string]*Agent) error {
	const text = `SELECT m.user_id, k.id, k.name, m.signed_in, m.paused, m.priority FROM queue_members m
		JOIN queues k ON k.org_id = m.org_id AND k.id = m.queue_id WHERE m.org_id = $1 AND k.removed_at IS NULL`
	statement, args := inUsers(db.Where(text, org), "m.user_id", ids).SQL()
	return db.ForEach(ctx, q, "find queues of agents", statement+` ORDER BY k.id`, args, func(scan func(...any) error) error {
		var id string
		var m Membership
		err := scan(&id, &m.ID, &m.Name, &m.SignedIn, &m.Paused, &m.Priority)
		if a := at[id]; a != nil {
			a.Queues = append(a.Queues, m)
		}
		return err
	})
}

// startOfDay returns the beginning of the day in the organisation's time zone.
func (s *Service) startOfDay(ctx context.Context, org string) (db.Time, error) {
	zone, err := s.cfg.Zones.Zone(ctx, org)
	if err != nil {
		return db.Time{}, fmt.Errorf("find time zone: %w", err)
	}
	return StartOfDay(s.cfg.Clock.Now(), zone), nil
}

// StartOfDay returns the beginning of the day that contains now in a time zone.
func StartOfDay(now time.Time, zone *time.Location) db.Time {
	return db.At(localday.Start(now, zone))
}
