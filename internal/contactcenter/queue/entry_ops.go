package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
)

func (s *Service) entryOperations() []op.Operation {
	return []op.Operation{
		op.New("queues.calls.list", "GET /queues/{id}/calls", access.QueuesRead, "List who waits in a queue, in order", s.Calls),
		op.New("queues.calls.update", "PATCH /queues/{id}/calls/{call_id}", access.QueuesAdmin, "Move a caller", s.MoveCall),
		op.Delete("queues.calls.remove", "DELETE /queues/{id}/calls/{call_id}", access.QueuesAdmin, "Send a caller away", s.RemoveCall),
	}
}

// CallsIn selects callers of a queue.
type CallsIn struct {
	OneIn
	op.Paging
	Status []string `query:"status" enum:"waiting,offering,connected,completed,abandoned,timed_out,overflowed,exited,removed,callback_pending,callback_dialing,callback_failed" doc:"waiting and offering unless given"`
}

// Calls lists callers in the order in which they are served.
func (s *Service) Calls(ctx context.Context, in *CallsIn) (*op.Out[op.Page[Entry]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	k, err := s.findQueue(ctx, q, in.ID)
	if err != nil {
		return nil, err
	}
	if len(in.Status) == 0 {
		in.Status = []string{Waiting, Offering}
	}
	view, err := visibility.From(ctx, q)
	if err != nil {
		return nil, err
	}
	narrow := func() *db.Filter {
		return view.Narrow(db.Where(entryColumns, org), "call_id").And("queue_id = ?", k.ID).In("status", in.Status)
	}
	f := narrow()
	if after.ID != "" {
		priority, _ := strconv.Atoi(after.Text)
		f.And("priority < ? OR priority = ? AND (place > ? OR place = ? AND id > ?)", priority, priority, after.Int, after.Int, after.ID)
	}
	text, args := f.SQL()
	found, err := entries(ctx, q, "list callers", text+fmt.Sprintf(" ORDER BY priority DESC, place, id LIMIT %d", in.Limit+1), args)
	if err != nil {
		return nil, err
	}
	if err := s.addPositions(ctx, q, k, found); err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, found, func(e Entry) op.Position {
		return op.Position{Int: e.orderKey, Text: strconv.Itoa(e.Priority), ID: e.ID}
	})
	return op.WithTotal(page, in.Paging, func() (int, error) { return narrow().Count(ctx, q) })
}

