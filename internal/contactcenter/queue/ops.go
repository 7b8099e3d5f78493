package queue

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Operations returns the API operations of queues.
func (s *Service) Operations() []op.Operation {
	see := access.Either(access.QueuesRead, access.CallsRead)
	return slices.Concat([]op.Operation{
		op.New("queues.list", "GET /queues", access.QueuesRead, "List queues", s.List),
		op.New("queues.create", "POST /queues", access.QueuesAdmin, "Add a queue", s.Create).Status(201).Fails("extension_taken"),
		op.New("queues.stats_all", "GET /queues/stats", see, "Live statistics of all queues", s.StatsAll),
		op.New("queues.get", "GET /queues/{id}", access.QueuesRead, "Get one queue", s.Show),
		op.New("queues.update", "PATCH /queues/{id}", access.QueuesAdmin, "Change a queue", s.Update).Fails("extension_taken"),
		op.Delete("queues.delete", "DELETE /queues/{id}", access.QueuesAdmin, "Remove a queue", s.Delete),
		op.New("queues.stats", "GET /queues/{id}/stats", see, "Live statistics of a queue", s.ShowStats),
	}, s.memberOperations(), s.entryOperations())
}

// ListIn selects queues.
type ListIn struct {
	op.Paging
	Q        string   `query:"q" maxLength:"120" doc:"Part of a name, or an extension"`
	MemberID string   `query:"member_id" maxLength:"40" doc:"A user who answers it"`
	Include  []string `query:"include" enum:"stats"`
}

// List returns queues in the order in which they were added.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Queue]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	found, err := listQueues(ctx, q, in.filter(org), after.ID, in.Limit+1)
	if err != nil {
		return nil, err
	}
	if slices.Contains(in.Include, "stats") {
		figures, err := s.stats(ctx, q, org, found)
		if err != nil {
			return nil, err
		}
		for i := range found {
			found[i].Stats = &figures[i]
		}
	}
	page := op.Paged(ctx, in.Paging, found, func(k Queue) op.Position { return op.Position{ID: k.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return in.filter(org).Count(ctx, q) })
}

// CreateIn is the input of Create.
type CreateIn struct{ Body Fresh }

// Fresh is a new queue.
type Fresh struct {
	Fields
	Members []MemberFresh `json:"members,omitempty" maxItems:"200" doc:"Who answers it; the same as one request to add each"`
}

// Create adds a queue.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Queue], error) {
	now := db.At(s.cfg.Clock.Now())
	k := Queue{ID: db.NewID("que"), OrgID: access.Org(ctx), Settings: defaults(), CreatedAt: now, UpdatedAt: now}
	in.Body.apply(&k)
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := s.check(ctx, k, nil); err != nil {
			return err
		}
		s.notifyChange(tx, k.OrgID, k.ID)
		if err := s.save(ctx, k, insert); err != nil {
			return err
		}
		return s.addMembers(ctx, tx, k, in.Body.Members)
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Queue]{Body: k, Location: op.Prefix + "/queues/" + k.ID, ETag: op.Tag(k.UpdatedAt)}, nil
}

