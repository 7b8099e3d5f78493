package pbx

import (
	"sync/atomic"
	"time"

	"soniq/internal/protocol/sip"
)

// maxSetups is the limit of calls between INVITE and first row at the same time. A call spends a few milliseconds
// there. More calls mean that routing or the database does not keep up, and that every further call would be late.
const maxSetups = 1000

// retryAfter is the Retry-After value of a 503 response to a call that is refused for overload or shutdown.
const retryAfter = 2 * time.Second

// admission counts the calls that are being set up.
type admission struct {
	open       atomic.Bool
	inProgress atomic.Int64
	refused    atomic.Int64
}

// admit admits a call, unless too many calls are being set up or the node is not open yet.
func (d *admission) admit() bool {
	if d.inProgress.Add(1) > maxSetups || !d.open.Load() {
		d.inProgress.Add(-1)
		d.refused.Add(1)
		return false
	}
	return true
}

// admitUrgent admits a possible emergency call after admit refused it. The limit is twice as high.
func (d *admission) admitUrgent() bool {
	if d.inProgress.Add(1) > 2*maxSetups || !d.open.Load() {
		d.inProgress.Add(-1)
		return false
	}
	d.refused.Add(-1)
	return true
}

func (d *admission) done() { d.inProgress.Add(-1) }

// rejectOverloaded refuses a call with 503 and Retry-After (RFC 3261 §21.5.4) before it costs anything. It does not
// affect calls in progress.
func rejectOverloaded(in *sip.Inbound) {
	in.Listen(func(sip.Event) {})
	in.Reject(503, "the server has reached its limit of calls", retryAfter)
}
