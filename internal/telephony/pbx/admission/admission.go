// Package admission limits the calls that are being set up at the same time.
package admission

import (
	"sync/atomic"
)

// maxSetups is the limit of calls between INVITE and first row at the same time. A call spends a few milliseconds
// there. More calls mean that routing or the database does not keep up, and that every further call would be late.
const maxSetups = 1000

// Gate counts the calls that are being set up.
type Gate struct {
	open       atomic.Bool
	inProgress atomic.Int64
	refused    atomic.Int64
}

// Admit admits a call, unless too many calls are being set up or the node is not open yet.
func (d *Gate) Admit() bool {
	if d.inProgress.Add(1) > maxSetups || !d.open.Load() {
		d.inProgress.Add(-1)
		d.refused.Add(1)
		return false
	}
	return true
}

// AdmitUrgent admits a possible emergency call after admit refused it. The limit is twice as high.
func (d *Gate) AdmitUrgent() bool {
	if d.inProgress.Add(1) > 2*maxSetups || !d.open.Load() {
		d.inProgress.Add(-1)
		return false
	}
	d.refused.Add(-1)
	return true
}

// Done ends the set-up of an admitted call.
func (d *Gate) Done() { d.inProgress.Add(-1) }

// Start begins to admit calls.
func (d *Gate) Start() { d.open.Store(true) }

// TurnedAway returns how many calls were refused.
func (d *Gate) TurnedAway() int64 { return d.refused.Load() }
