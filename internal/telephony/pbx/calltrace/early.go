package calltrace

import (
	"strings"
	"sync"
)

// Limits of messages that belong to no known call: number of Call-IDs (the newest are kept), messages per Call-ID,
// and bytes per message.
const (
	maxEarlyTraces      = 256
	maxEarlyMessages    = 8
	maxEarlyMessageSize = 8 << 10
)

// Early keeps the first SIP messages of calls to us, from the INVITE through the challenge, until a leg exists.
// Most requests of unauthenticated senders never become a leg. If there are too many, the oldest are dropped.
type Early struct {
	mu       sync.Mutex // guards the fields below
	messages map[string][]Message
	ids      [maxEarlyTraces]string // ring buffer in order of arrival
	next     int
}

// Add stores an INVITE that begins a call, or a message that follows one.
func (o *Early) Add(id string, m Message) {
	if m.Message.Size() > maxEarlyMessageSize {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.messages[id]
	switch {
	case known && len(before) < maxEarlyMessages:
		o.messages[id] = append(before, m)
	case !known && !m.Sent && m.Message.HasPrefix("INVITE "):
		o.begin(id, m)
	}
}

func (o *Early) begin(id string, m Message) {
	if o.messages == nil {
		o.messages = map[string][]Message{}
	}
	delete(o.messages, o.ids[o.next])
	id = strings.Clone(id)
	o.ids[o.next] = id
	o.next = (o.next + 1) % maxEarlyTraces
	o.messages[id] = []Message{m}
}

// Take returns and removes the messages of a Call-ID.
func (o *Early) Take(id string) []Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.messages[id]
	delete(o.messages, id)
	return all
}
