package eventstream

import (
	"encoding/json"
	"slices"
	"strings"

	"soniq/internal/platform/event"
)

// subject is what the events of a stream are about: a call, a queue and a user. Empty members are not compared.
type subject struct{ CallID, QueueID, UserID string }

// named has the members of payloads that name calls, queues and users.
type named struct {
	CallID       string `json:"call_id"`
	ActiveCallID string `json:"active_call_id"`
	QueueID      string `json:"queue_id"`
	UserID       string `json:"user_id"`
	AgentID      string `json:"agent_id"`
	Queue        struct {
		ID string `json:"id"`
	} `json:"queue"`
	Mailbox struct {
		ID string `json:"id"`
	} `json:"mailbox"`
}

// of reports whether an event names each of the given IDs in its place.
func (s subject) of(e event.Event) bool {
	if s == (subject{}) {
		return true
	}
	for _, id := range []string{s.CallID, s.QueueID, s.UserID} {
		if id != "" && !strings.Contains(e.Body, `"`+id+`"`) {
			return false // most events are not about it, and cost no decoding
		}
	}
	var n named
	if json.Unmarshal([]byte(e.Data()), &n) != nil {
		return false
	}
	among := func(id string, names ...string) bool { return id == "" || slices.Contains(names, id) }
	return among(s.CallID, e.CallID, n.CallID, n.ActiveCallID) && among(s.QueueID, n.QueueID, n.Queue.ID, n.Mailbox.ID) &&
		among(s.UserID, n.UserID, n.AgentID, n.Mailbox.ID)
}
