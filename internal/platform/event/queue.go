package event

import "soniq/internal/platform/db"

// QueueEntry is the stay of a caller in a queue, as shown with queues and calls.
type QueueEntry struct {
	ID             string         `json:"id" example:"qen_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	QueueID        string         `json:"queue_id"`
	CallID         string         `json:"call_id"`
	Status         string         `json:"status" enum:"waiting,offering,connected,completed,abandoned,timed_out,overflowed,exited,removed,callback_pending,callback_dialing,callback_failed"`
	Position       int            `json:"position" doc:"1 is next; 0: does not wait any more"`
	Priority       int            `json:"priority"`
	FromNumber     string         `json:"from_number"`
	Contact        *Contact       `json:"contact"`
	EnteredAt      db.Time        `json:"entered_at"`
	WaitedSeconds  int            `json:"waited_seconds"`
	EstimatedWait  *int           `json:"estimated_wait_seconds"`
	Offers         int            `json:"offers" doc:"How often an agent was rung"`
	OfferedAgentID *string        `json:"offered_agent_id" doc:"Who is rung, or answered"`
	Callback       *QueueCallback `json:"callback"`
	ExitedAt       db.Time        `json:"exited_at" nullable:"true"`
	ExitReason     *string        `json:"exit_reason"`
}

// QueueCallback is the state of the callback for a caller who hung up and keeps the position.
type QueueCallback struct {
	Status      string  `json:"status" enum:"scheduled,dialing,waiting_agent,retry_wait,completed,failed,canceled"`
	ScheduledAt db.Time `json:"scheduled_at" nullable:"true"`
	Attempts    int     `json:"attempts"`
}
