package queue

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
)

// Member is a user as an agent of a queue.
type Member struct {
	QueueID         string         `json:"queue_id"`
	UserID          string         `json:"user_id"`
	Name            string         `json:"name"`
	Extension       *string        `json:"extension"`
	Priority        int            `json:"priority" doc:"1 is asked first"`
	Skills          map[string]int `json:"skills" nullable:"false" doc:"Over those of the user"`
	SignedIn        bool           `json:"signed_in"`
	Paused          bool           `json:"paused"`
	PauseReason     *string        `json:"pause_reason"`
	Presence        user.Presence  `json:"presence"`
	OfferedToday    int            `json:"offered_today"`
	AnsweredToday   int            `json:"answered_today"`
	MissedStreak    int            `json:"missed_streak"`
	LastCallEndedAt db.Time        `json:"last_call_ended_at" nullable:"true"`

	userSkills  map[string]int
	lastOffered db.Time
	state       *agent.State
}

// skillLevel returns the level of a member's skill; 0 if the member lacks it.
func (m Member) skillLevel(name string) int {
	if level, own := m.Skills[name]; own {
		return level
	}
	return m.userSkills[name]
}

// hasSkills reports whether a member has every required skill at its level.
func (m Member) hasSkills(required ...map[string]int) bool {
	for _, all := range required {
		for name, level := range all {
			if m.skillLevel(name) < level {
				return false
			}
		}
	}
	return true
}

// canTakeCall reports whether a member can be offered a caller now.
func (m Member) canTakeCall() bool {
	return m.SignedIn && !m.Paused && m.Presence.Status == agent.Available && m.isReachable()
}

// isReachable reports whether a member has a registered phone. Members without one are still available for a while after they lost it.
func (m Member) isReachable() bool { return m.state != nil && m.state.Devices > 0 }

const memberColumns = `SELECT m.queue_id, m.user_id, u.first_name, u.last_name, u.extension, u.skills, m.priority, m.skills, m.signed_in,
	m.paused, m.pause_reason, m.last_offered_at, m.last_call_ended_at
	FROM queue_members m JOIN users u ON u.org_id = m.org_id AND u.id = m.user_id WHERE m.org_id = $1`

func scanMember(scan func(...any) error) (Member, error) {
	var m Member
	var first, last string
	var own, general db.JSON[map[string]int]
	err := scan(&m.QueueID, &m.UserID, &first, &last, &m.Extension, &general, &m.Priority, &own, &m.SignedIn, &m.Paused, &m.PauseReason,
		&m.lastOffered, &m.LastCallEndedAt)
	m.Name, m.Skills, m.userSkills = strings.TrimSpace(first+" "+last), own.V, general.V
	if m.Skills == nil {
		m.Skills = map[string]int{}
	}
	return m, err
}

