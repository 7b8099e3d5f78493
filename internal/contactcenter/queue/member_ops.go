package queue

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// defaultPriority is the priority of a member that sets none.
const defaultPriority = 5

func (s *Service) memberOperations() []op.Operation {
	return []op.Operation{
		op.New("queues.members.list", "GET /queues/{id}/members", access.QueuesRead, "List who answers a queue", s.Members),
		op.New("queues.members.add", "POST /queues/{id}/members", access.QueuesAdmin, "Let a user answer a queue", s.AddMember).Status(201),
		op.New("queues.members.update", "PATCH /queues/{id}/members/{user_id}", access.QueuesAdmin, "Change how a user answers a queue",
			s.ChangeMember),
		op.Delete("queues.members.remove", "DELETE /queues/{id}/members/{user_id}", access.QueuesAdmin, "Let a user answer a queue no more",
			s.RemoveMember),
		op.New("agents.queues.set", "PUT /agents/{id}/queues/{queue_id}", access.QueuesAdmin,
			"Sign an agent in or out of a queue, or pause", s.SetAgentQueue).ForSelf(),
	}
}

// MembersIn selects members of a queue.
type MembersIn struct {
	OneIn
	op.Paging
	SignedIn string   `query:"signed_in" enum:"true,false"`
	Presence []string `query:"presence" enum:"available,ringing,busy,wrap_up,away,dnd,offline"`
}

func (in *MembersIn) matches(m Member) bool {
	if in.SignedIn != "" && (in.SignedIn == "true") != m.SignedIn {
		return false
	}
	for _, p := range in.Presence {
		if p == m.Presence.Status {
			return true
		}
	}
	return len(in.Presence) == 0
}

// Members lists the members of a queue.
func (s *Service) Members(ctx context.Context, in *MembersIn) (*op.Out[op.Page[Member]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	if _, err := s.findQueue(ctx, q, in.ID); err != nil {
		return nil, err
	}
	found, err := members(ctx, q, org, []string{in.ID})
	if err != nil {
		return nil, err
	}
	if err := s.withPresence(ctx, q, org, found); err != nil {
		return nil, err
	}
	wanted, total := []Member{}, 0
	for _, m := range found {
		if !in.matches(m) {
			continue
		}
		total++
		if m.UserID > after.ID && len(wanted) <= in.Limit {
			s.cfg.Agents.NoteShown(org, m.state)
			wanted = append(wanted, m)
		}
	}
	since, err := s.startOfDay(ctx, org)
	if err != nil {
		return nil, err
	}
	if err := addCounts(ctx, q, org, since, wanted); err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, wanted, func(m Member) op.Position { return op.Position{ID: m.UserID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return total, nil })
}

// AddMemberIn is the input of AddMember.
type AddMemberIn struct {
	OneIn
	Body MemberFresh
}

// MemberFresh is a new member.
type MemberFresh struct {
	UserID   string         `json:"user_id"`
	Priority *int           `json:"priority,omitempty" doc:"1 to 10; 1 is asked first; 5 unless given"`
	Skills   map[string]int `json:"skills,omitempty" doc:"Level 1 to 10 by skill, over those of the user"`
	SignedIn *bool          `json:"signed_in,omitempty" doc:"true unless given"`
}

// member returns the row of a new member.
func (f MemberFresh) member(queue string) Member {
	m := Member{QueueID: queue, UserID: f.UserID, Priority: defaultPriority, SignedIn: true, Skills: f.Skills}
	if f.Priority != nil {
		m.Priority = *f.Priority
	}
	if f.SignedIn != nil {
		m.SignedIn = *f.SignedIn
	}
	if m.Skills == nil {
		m.Skills = map[string]int{}
	}
	return m
}

// AddMember makes a user a member of a queue.
func (s *Service) AddMember(ctx context.Context, in *AddMemberIn) (*op.Out[Member], error) {
	m, org := in.Body.member(in.ID), access.Org(ctx)
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if _, err := s.findQueue(ctx, tx, in.ID); err != nil {
			return err
		}
		if err := s.addMember(ctx, tx, org, m); err != nil {
			return err
		}
		s.notifyChange(tx, org, in.ID)
		var err error
		m, err = s.memberWithStats(ctx, tx, org, in.ID, m.UserID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Member]{Body: m, Location: op.Prefix + "/queues/" + in.ID + "/members"}, nil
}

// addMember checks and inserts a member.
func (s *Service) addMember(ctx context.Context, tx db.Querier, org string, m Member) error {
	if err := s.checkMember(ctx, tx, org, m); err != nil {
		return err
	}
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return insertMember(ctx, tx, org, m, db.At(s.cfg.Clock.Now())) })
	if db.IsConflict(err) {
		return op.Fail("already_exists", "the user answers this queue already")
	}
	if err != nil {
		return fmt.Errorf("add member: %w", err)
	}
	return nil
}