// CallIn identifies a call in a queue.
type CallIn struct {
	OneIn
	CallID string `path:"call_id" maxLength:"40" example:"call_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

func (s *Service) callEntry(ctx context.Context, q db.Querier, in CallIn) (Queue, Entry, error) {
	k, err := s.findQueue(ctx, q, in.ID)
	if err != nil {
		return k, Entry{}, err
	}
	e, err := openEntry(ctx, q, k.OrgID, k.ID, in.CallID)
	if db.IsNone(err) {
		return k, e, op.NotFound("call in this queue")
	}
	if err != nil {
		return k, e, fmt.Errorf("find caller: %w", err)
	}
	return k, e, nil
}

// MoveIn is the input of MoveCall.
type MoveIn struct {
	CallIn
	Body MoveBody
}

// MoveBody holds the new position, priority or queue of a caller.
type MoveBody struct {
	Position *int   `json:"position,omitempty" doc:"1: before everybody"`
	Priority *int   `json:"priority,omitempty" doc:"-100 to 100; higher comes first"`
	QueueID  string `json:"queue_id,omitempty" doc:"Another queue"`
}

func (b MoveBody) violations() (wrong []op.Violation) {
	if b.Position != nil && (*b.Position < 1 || *b.Position > 100_000) {
		wrong = append(wrong, op.Field("position", "out_of_range", "must be 1 or more"))
	}
	if b.Priority != nil && (*b.Priority < -100 || *b.Priority > 100) {
		wrong = append(wrong, op.Field("priority", "out_of_range", "must be -100 to 100"))
	}
	if b.Position != nil && b.Priority != nil {
		wrong = append(wrong, op.Field("position", "ambiguous", "give either position or priority"))
	}
	return wrong
}

// MoveCall changes the position, the priority or the queue of a caller.
func (s *Service) MoveCall(ctx context.Context, in *MoveIn) (*op.Out[Entry], error) {
	var e Entry
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		k, found, err := s.callEntry(ctx, tx, in.CallIn)
		if err != nil {
			return err
		}
		wrong := in.Body.violations()
		if in.Body.QueueID != "" && in.Body.QueueID != k.ID {
			to, err := get(ctx, tx, k.OrgID, in.Body.QueueID)
			if err != nil && !db.IsNone(err) {
				return fmt.Errorf("find queue: %w", err)
			}
			if db.IsNone(err) {
				wrong = append(wrong, op.Field("queue_id", "not_found", "no such queue"))
			}
			k = to
		}
		if len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		e, err = s.moveEntry(ctx, tx, found, k, in.Body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return op.OK(e)
}

// moveEntry changes the position, the priority or the queue of a waiting entry.
func (s *Service) moveEntry(ctx context.Context, tx db.Querier, e Entry, to Queue, b MoveBody) (Entry, error) {
	if e.Status != Waiting && e.Status != CallbackPending {
		return e, op.State("only callers who wait can be moved", e.Status)
	}
	var err error
	if to.ID != e.QueueID {
		if e, err = s.moveToQueue(ctx, tx, e, to); err != nil {
			return e, err
		}
	}
	if b.Priority != nil {
		e.Priority = *b.Priority
		if err := storeOrder(ctx, tx, e); err != nil {
			return e, err
		}
	}
	if b.Position != nil {
		if err := s.reorder(ctx, tx, e, *b.Position); err != nil {
			return e, err
		}
	}
	s.notifyChange(tx, to.OrgID, to.ID)
	if e, err = getEntry(ctx, tx, to.OrgID, e.ID); err != nil {
		return e, fmt.Errorf("read caller: %w", err)
	}
	one := []Entry{e}
	err = s.addPositions(ctx, tx, to, one)
	return one[0], err
}

// reorder puts an entry at a position. The entry takes the priority of the entry that it is put before. The order
// keys within that priority are assigned again.
func (s *Service) reorder(ctx context.Context, tx db.Querier, e Entry, position int) error {
	standing, err := waitingEntries(ctx, tx, e.OrgID, e.QueueID)
	if err != nil {
		return err
	}
	standing = slices.DeleteFunc(standing, func(x Entry) bool { return x.ID == e.ID })
	at := min(position-1, len(standing))
	switch {
	case at < len(standing):
		e.Priority = standing[at].Priority
	case at > 0:
		e.Priority = standing[at-1].Priority
	}
	standing = slices.Insert(standing, at, e)
	peers := slices.DeleteFunc(standing, func(x Entry) bool { return x.Priority != e.Priority })
	places := make([]int64, len(peers))
	for i, x := range peers {
		places[i] = x.orderKey
	}
	slices.Sort(places)
	for i := range peers {
		if i > 0 && places[i] <= places[i-1] {
			places[i] = places[i-1] + 1
		}
		peers[i].orderKey = places[i]
		if err := storeOrder(ctx, tx, peers[i]); err != nil {
			return err
		}
	}
	return nil
}

func storeOrder(ctx context.Context, tx db.Querier, e Entry) error {
	const text = `UPDATE queue_entries SET priority = $3, place = $4 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, e.OrgID, e.ID, e.Priority, e.orderKey); err != nil {
		return fmt.Errorf("move caller: %w", err)
	}
	return nil
}

// RemoveCallIn is the input of RemoveCall.
type RemoveCallIn struct {
	CallIn
	To string `query:"to" enum:"overflow,voicemail,hangup" doc:"Where the caller goes: overflow, which is usual where the queue has one; voicemail, the box of the queue; else hangup"`
}

// RemoveCall removes a caller from a queue. The node that runs the call sees it, and routes the caller to the given
// destination.
func (s *Service) RemoveCall(ctx context.Context, in *RemoveCallIn) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		k, e, err := s.callEntry(ctx, tx, in.CallIn)
		if err != nil {
			return err
		}
		to := in.To
		switch {
		case to == "" && k.Overflow != nil:
			to = "overflow"
		case to == "":
			to = "hangup"
		case to == "overflow" && k.Overflow == nil:
			return op.Invalid(op.Field("to", "no_overflow", "the queue has no overflow"))
		}
		err = s.Leave(ctx, tx, e.OrgID, e.ID, Removed, to)
		if errors.Is(err, ErrGone) {
			return op.State("the caller does not wait any more", e.Status)
		}
		return err
	})
}
