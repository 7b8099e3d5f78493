package pbx

import (
	"sync/atomic"
	"time"

	"soniq/internal/protocol/sip"
)

// maxSetUps is how many calls may be between their INVITE and their first row at once. A call spends a few milliseconds there,
// so this many mean that routing or the database does not keep up: more calls would only make all of them late.
const maxSetUps = 1000

// retryAfter is what a call that is turned away is told.
const retryAfter = 2 * time.Second

// door counts who is coming in.
type door struct {
	open   atomic.Bool
	inside atomic.Int64
	turned atomic.Int64
}

// enter lets a call in, unless too many are on their way already.
func (d *door) enter() bool {
	if d.inside.Add(1) > maxSetUps || !d.open.Load() {
		d.inside.Add(-1)
		d.turned.Add(1)
		return false
	}
	return true
}

// enterUrgent lets in what may be an emergency call, where others are turned away.
func (d *door) enterUrgent() bool {
	if d.inside.Add(1) > 2*maxSetUps || !d.open.Load() {
		d.inside.Add(-1)
		return false
	}
	d.turned.Add(-1)
	return true
}

func (d *door) leave() { d.inside.Add(-1) }

// turnAway refuses a call while it costs next to nothing (RFC 3261 §21.5.4). Calls in progress do not notice.
func turnAway(in *sip.Inbound) {
	in.Listen(func(sip.Event) {})
	in.Reject(503, "Overloaded", retryAfter)
}
