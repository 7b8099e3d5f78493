package agent

import (
	"context"
	"fmt"
	"unicode/utf8"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
)

// Operations returns the API operations of agents. Those of agents in queues are in package queue.
func (s *Service) Operations() []op.Operation {
	see := access.Either(access.UsersAdmin, access.QueuesRead, access.CallsRead)
	return []op.Operation{
		op.New("agents.list", "GET /agents", see, "List agents, and what they do now", s.List),
		op.New("agents.get", "GET /agents/{id}", see, "Get one agent", s.Show),
		op.New("agents.presence.set", "PUT /agents/{id}/presence", access.Either(access.UsersAdmin, access.QueuesAdmin),
			"Choose what an agent wants to be", s.SetPresence).ForSelf().
			About("With `queues:admin` alone, a user may do it for members of their own queues; a supervisor without queues for everybody."),
		op.New("agents.stats", "GET /agents/{id}/stats", access.CallsRead, "What an agent did", s.Stats),
	}
}

// ListIn selects agents.
type ListIn struct {
	op.Paging
	Status  []string `query:"status" enum:"available,ringing,busy,wrap_up,away,dnd,offline" doc:"What they do now"`
	QueueID string   `query:"queue_id" maxLength:"40"`
	Skill   string   `query:"skill" maxLength:"40"`
	Q       string   `query:"q" maxLength:"120" doc:"Part of a name or e-mail address, or an extension"`
}

// List returns agents in the order in which they were added.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Agent]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	found, err := s.search(ctx, q, org, in, after.ID, in.Limit+1)
	if err != nil {
		return nil, err
	}
	if err := s.withDetails(ctx, q, org, found); err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, found, func(a Agent) op.Position { return op.Position{ID: a.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) {
		all, err := s.search(ctx, q, org, in, "", maxAgents)
		return len(all), err
	})
}

// maxAgents limits the agents that are counted.
const maxAgents = 100_000

// search reads pages of users until enough of them match, because presence is not a column.
func (s *Service) search(ctx context.Context, q db.Querier, org string, in *ListIn, after string, want int) ([]Agent, error) {
	all := []Agent{}
	for len(all) < want {
		some, err := listAgents(ctx, q, org, in, after, maxNamedUsers)
		if err != nil {
			return nil, err
		}
		if err := s.addPresence(ctx, q, org, some); err != nil {
			return nil, err
		}
		for _, a := range some {
			if in.matches(a) && len(all) < want {
				all = append(all, a)
			}
		}
		if len(some) < maxNamedUsers {
			break
		}
		after = some[len(some)-1].ID
	}
	return all, nil
}

func (in *ListIn) matches(a Agent) bool {
	if _, has := a.Skills[in.Skill]; in.Skill != "" && !has {
		return false
	}
	for _, s := range in.Status {
		if s == a.Presence.Status {
			return true
		}
	}
	return len(in.Status) == 0
}

