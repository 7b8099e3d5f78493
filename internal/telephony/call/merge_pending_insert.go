package call

import (
	"cmp"
	"context"
	"sync"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Merges the changes of a call into its pending INSERT, so that both are written as one row.

// pendingInserts holds the calls with an INSERT that waits for the database writer.
type pendingInserts struct {
	mu      sync.Mutex // guards waiting, and the changes of each pendingInsert
	waiting map[string]*pendingInsert
}

// pendingInsert collects changes of its call until the database writer runs the INSERT.
type pendingInsert struct {
	call    New
	changes []Change
	done    chan struct{}
	// The results of the INSERT and of the changes, valid once done is closed. If they cannot be written together,
	// the INSERT is written alone, and the changes fail.
	beginErr, changeErr error
}

func (a *pendingInserts) add(b *pendingInsert) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]*pendingInsert{}
	}
	a.waiting[b.call.ID] = b
}

// join adds a change to the pending INSERT of its call. ok is false if there is none.
func (a *pendingInserts) join(c Change) (wait func() error, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.waiting[c.ID]
	if b == nil || b.call.Org != c.Org {
		return nil, false
	}
	b.changes = append(b.changes, c)
	return func() error { <-b.done; return b.changeErr }, true
}

// take removes a pending INSERT, and returns the call and the changes to write with it.
func (a *pendingInserts) take(b *pendingInsert) (New, []Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[b.call.ID] == b {
		delete(a.waiting, b.call.ID)
	}
	return b.call, b.changes
}

// drop releases the memory of a written call and its changes.
func (a *pendingInserts) drop(b *pendingInsert) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.call, b.changes = New{}, nil
}

// beginPending enqueues the INSERT of a call and the changes that join it. then is called with the result of the
// INSERT.
func (s *Service) beginPending(ctx context.Context, n New, then func(error)) {
	b := &pendingInsert{call: n, done: make(chan struct{})}
	end := func(begun, changed error) {
		b.beginErr, b.changeErr = begun, changed
		close(b.done)
		then(begun)
	}
	s.pendingInserts.add(b)
	s.cfg.DB.TxAsyncThen(ctx, func(tx db.Querier) error {
		n, with := s.pendingInserts.take(b)
		db.OnCommit(tx, func() { s.pendingInserts.drop(b) })
		return s.beginWithChanges(ctx, tx, n, with)
	}, func(err error) {
		n, with := s.pendingInserts.take(b)
		if err == nil || len(with) == 0 {
			end(err, err)
			return
		}
		go s.cfg.DB.TxAsyncThen(ctx, func(tx db.Querier) error { return s.begin(ctx, tx, n) }, func(begun error) { end(begun, err) })
	})
}

// beginWithChanges writes a call and its changes with the same result as one after the other.
func (s *Service) beginWithChanges(ctx context.Context, tx db.Querier, n New, with []Change) error {
	if len(with) == 0 {
		return s.begin(ctx, tx, n)
	}
	if err := insertWithChange(ctx, tx, n, s.cfg.Node, with[len(with)-1]); err != nil {
		return err
	}
	legs := mergeLegs(n, with)
	if err := writeLegs(ctx, tx, n.Org, n.ID, legs); err != nil {
		return err
	}
	s.notifyLegs(tx, n.Org, n.ID, usersOf(legs))
	if err := s.publishStarted(ctx, tx, n); err != nil {
		return err
	}
	for _, c := range with {
		if c.Done != nil {
			db.OnCommit(tx, c.Done)
		}
		c.Legs = nil // written above
		if err := s.writeChangeParts(ctx, tx, c, ""); err != nil {
			return err
		}
	}
	return nil
}

// publishStarted publishes call.started and inserts the purpose note.
func (s *Service) publishStarted(ctx context.Context, tx db.Querier, n New) error {
	if err := s.insertPurposeNote(ctx, tx, n); err != nil {
		return err
	}
	return s.cfg.Outbox.Publish(ctx, tx, n.Org, event.CallStarted{
		CallID: n.ID, Direction: string(n.Direction), FromNumber: n.From, ToNumber: n.To,
		FromName: db.Null(n.FromName).Ptr(), NumberID: db.Null(n.NumberID).Ptr(),
		UserID: db.Null(n.UserID).Ptr(), StartedAt: db.At(n.StartedAt), Source: n.Source, Contact: n.contact,
	})
}

// insertWithChange is insertCall for a call that has changed already.
func insertWithChange(ctx context.Context, tx db.Querier, n New, node string, c Change) error {
	const q = `INSERT INTO calls (org_id, id, revision, ringing_at, answered_at, muted, answered_by, agent_id, agent_name, agent_extension,
			user_id, device_id, trunk_id, transfer, transferred_to, machine, recording_id, consent, status, stage, hold_seconds, held_since,
			recording_state, ring_seconds, direction, source, from_number, from_name, to_number, number_id, started_at, sandbox, node,
			metadata, client_reference, contact_id, contact, queue_seconds, talk_seconds, total_seconds, recording_ready, tags, notes_count)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26,
			$27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, 0, 0, 0, FALSE, '[]', 0)`
	x := c.Row
	if x.RingingAt.IsZero() {
		x.RingingAt = n.ringingAt().Time
	}
	x.UserID, x.DeviceID, x.TrunkID = cmp.Or(x.UserID, n.UserID), cmp.Or(x.DeviceID, n.DeviceID), cmp.Or(x.TrunkID, n.TrunkID)
	x.Consent = cmp.Or(x.Consent, "not_required")
	args := append([]any{n.Org, n.ID, c.Revision}, stateArgs(x)...)
	args = append(args, string(x.Status), x.Stage, seconds(x.Hold), db.At(x.HeldSince), x.recordingState(), seconds(x.Ring),
		string(n.Direction), n.Source, n.From, db.Null(n.FromName), n.To, db.Null(n.NumberID), db.At(n.StartedAt), n.Sandbox, node,
		db.AsJSON(n.metadata()), db.Null(n.Reference), contactID(n.contact), contactText(n.contact))
	_, err := tx.Exec(ctx, q, args...)
	return err
}

// mergeLegs returns the legs of a call after changes: of each leg the last state and the first start.
func mergeLegs(n New, with []Change) []LegState {
	var all []LegState
	if n.hasCaller() {
		l := callerLeg(n)
		all = append(all, LegState{ID: l.ID, Role: l.Role, UserID: l.user, DeviceID: l.device, TrunkID: l.trunk, Number: l.Number,
			Status: l.Status, SIPCallID: l.SIPCallID, StartedAt: l.StartedAt.Time})
	}
	for _, c := range with {
		for _, l := range c.Legs {
			all = mergeLeg(all, l)
		}
	}
	return all
}

func mergeLeg(all []LegState, l LegState) []LegState {
	for i, was := range all {
		if was.ID != l.ID {
			continue
		}
		l.StartedAt = was.StartedAt
		if l.Quality == nil {
			l.Quality = was.Quality
		}
		all[i] = l
		return all
	}
	return append(all, l)
}