// addMembers adds the members of a new queue. The fields of errors have the place of the member.
func (s *Service) addMembers(ctx context.Context, tx db.Querier, k Queue, all []MemberFresh) error {
	for i, f := range all {
		err := s.addMember(ctx, tx, k.OrgID, f.member(k.ID))
		var wrong *op.Error
		if errors.As(err, &wrong) {
			for j := range wrong.Fields {
				wrong.Fields[j].Field = fmt.Sprintf("members[%d].%s", i, wrong.Fields[j].Field)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkMember returns an error that lists every violation of a member.
func (s *Service) checkMember(ctx context.Context, q db.Querier, org string, m Member) error {
	var wrong []op.Violation
	const text = `SELECT EXISTS (SELECT 1 FROM users WHERE org_id = $1 AND id = $2 AND status <> 'removed')`
	var has bool
	if err := q.QueryRow(ctx, text, org, m.UserID).Scan(&has); err != nil {
		return fmt.Errorf("find user: %w", err)
	}
	if !has {
		wrong = append(wrong, op.Field("user_id", "not_found", "no such user"))
	}
	if m.Priority < 1 || m.Priority > 10 {
		wrong = append(wrong, op.Field("priority", "out_of_range", "must be 1 to 10"))
	}
	if m.PauseReason != nil && utf8.RuneCountInString(*m.PauseReason) > 60 {
		wrong = append(wrong, op.Field("pause_reason", "invalid_length", "must have at most 60 characters"))
	}
	if len(m.Skills) > 20 {
		wrong = append(wrong, op.Field("skills", "too_many", "at most 20 skills"))
	}
	if wrong = append(wrong, skillViolations("skills", m.Skills)...); len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	return nil
}

func (s *Service) memberWithStats(ctx context.Context, q db.Querier, org, queue, user string) (Member, error) {
	m, err := s.memberOf(ctx, q, org, queue, user)
	if err != nil {
		return m, err
	}
	one := []Member{m}
	err = s.withStats(ctx, q, org, one)
	return one[0], err
}

func (s *Service) memberOf(ctx context.Context, q db.Querier, org, queue, user string) (Member, error) {
	if _, err := s.findQueue(ctx, q, queue); err != nil {
		return Member{}, err
	}
	m, err := member(ctx, q, org, queue, user)
	if db.IsNone(err) {
		return m, op.NotFound("member of this queue")
	}
	if err != nil {
		return m, fmt.Errorf("get member: %w", err)
	}
	return m, nil
}

// MemberIn identifies a member.
type MemberIn struct {
	OneIn
	UserID string `path:"user_id" maxLength:"40" example:"usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// ChangeMemberIn is the input of ChangeMember.
type ChangeMemberIn struct {
	MemberIn
	Body MemberPatch
}

// MemberPatch is a merge patch of a member.
type MemberPatch struct {
	Priority    op.Change[int]            `json:"priority,omitzero"`
	Skills      op.Change[map[string]int] `json:"skills,omitzero" doc:"Replaced as a whole"`
	SignedIn    op.Change[bool]           `json:"signed_in,omitzero"`
	Paused      op.Change[bool]           `json:"paused,omitzero"`
	PauseReason op.Change[string]         `json:"pause_reason,omitzero"`
}

func (p MemberPatch) apply(m *Member) {
	applyChange(p.Priority, &m.Priority, defaultPriority)
	if p.Skills.Set {
		m.Skills = map[string]int{}
		for name, level := range p.Skills.V {
			m.Skills[name] = level
		}
	}
	applyChange(p.SignedIn, &m.SignedIn, true)
	applyChange(p.Paused, &m.Paused, false)
	applyOptional(p.PauseReason, &m.PauseReason)
	if !m.Paused {
		m.PauseReason = nil
	}
}

// ChangeMember changes the settings of a member.
func (s *Service) ChangeMember(ctx context.Context, in *ChangeMemberIn) (*op.Out[Member], error) {
	return s.changeMember(ctx, in.ID, in.UserID, in.Body.apply)
}

func (s *Service) changeMember(ctx context.Context, queue, user string, apply func(*Member)) (*op.Out[Member], error) {
	var m Member
	org := access.Org(ctx)
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if m, err = s.memberOf(ctx, tx, org, queue, user); err != nil {
			return err
		}
		apply(&m)
		if err := s.checkMember(ctx, tx, org, m); err != nil {
			return err
		}
		if err := updateMember(ctx, tx, org, m); err != nil {
			return fmt.Errorf("change member: %w", err)
		}
		if !m.SignedIn || m.Paused {
			if err := s.cancelAgentOffers(ctx, tx, org, user, queue); err != nil {
				return err
			}
		}
		s.notifyChange(tx, org, queue)
		m, err = s.memberWithStats(ctx, tx, org, queue, user)
		return err
	})
	if err != nil {
		return nil, err
	}
	return op.OK(m)
}

// RemoveMember removes a user from a queue. A call in progress continues.
func (s *Service) RemoveMember(ctx context.Context, in *MemberIn) error {
	org := access.Org(ctx)
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if _, err := s.memberOf(ctx, tx, org, in.ID, in.UserID); err != nil {
			return err
		}
		if err := removeMember(ctx, tx, org, in.ID, in.UserID); err != nil {
			return fmt.Errorf("remove member: %w", err)
		}
		s.notifyChange(tx, org, in.ID)
		return s.cancelAgentOffers(ctx, tx, org, in.UserID, in.ID)
	})
}

// AgentQueueIn is the input of SetAgentQueue.
type AgentQueueIn struct {
	ID      string `path:"id" maxLength:"40" example:"usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	QueueID string `path:"queue_id" maxLength:"40" example:"que_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Body    AgentQueueBody
}

// AgentQueueBody holds the sign-in and the pause of an agent in a queue.
type AgentQueueBody struct {
	SignedIn    bool   `json:"signed_in"`
	Paused      *bool  `json:"paused,omitempty" doc:"Stays as it is unless given"`
	PauseReason string `json:"pause_reason,omitempty" doc:"At most 60 characters"`
}

// SetAgentQueue signs an agent in or out of a queue, or pauses the agent there.
func (s *Service) SetAgentQueue(ctx context.Context, in *AgentQueueIn) (*op.Out[Member], error) {
	return s.changeMember(ctx, in.QueueID, in.ID, func(m *Member) {
		m.SignedIn = in.Body.SignedIn
		if in.Body.Paused != nil {
			m.Paused = *in.Body.Paused
		}
		if m.PauseReason = db.Null(in.Body.PauseReason).Ptr(); !m.Paused {
			m.PauseReason = nil
		}
	})
}