func insertMember(ctx context.Context, tx db.Querier, org string, m Member, now db.Time) error {
	const text = `INSERT INTO queue_members (org_id, queue_id, user_id, priority, skills, signed_in, paused, pause_reason, added_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	_, err := tx.Exec(ctx, text, org, m.QueueID, m.UserID, m.Priority, db.AsJSON(m.Skills), m.SignedIn, m.Paused, m.PauseReason, now)
	return err
}

func updateMember(ctx context.Context, tx db.Querier, org string, m Member) error {
	const text = `UPDATE queue_members SET priority = $4, skills = $5, signed_in = $6, paused = $7, pause_reason = $8
		WHERE org_id = $1 AND queue_id = $2 AND user_id = $3`
	_, err := tx.Exec(ctx, text, org, m.QueueID, m.UserID, m.Priority, db.AsJSON(m.Skills), m.SignedIn, m.Paused, m.PauseReason)
	return err
}

func removeMember(ctx context.Context, tx db.Querier, org, queue, user string) error {
	const text = `DELETE FROM queue_members WHERE org_id = $1 AND queue_id = $2 AND user_id = $3`
	_, err := tx.Exec(ctx, text, org, queue, user)
	return err
}

// members reads the members of queues; nil means all queues. withStats adds their presence and today's counts.
func members(ctx context.Context, q db.Querier, org string, queues []string) (found []Member, err error) {
	text, args := db.Where(memberColumns, org).In("m.queue_id", queues).SQL()
	err = db.ForEach(ctx, q, "list members", text+` ORDER BY m.user_id, m.queue_id`, args, func(scan func(...any) error) error {
		m, err := scanMember(scan)
		found = append(found, m)
		return err
	})
	return found, err
}

func member(ctx context.Context, q db.Querier, org, queue, user string) (Member, error) {
	return scanMember(q.QueryRow(ctx, memberColumns+` AND m.queue_id = $2 AND m.user_id = $3`, org, queue, user).Scan)
}

// withPresence sets the presence of members.
func (s *Service) withPresence(ctx context.Context, q db.Querier, org string, found []Member) error {
	if len(found) == 0 {
		return nil
	}
	ids := make([]string, 0, len(found))
	for _, m := range found {
		ids = append(ids, m.UserID)
	}
	states, err := s.cfg.Agents.States(ctx, q, org, ids)
	if err != nil {
		return err
	}
	for i := range found {
		m := &found[i]
		m.Presence.Status = agent.Offline
		if x := states[m.UserID]; x != nil {
			m.state, m.Presence, m.MissedStreak = x, x.Presence, x.MissedStreak()
		}
	}
	return nil
}

// addCounts sets the counts of offers and answered calls since a time.
func addCounts(ctx context.Context, q db.Querier, org string, since db.Time, found []Member) error {
	if len(found) == 0 {
		return nil
	}
	at, ids := map[[2]string]*Member{}, []string{}
	for i := range found {
		at[[2]string{found[i].QueueID, found[i].UserID}] = &found[i]
		ids = append(ids, found[i].UserID)
	}
	if len(ids) > 500 { // more ids: read the whole organisation
		ids = nil
	}
	const text = `SELECT queue_id, agent_id, COUNT(*), COUNT(CASE WHEN status IN ('connected', 'completed') THEN 1 END) FROM queue_offers
		WHERE org_id = $1 AND offered_at >= $2`
	statement, args := db.Where(text, org, since).In("agent_id", ids).SQL()
	return db.ForEach(ctx, q, "count offers", statement+` GROUP BY queue_id, agent_id`, args, func(scan func(...any) error) error {
		var queue, user string
		var offered, answered int
		err := scan(&queue, &user, &offered, &answered)
		if m := at[[2]string{queue, user}]; m != nil {
			m.OfferedToday, m.AnsweredToday = offered, answered
		}
		return err
	})
}

// withStats sets the presence and today's counts of members.
func (s *Service) withStats(ctx context.Context, q db.Querier, org string, found []Member) error {
	if err := s.withPresence(ctx, q, org, found); err != nil {
		return err
	}
	since, err := s.startOfDay(ctx, org)
	if err != nil {
		return err
	}
	return addCounts(ctx, q, org, since, found)
}

// startOfDay returns the beginning of the day in the organisation's time zone.
func (s *Service) startOfDay(ctx context.Context, org string) (db.Time, error) {
	zone, err := s.cfg.Orgs.Zone(ctx, org)
	if err != nil {
		return db.Time{}, err
	}
	return agent.StartOfDay(s.cfg.Clock.Now(), zone), nil
}

// QueuesOfUsers returns the queue ids of users, by user id.
func (s *Service) QueuesOfUsers(ctx context.Context, q db.Querier, org string, users []string) (map[string][]string, error) {
	const text = `SELECT m.user_id, m.queue_id FROM queue_members m WHERE m.org_id = $1`
	statement, args := db.Where(text, org).In("m.user_id", users).SQL()
	found := map[string][]string{}
	err := db.ForEach(ctx, q, "find queues of users", statement+` ORDER BY m.queue_id`, args, func(scan func(...any) error) error {
		var user, queue string
		err := scan(&user, &queue)
		found[user] = append(found[user], queue)
		return err
	})
	return found, err
}

// SetMemberships makes a user a member of exactly these queues. Existing memberships keep their settings.
func (s *Service) SetMemberships(ctx context.Context, tx db.Querier, org, user string, queues []string) error {
	has, err := s.QueuesOfUsers(ctx, tx, org, []string{user})
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, id := range queues {
		keep[id] = true
	}
	for _, id := range has[user] {
		if keep[id] {
			delete(keep, id)
			continue
		}
		if err := removeMember(ctx, tx, org, id, user); err != nil {
			return fmt.Errorf("leave queue: %w", err)
		}
		if err := s.cancelAgentOffers(ctx, tx, org, user, id); err != nil {
			return err
		}
		s.notifyChange(tx, org, id)
	}
	for id := range keep {
		m := Member{QueueID: id, UserID: user, Priority: defaultPriority, SignedIn: true, Skills: map[string]int{}}
		if err := insertMember(ctx, tx, org, m, db.At(s.cfg.Clock.Now())); err != nil {
			return fmt.Errorf("join queue: %w", err)
		}
		s.notifyChange(tx, org, id)
	}
	return nil
}

// RemoveUser ends the memberships and the open offers of a removed user.
func (s *Service) RemoveUser(ctx context.Context, tx db.Querier, org, user string) error {
	if err := s.SetMemberships(ctx, tx, org, user, nil); err != nil {
		return err
	}
	return s.cancelAgentOffers(ctx, tx, org, user, "")
}

// AgentsWithdrawn implements agent.WithdrawnObserver: it cancels the ringing offers of agents who take no calls any
// more. The callers wait again for the next agent, and no missed offer is counted.
func (s *Service) AgentsWithdrawn(ctx context.Context, tx db.Querier, org string, users []string) error {
	for _, id := range users {
		if err := s.cancelAgentOffers(ctx, tx, org, id, ""); err != nil {
			return err
		}
	}
	return nil
}

// cancelAgentOffers cancels the ringing offers of an agent, in one queue or, with "", in all.
func (s *Service) cancelAgentOffers(ctx context.Context, tx db.Querier, org, user, queue string) error {
	const text = `SELECT id FROM queue_offers WHERE org_id = $1 AND agent_id = $2 AND status IN ('offering', 'connected')
		AND status = 'offering'
		AND (queue_id = $3 OR $3 = '')`
	var open []string
	err := db.ForEach(ctx, tx, "find offers", text, []any{org, user, queue}, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		open = append(open, id)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range open {
		if _, err := s.DeclineOffer(ctx, tx, org, id, OfferCanceled); err != nil {
			return err
		}
	}
	return nil
}
