package pbx

import (
	"strings"
	"sync"
)

// Limits of messages that belong to no known call: number of Call-IDs (the newest are kept), messages per Call-ID,
// and bytes per message.
const (
	maxOpenings        = 256
	maxOpeningMessages = 8
	maxOpeningSize     = 8 << 10
)

// earlyTraces keeps the first SIP messages of calls to us, from the INVITE through the challenge, until a leg exists.
// Most requests of unauthenticated senders never become a leg. If there are too many, the oldest are dropped.
type openings struct {
	mu       sync.Mutex // guards the fields below
	messages map[string][]traced
	ids      [maxOpenings]string // ring buffer in order of arrival
	next     int
}

// add stores an INVITE that begins a call, or a message that follows one.
func (o *openings) keep(id string, m traced) {
	if m.message.Size() > maxOpeningSize {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.messages[id]
	switch {
	case known && len(before) < maxOpeningMessages:
		o.messages[id] = append(before, m)
	case !known && !m.sent && m.message.Begins("INVITE "):
		o.begin(id, m)
	}
}

func (o *openings) begin(id string, m traced) {
	if o.messages == nil {
		o.messages = map[string][]traced{}
	}
	delete(o.messages, o.ids[o.next])
	id = strings.Clone(id)
	o.ids[o.next] = id
	o.next = (o.next + 1) % maxOpenings
	o.messages[id] = []traced{m}
}

// take returns and removes the messages of a Call-ID.
func (o *openings) take(id string) []traced {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.messages[id]
	delete(o.messages, id)
	return all
}
