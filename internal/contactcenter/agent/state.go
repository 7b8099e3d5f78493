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
	WrapUpCall   string // id of the call whose disposition ends the wrap-up; "" if time alone does
	Devices      int    // number of registered devices
	IdleSince    db.Time

	row          row
	dnd          user.DND
	busyCall     string  // id of the call that the agent is on
	inCallback   bool    // that call is a callback, which a queue places for its offer as a call of its own
	ringingCall  string  // id of the call that is ringing
	offeredCall  string  // id of the call that a queue offers; the phones of the agent may not ring yet
	suspended    bool    // the user has no access
	lostAt       db.Time // when the browser became unreachable, if the agent has no registered phone; zero: it did not
	nextChangeAt db.Time
}

// row holds the columns of the table agents.
type row struct {
	exists       bool
	availability string
	choiceReason db.Null
	choiceUntil  db.Time
	nextChoice   *choice
	wrapUpUntil  db.Time
	wrapUpCall   string
	missedStreak int
	pausedUntil  db.Time
	idleSince    db.Time
	endedCall    string // whose end is idleSince; "" if it is none of a queue
	dueAt        db.Time
	published    publishedPresence
}

// publishedPresence is the presence that was published last.
type publishedPresence struct {
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
const maxNamedUsers = 200

// States returns the states of users by id. If users is nil, it returns all users who are not removed.
func (s *Service) States(ctx context.Context, q db.Querier, org string, users []string) (map[string]*State, error) {
	if len(users) > maxNamedUsers {
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
	now := s.cfg.Clock.Now()
	all, err := readRows(ctx, q, org, users)
	if err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	for _, read := range []func(context.Context, db.Querier, string, []string, time.Time, map[string]*State) error{readDevices, readCalls,
		readOffers} {
		if err := read(ctx, q, org, users, now, all); err != nil {
			return nil, err
		}
	}
	if err := readLostBrowsers(ctx, q, org, users, all); err != nil {
		return nil, err
	}
	for _, x := range all {
		x.derive(now, s.cfg.BrowserAway)
	}
	return all, nil
}

// currentChoice returns the choice that applies now.
func (x *State) currentChoice(now time.Time) choice {
	past := func(until db.Time) bool { return !until.IsZero() && !now.Before(until.Time) }
	if x.nextChoiceApplies() {
		if past(x.row.nextChoice.Until) {
			return choice{Status: Available}
		}
		return *x.row.nextChoice
	}
	chose := choice{Status: cmp.Or(x.row.availability, Available), Reason: string(x.row.choiceReason), Until: x.row.choiceUntil}
	if past(x.row.choiceUntil) {
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

// nextChoiceApplies reports whether the choice for the time after the current call applies now.
func (x *State) nextChoiceApplies() bool { return x.row.nextChoice != nil && x.busyCall == "" }

// isWithdrawn reports whether an agent became unavailable while a queue offers the agent a call: the agent is on another call, chose to be
// away, has no registered phone, or is suspended. If the agent is on the offered call already, or on its callback, it returns false.
func (x *State) isWithdrawn() bool {
	if x.offeredCall == "" || x.offeredCall == x.busyCall || x.inCallback {
		return false
	}
	return x.busyCall != "" || x.Availability != Available || x.Devices == 0 || x.suspended
}

// derive computes the presence (api-surface 7.8) and the time of its next change without an event. browserAway is how long a browser may be
// unreachable before its agent is away.
func (x *State) derive(now time.Time, browserAway time.Duration) {
	c := x.currentChoice(now)
	awayAt, offlineAt := x.browserAway(browserAway)
	x.Availability, x.IdleSince = c.Status, x.row.idleSince
	if x.row.wrapUpUntil.After(now) {
		x.WrapUpUntil, x.WrapUpCall = x.row.wrapUpUntil, x.row.wrapUpCall
	}
	p := user.Presence{Until: c.Until}
	switch {
	case x.busyCall != "":
		p, x.CallID = user.Presence{Status: Busy}, x.busyCall
	case x.ringingCall != "":
		p, x.CallID = user.Presence{Status: Ringing}, x.ringingCall
	case c.Status == Offline, x.suspended:
		p.Status, p.Reason = Offline, db.Null(c.Reason).Ptr()
	case x.Devices == 0 && (awayAt.IsZero() || !now.Before(offlineAt.Time)):
		p = user.Presence{Status: Offline}
	case c.Status == DND, c.Status == Away:
		p.Status, p.Reason = c.Status, db.Null(c.Reason).Ptr()
	case !awayAt.IsZero() && !now.Before(awayAt.Time):
		reason := BrowserNotReachable
		p = user.Presence{Status: Away, Reason: &reason}
	case !x.WrapUpUntil.IsZero():
		p = user.Presence{Status: WrapUp, Until: x.WrapUpUntil}
	case x.row.pausedUntil.After(now):
		reason := MissedOffers
		p = user.Presence{Status: Away, Reason: &reason, Until: x.row.pausedUntil}
	default:
		p = user.Presence{Status: Available}
	}
	p.Since = x.row.published.since
	if x.presenceChanged(p) {
		p.Since = db.At(now)
		if t := x.row.published; p.Status == Available && t.status != Ringing && x.row.idleSince.Before(t.since.Time) &&
			(t.call == "" || t.call != x.row.endedCall) { // the same value as publishing will store
			x.IdleSince = p.Since
		}
	}
	x.Presence, x.nextChangeAt = p, x.nextChange(now, c.Until, awayAt, offlineAt)
}

// browserAwayTime is how long an agent is away because of an unreachable browser. Then the agent is offline, as after a working day.
const browserAwayTime = 30 * time.Minute

// browserAway returns when an agent without another phone becomes away because the browser is unreachable, and when offline. Zero: never.
func (x *State) browserAway(after time.Duration) (away, offline db.Time) {
	if x.lostAt.IsZero() || x.Devices > 0 {
		return db.Time{}, db.Time{}
	}
	at := x.lostAt.Add(after)
	return db.At(at), db.At(at.Add(browserAwayTime))
}

// presenceChanged reports whether a presence differs from the one published last.
func (x *State) presenceChanged(p user.Presence) bool {
	reason := ""
	if p.Reason != nil {
		reason = *p.Reason
	}
	t := x.row.published
	return p.Status != t.status || reason != t.reason || x.CallID != t.call || !p.Until.Equal(t.until.Time)
}

// NextChangeAt returns when the presence changes with time alone; zero: never.
func (x *State) NextChangeAt() time.Time { return x.nextChangeAt.Time }

// NeedsUpdate reports whether there is an unpublished change or an outdated row.
func (x *State) NeedsUpdate() bool { return x.needsUpdate() }

// nextChange returns the first time at which time alone changes the presence, of these and of those in the row; zero: never.
func (x *State) nextChange(now time.Time, changes ...db.Time) (next db.Time) {
	for _, at := range append(changes, x.row.choiceUntil, x.row.wrapUpUntil, x.row.pausedUntil) {
		if at.After(now) && (next.IsZero() || at.Before(next.Time)) {
			next = at
		}
	}
	return next
}