// OneIn identifies a queue.
type OneIn struct {
	ID string `path:"id" maxLength:"40" example:"que_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

func (s *Service) findQueue(ctx context.Context, q db.Querier, id string) (Queue, error) {
	k, err := get(ctx, q, access.Org(ctx), id)
	if db.IsNone(err) {
		return k, op.NotFound("queue")
	}
	if err != nil {
		return k, fmt.Errorf("get queue: %w", err)
	}
	return k, nil
}

// Show returns one queue.
func (s *Service) Show(ctx context.Context, in *OneIn) (*op.Out[Queue], error) {
	k, err := s.findQueue(ctx, s.cfg.DB.Read(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return op.Versioned(k, k.UpdatedAt)
}

// UpdateIn is the input of Update.
type UpdateIn struct {
	OneIn
	op.Match
	Body Fields
}

// Update changes a queue. Members stay signed in, and callers keep their positions.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Queue], error) {
	var k Queue
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if k, err = s.findQueue(ctx, tx, in.ID); err != nil {
			return err
		}
		if err := in.Check(k.UpdatedAt); err != nil {
			return err
		}
		was := k.Extension
		in.Body.apply(&k)
		if err := s.check(ctx, k, was); err != nil {
			return err
		}
		k.UpdatedAt = db.At(s.cfg.Clock.Now())
		s.notifyChange(tx, k.OrgID, k.ID)
		return s.save(ctx, k, update)
	})
	if err != nil {
		return nil, err
	}
	return op.Versioned(k, k.UpdatedAt)
}

// DeleteIn identifies the queue to remove, and the queue that takes over.
type DeleteIn struct {
	OneIn
	op.Match
	MoveTo string `query:"move_to" maxLength:"40" doc:"The queue that takes over its numbers, overflows and callers"`
}

// Delete removes a queue. With move_to, callers and objects that route to the queue move to another queue; without it
// they prevent the removal. Flows are not changed: a queue to which a flow routes cannot be removed.
func (s *Service) Delete(ctx context.Context, in *DeleteIn) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		k, err := s.findQueue(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := in.Check(k.UpdatedAt); err != nil {
			return err
		}
		if in.MoveTo != "" {
			if err := s.moveAll(ctx, tx, k, in.MoveTo); err != nil {
				return err
			}
		}
		used, err := s.usedBy(ctx, tx, k.OrgID, k.ID)
		if err != nil {
			return err
		}
		if len(used) > 0 {
			return op.InUse("the queue is in use; move_to names a queue that takes over its numbers, overflows and callers", used...)
		}
		s.notifyChange(tx, k.OrgID, k.ID)
		if err := softDelete(ctx, tx, k, db.At(s.cfg.Clock.Now())); err != nil {
			return fmt.Errorf("remove queue: %w", err)
		}
		return nil
	})
}

// moveAll moves the callers of a queue, and the objects that route to it, to another queue.
func (s *Service) moveAll(ctx context.Context, tx db.Querier, k Queue, to string) error {
	heir, err := get(ctx, tx, k.OrgID, to)
	if db.IsNone(err) || to == k.ID {
		return op.Invalid(op.Field("move_to", "not_found", "no such queue to take over"))
	}
	if err != nil {
		return fmt.Errorf("find queue: %w", err)
	}
	if err := s.cfg.Numbers.MoveQueue(ctx, tx, k.OrgID, k.ID, to); err != nil {
		return err
	}
	if err := s.moveOverflows(ctx, tx, k.OrgID, k.ID, to); err != nil {
		return err
	}
	waiting, err := waitingEntries(ctx, tx, k.OrgID, k.ID)
	if err != nil {
		return err
	}
	for _, e := range waiting {
		if e.Status != Waiting && e.Status != CallbackPending {
			continue // an entry that is being offered keeps the queue in use
		}
		if _, err := s.moveToQueue(ctx, tx, e, heir); err != nil {
			return err
		}
	}
	return nil
}

// moveOverflows changes overflows of other queues from one queue to another.
func (s *Service) moveOverflows(ctx context.Context, tx db.Querier, org, from, to string) error {
	others, err := s.overflowingToQueue(ctx, tx, org, from)
	if err != nil {
		return err
	}
	for _, k := range others {
		k.Overflow.To = "queue:" + to
		if k.ID == to { // it would overflow into itself
			k.Overflow = nil
		}
		k.UpdatedAt = db.At(s.cfg.Clock.Now())
		if err := update(ctx, tx, k); err != nil {
			return fmt.Errorf("move overflow: %w", err)
		}
	}
	return nil
}

// overflowingToQueue returns the queues that overflow into a queue.
func (s *Service) overflowingToQueue(ctx context.Context, q db.Querier, org, id string) ([]Queue, error) {
	found, err := listQueues(ctx, q, db.Where(queueColumns, org).And(`k.settings LIKE ?`, `%"queue:`+id+`"%`), "", 1000)
	return slices.DeleteFunc(found, func(k Queue) bool { return k.Overflow == nil || k.Overflow.To != "queue:"+id }), err
}

// OverflowingTo returns the ids of queues that overflow to a destination, at most 100.
func (s *Service) OverflowingTo(ctx context.Context, q db.Querier, org, to string) (ids []string, err error) {
	found, err := listQueues(ctx, q, db.Where(queueColumns, org).And(`k.settings LIKE ?`, `%"`+to+`"%`), "", 100)
	for _, k := range found {
		ids = append(ids, k.ID)
	}
	return ids, err
}

// OverflowingToFlow returns the ids of queues that overflow into a flow, at most 100.
func (s *Service) OverflowingToFlow(ctx context.Context, q db.Querier, org, flow string) (ids []string, err error) {
	found, err := listQueues(ctx, q, db.Where(queueColumns, org).And(`k.settings LIKE ?`, `%:`+flow+`"%`), "", 100)
	for _, k := range found {
		ids = append(ids, k.ID)
	}
	return ids, err
}

// usedBy returns the ids of objects that route to a queue, and of the calls in it.
func (s *Service) usedBy(ctx context.Context, q db.Querier, org, id string) (used []string, err error) {
	type finder = func(ctx context.Context, q db.Querier, org, id string) ([]string, error)
	for _, find := range []finder{s.cfg.Numbers.IDsOfQueue, s.cfg.Flows.UsedBy} {
		some, err := find(ctx, q, org, id)
		if err != nil {
			return nil, fmt.Errorf("find what leads to the queue: %w", err)
		}
		used = append(used, some...)
	}
	others, err := s.overflowingToQueue(ctx, q, org, id)
	if err != nil {
		return nil, err
	}
	for _, k := range others {
		used = append(used, k.ID)
	}
	in, err := openCalls(ctx, q, org, id)
	return append(used, in...), err
}

// PlayedBy returns the ids of queues that play an audio file, at most 100.
func (s *Service) PlayedBy(ctx context.Context, q db.Querier, org, audio string) (ids []string, err error) {
	found, err := listQueues(ctx, q, db.Where(queueColumns, org).And(`k.settings LIKE ?`, `%"`+audio+`"%`), "", 100)
	for _, k := range found {
		ids = append(ids, k.ID)
	}
	return ids, err
}