// OneIn identifies an agent.
type OneIn struct {
	ID string `path:"id" maxLength:"40" example:"usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// Show returns one agent.
func (s *Service) Show(ctx context.Context, in *OneIn) (*op.Out[Agent], error) {
	a, err := s.findAgent(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return op.OK(a)
}

func (s *Service) findAgent(ctx context.Context, q db.Querier, org, id string) (Agent, error) {
	a, err := getAgent(ctx, q, org, id)
	if db.IsNone(err) {
		return a, op.NotFound("agent")
	}
	if err != nil {
		return a, fmt.Errorf("get agent: %w", err)
	}
	one := []Agent{a}
	if err := s.addPresence(ctx, q, org, one); err != nil {
		return a, err
	}
	return one[0], s.withDetails(ctx, q, org, one)
}

// addPresence sets the presence of agents.
func (s *Service) addPresence(ctx context.Context, q db.Querier, org string, agents []Agent) error {
	if len(agents) == 0 {
		return nil
	}
	ids := make([]string, len(agents))
	for i, a := range agents {
		ids[i] = a.ID
	}
	all, err := s.States(ctx, q, org, ids)
	if err != nil {
		return err
	}
	for i := range agents {
		a, x := &agents[i], all[agents[i].ID]
		s.NoteShown(org, x)
		if x == nil { // removed meanwhile
			x = &State{Availability: Offline}
			x.Presence.Status = Offline
		}
		a.Presence, a.Availability, a.WrapUpUntil, a.DevicesRegistered = x.Presence, x.Availability, x.WrapUpUntil, x.Devices
		a.WrapUpCallID = db.Null(x.WrapUpCall).Ptr()
		if a.Presence.Status == Busy {
			a.ActiveCallID = db.Null(x.CallID).Ptr()
		}
	}
	return nil
}

// PresenceIn is the input of SetPresence.
type PresenceIn struct {
	OneIn
	Body PresenceBody
}

// PresenceBody is the presence that an agent chooses.
type PresenceBody struct {
	Status           string  `json:"status" doc:"available, away, dnd or offline"`
	Reason           string  `json:"reason,omitempty" doc:"At most 60 characters, such as lunch"`
	Until            db.Time `json:"until,omitzero" doc:"From then on available again"`
	AfterCurrentCall *bool   `json:"after_current_call,omitempty" doc:"On a call, it takes effect when the call has ended; true unless given."`
}

func (b PresenceBody) violations(now db.Time) (wrong []op.Violation) {
	switch b.Status {
	case Available, Away, DND, Offline:
	default:
		wrong = append(wrong, op.Field("status", "invalid_value", "must be available, away, dnd or offline"))
	}
	if utf8.RuneCountInString(b.Reason) > 60 {
		wrong = append(wrong, op.Field("reason", "invalid_length", "must have at most 60 characters"))
	}
	if !b.Until.IsZero() && !b.Until.After(now.Time) {
		wrong = append(wrong, op.Field("until", "in_the_past", "must be in the future"))
	}
	return wrong
}

// SetPresence stores an agent's choice. Choosing to be available ends wrap-up and the pause after missed offers. A wrap-up that waits for
// the disposition of a call goes on.
func (s *Service) SetPresence(ctx context.Context, in *PresenceIn) (*op.Out[Agent], error) {
	var a Agent
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		org := access.Org(ctx)
		if _, err := s.findAgent(ctx, tx, org, in.ID); err != nil {
			return err
		}
		if err := s.checkSupervisor(ctx, tx, in.ID); err != nil {
			return err
		}
		if wrong := in.Body.violations(db.At(s.cfg.Clock.Now())); len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		if err := s.setChoice(ctx, tx, org, in.ID, in.Body); err != nil {
			return fmt.Errorf("keep presence: %w", err)
		}
		var err error
		a, err = s.findAgent(ctx, tx, org, in.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return op.OK(a)
}

// checkSupervisor returns an error if the principal may not choose the presence of an agent. users:admin is enough for everybody.
func (s *Service) checkSupervisor(ctx context.Context, q db.Querier, id string) error {
	p, known := access.From(ctx)
	if !known || p.UserID == id || access.UsersAdmin.Need().MetBy(p.Scopes) {
		return nil
	}
	v, err := visibility.From(ctx, q)
	if err != nil {
		return err
	}
	yes, err := v.Supervises(ctx, q, id)
	if err != nil || yes {
		return err
	}
	e := op.MissingScope(ctx, access.UsersAdmin)
	e.Detail = "the agent is in none of your queues; this needs users:admin"
	return e
}

// setChoice stores a choice for now, or for the time after the current call. A call that only rings is no current call.
func (s *Service) setChoice(ctx context.Context, tx db.Querier, org, id string, b PresenceBody) error {
	all, err := s.States(ctx, tx, org, []string{id})
	if err != nil {
		return err
	}
	c := choice{Status: b.Status, Reason: b.Reason, Until: b.Until}
	if later := all[id].busyCall != "" && (b.AfterCurrentCall == nil || *b.AfterCurrentCall); later {
		if err := ensureRow(ctx, tx, org, id, db.At(s.cfg.Clock.Now())); err != nil {
			return err
		}
		return storeChoice(ctx, tx, org, id, c, true)
	}
	if err := s.applyChoice(ctx, tx, org, id, c); err != nil {
		return err
	}
	return s.PublishPresence(ctx, tx, org, []string{id})
}
