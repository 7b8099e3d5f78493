package call

import (
	"cmp"
	"context"
	"sync"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// This file writes what a call has come to while its beginning still waits for the database: with the beginning, as one row.

// beginnings are those that wait to be written.
type beginnings struct {
	mu      sync.Mutex // guards what follows, and the changes in it
	waiting map[string]*beginning
}

// A beginning takes changes of its call with it until the database begins to write it.
type beginning struct {
	call    New
	changes []Change
	ended   chan struct{}
	// What became of the beginning, and of the changes, once ended is closed. Where they cannot be written together, the beginning is
	// written by itself, and the changes are not.
	begun, changed error
}

func (a *beginnings) add(b *beginning) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]*beginning{}
	}
	a.waiting[b.call.ID] = b
}

// join has a change written with the beginning of its call, where that still waits.
func (a *beginnings) join(c Change) (wait func() error, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.waiting[c.ID]
	if b == nil || b.call.Org != c.Org {
		return nil, false
	}
	b.changes = append(b.changes, c)
	return func() error { <-b.ended; return b.changed }, true
}

// take ends the waiting of a beginning, and returns the changes that are written with it.
func (a *beginnings) take(b *beginning) (New, []Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[b.call.ID] == b {
		delete(a.waiting, b.call.ID)
	}
	return b.call, b.changes
}

// drop lets go of what was written.
func (a *beginnings) drop(b *beginning) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.call, b.changes = New{}, nil
}

// beginLater begins to write a beginning, and whatever joins it. then is told what became of the beginning.
func (s *Service) beginLater(ctx context.Context, n New, then func(error)) {
	b := &beginning{call: n, ended: make(chan struct{})}
	end := func(begun, changed error) {
		b.begun, b.changed = begun, changed
		close(b.ended)
		then(begun)
	}
	s.beginnings.add(b)
	s.DB.LaterThen(ctx, func(tx db.Querier) error {
		n, with := s.beginnings.take(b)
		db.OnCommit(tx, func() { s.beginnings.drop(b) })
		return s.beginWith(ctx, tx, n, with)
	}, func(err error) {
		n, with := s.beginnings.take(b)
		if err == nil || len(with) == 0 {
			end(err, err)
			return
		}
		go s.DB.LaterThen(ctx, func(tx db.Querier) error { return s.begin(ctx, tx, n) }, func(begun error) { end(begun, err) })
	})
}

// beginWith writes a beginning and the changes after it, as they would be one after the other.
func (s *Service) beginWith(ctx context.Context, tx db.Querier, n New, with []Change) error {
	if len(with) == 0 {
		return s.begin(ctx, tx, n)
	}
	if err := insertWith(ctx, tx, n, s.Node, with[len(with)-1]); err != nil {
		return err
	}
	if err := writeLegs(ctx, tx, n.Org, n.ID, legsWith(n, with)); err != nil {
		return err
	}
	if err := s.tellBegun(ctx, tx, n); err != nil {
		return err
	}
	for _, c := range with {
		if c.Done != nil {
			db.OnCommit(tx, c.Done)
		}
		c.Legs = nil // written already
		if err := s.changed(ctx, tx, c, ""); err != nil {
			return err
		}
	}
	return nil
}

// tellBegun writes what a beginning tells, and keeps its purpose.
func (s *Service) tellBegun(ctx context.Context, tx db.Querier, n New) error {
	s.touch(tx, n.Org, n.ID)
	if err := s.keepPurpose(ctx, tx, n); err != nil {
		return err
	}
	return s.Outbox.Publish(ctx, tx, n.Org, event.CallStarted{
		CallID: n.ID, Direction: string(n.Direction), FromNumber: n.From, ToNumber: n.To,
		FromName: db.Null(n.FromName).Ptr(), NumberID: db.Null(n.NumberID).Ptr(),
		UserID: db.Null(n.UserID).Ptr(), StartedAt: db.At(n.StartedAt), Source: n.Source, Contact: n.contact,
	})
}

// insertWith is insert for a call that has changed already.
func insertWith(ctx context.Context, tx db.Querier, n New, node string, c Change) error {
	const q = `INSERT INTO calls (org_id, id, revision, ringing_at, answered_at, muted, answered_by, agent_id, agent_name, agent_extension, user_id,
			device_id, trunk_id, transfer, transferred_to, machine, recording_id, consent, status, stage, hold_seconds, held_since, recording_state,
			ring_seconds, direction, source, from_number, from_name, to_number, number_id, started_at, sandbox, node, metadata, client_reference,
			contact_id, contact, queue_seconds, talk_seconds, total_seconds, recording_ready, tags, notes_count)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28,
			$29, $30, $31, $32, $33, $34, $35, $36, $37, 0, 0, 0, FALSE, '[]', 0)`
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

// legsWith are the legs of a call after changes: of each leg what was told of it last, and when it began first.
func legsWith(n New, with []Change) []LegState {
	var all []LegState
	if n.hasCaller() {
		l := callerLeg(n)
		all = append(all, LegState{ID: l.ID, Role: l.Role, UserID: l.user, DeviceID: l.device, TrunkID: l.trunk, Number: l.Number, Status: l.Status,
			SIPCallID: l.SIPCallID, StartedAt: l.StartedAt.Time})
	}
	for _, c := range with {
		for _, l := range c.Legs {
			all = putLeg(all, l)
		}
	}
	return all
}

func putLeg(all []LegState, l LegState) []LegState {
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
