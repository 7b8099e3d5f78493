package pbx

import (
	"sync"

	"soniq/sip"
)

// A message tells a call's goroutine what happened: an event of a leg, or one of ours.
type message struct {
	leg   *leg
	event any // a sip.Event, or shutdown, preempted, reinvited
}

// shutdown asks a call to end because the node does.
type shutdown struct{}

// preempted takes a call's channel away for an emergency call, or ends it because the operator stopped outbound calls.
type preempted struct{}

// reinvited is the outcome of passing a re-INVITE on to the other leg.
type reinvited struct {
	from  *leg
	offer sip.Reinvite
	sdp   []byte // the other side's answer
	err   error
}

// An inbox never blocks who pushes: signalling must not wait for a call that waits for its database.
type inbox struct {
	mu    sync.Mutex // guards queue
	queue []message
	ready chan struct{}
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (i *inbox) push(m message) {
	i.mu.Lock()
	i.queue = append(i.queue, m)
	i.mu.Unlock()
	select {
	case i.ready <- struct{}{}:
	default:
	}
}

// pop returns the oldest message; ok is false when there is none.
func (i *inbox) pop() (m message, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queue) == 0 {
		return m, false
	}
	m = i.queue[0]
	i.queue[0] = message{}
	i.queue = i.queue[1:]
	if len(i.queue) == 0 {
		i.queue = nil
	}
	return m, true
}
