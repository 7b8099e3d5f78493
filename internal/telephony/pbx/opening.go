package pbx

import (
	"strings"
	"sync"
)

// How much is kept of calls that are not known yet: so many of them, the newest, and of each so many messages of at most so many bytes.
const (
	maxOpenings        = 256
	maxOpeningMessages = 8
	maxOpeningSize     = 8 << 10
)

// An openings keeps how calls to us begin, from the INVITE through the challenge, until a leg is made of them. Most of what
// strangers send never becomes one, so that the oldest is forgotten when there are too many.
type openings struct {
	mu       sync.Mutex // guards the fields below
	messages map[string][]traced
	ids      [maxOpenings]string // a ring, in the order in which they came
	next     int
}

// keep keeps a message that begins a call, or follows one that did.
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

// take returns what was kept of a call, and forgets it.
func (o *openings) take(id string) []traced {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.messages[id]
	delete(o.messages, id)
	return all
}
