package agent

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
)

// State holds the facts about an agent and the presence derived from them.
type State struct {
	UserID       string
	Availability string
	Presence     user.Presence
	CallID       string // the current call, or the call that is ringing
	WrapUpUntil  db.Time
	Devices      int // number of registered devices
	IdleSince    db.Time

	row     row
	dnd     user.DND
	busy    string // id of the call that the agent is on
	ringing string // id of the call that is ringing
	due     db.Time
}

// row holds the columns of the table agents.
type row struct {
	exists       bool
	availability string
	reason       db.Null
	until        db.Time
	next         *choice
	wrapUp       db.Time
	streak       int
	paused       db.Time
	idle         db.Time
	due          db.Time
	told         told
}

// publishedPresence is the presence that was published last.
type told struct {
	status, reason, call string
	since, until         db.Time
}

// choice is a presence that an agent chose.
type choice struct {
	Status string  `json:"status"`
	Reason string  `json:"reason,omitempty"`
	Until  db.Time `json:"until,omitzero"`
}

// maxNamedUsers limits the user ids in one statement. For more, the whole organisation is read.
const few = 200

// States returns the states of users by id. If users is nil, it returns all users who are not removed.
func (s *Service) States(ctx context.Context, q db.Querier, org string, users []string) (map[string]*State, error) {
	if len(users) > few {
		all, err := s.States(ctx, q, org, nil)
		if err != nil {
			return nil, err
		}
		some := make(map[string]*State, len(users))
		for _, id := range users {
			if x, ok := all[id]; ok {
				some[id] = x
			}
		}
		return some, nil
	}
	now := s.Now()
	all, err := rows(ctx, q, org, users)
	if err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	for _, read := range []func(context.Context, db.Querier, string, []string, time.Time, map[string]*State) error{registered, onCalls, offered} {
		if err := read(ctx, q, org, users, now, all); err != nil {
			return nil, err
		}
	}
	for _, x := range all {
		x.derive(now)
	}
	return all, nil
}

// currentChoice returns the choice that applies now.
func (x *State) chosen(now time.Time) choice {
	past := func(until db.Time) bool { return !until.IsZero() && !now.Before(until.Time) }
	if n := x.row.next; n != nil && x.busy == "" && x.ringing == "" {
		if past(n.Until) {
			return choice{Status: Available}
		}
		return *n
	}
	chose := choice{Status: cmp.Or(x.row.availability, Available), Reason: string(x.row.reason), Until: x.row.until}
	if past(x.row.until) {
		chose = choice{Status: Available}
	}
	if !x.dnd.On(now) {
		return chose
	}
	dnd := choice{Status: DND, Until: x.dnd.Until}
	if chose.Status == Available { // the reason was given together with DND
		dnd.Reason = chose.Reason
	}
	return dnd
}

// derive computes the presence (api-surface 7.8) and the time of its next change without an event.
func (x *State) derive(now time.Time) {
	c := x.chosen(now)
	x.Availability, x.IdleSince = c.Status, x.row.idle
	if x.row.wrapUp.After(now) {
		x.WrapUpUntil = x.row.wrapUp
	}
	p := user.Presence{Until: c.Until}
	switch {
	case x.busy != "":
		p, x.CallID = user.Presence{Status: Busy}, x.busy
	case x.ringing != "":
		p, x.CallID = user.Presence{Status: Ringing}, x.ringing
	case c.Status == Offline:
		p.Status, p.Reason = Offline, db.Null(c.Reason).Ptr()
	case x.Devices == 0:
		p = user.Presence{Status: Offline}
	case c.Status == DND, c.Status == Away:
		p.Status, p.Reason = c.Status, db.Null(c.Reason).Ptr()
	case !x.WrapUpUntil.IsZero():
		p = user.Presence{Status: WrapUp, Until: x.WrapUpUntil}
	case x.row.paused.After(now):
		reason := MissedOffers
		p = user.Presence{Status: Away, Reason: &reason, Until: x.row.paused}
	default:
		p = user.Presence{Status: Available}
	}
	p.Since = x.row.told.since
	if x.changed(p) {
		p.Since = db.At(now)
		if t := x.row.told; p.Status == Available && t.status != Ringing && x.row.idle.Before(t.since.Time) { // the same value as publishing will store
			x.IdleSince = p.Since
		}
	}
	x.Presence, x.due = p, x.nextChange(c, now)
}

// presenceChanged reports whether a presence differs from the one published last.
func (x *State) changed(p user.Presence) bool {
	reason := ""
	if p.Reason != nil {
		reason = *p.Reason
	}
	t := x.row.told
	return p.Status != t.status || reason != t.reason || x.CallID != t.call || !p.Until.Equal(t.until.Time)
}

// NextChangeAt returns when the presence changes with time alone; zero: never.
func (x *State) Due() time.Time { return x.due.Time }

// NeedsUpdate reports whether there is an unpublished change or an outdated row.
func (x *State) Stale() bool { return x.stale() }

// nextChange returns the first time at which time alone changes the presence; zero: never.
func (x *State) nextChange(c choice, now time.Time) (next db.Time) {
	for _, at := range []db.Time{c.Until, x.row.until, x.row.wrapUp, x.row.paused} {
		if at.After(now) && (next.IsZero() || at.Before(next.Time)) {
			next = at
		}
	}
	return next
}
