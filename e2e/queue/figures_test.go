package queue

import (
	"net/url"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// queueFigures are the figures of a queue.
type queueFigures struct {
	Waiting int `json:"callers_waiting"`
	Agents  struct {
		Available, Ringing, Busy int
		WrapUp                   int `json:"wrap_up"`
	}
	Level     int `json:"service_level_rate"`
	Callbacks int `json:"callbacks_pending"`
	Today     struct{ Answered, Abandoned, Overflowed int }
}

// figuresOf returns the figures of a queue.
func figuresOf(s *fixture.Org, id string) (f queueFigures) {
	s.T.Helper()
	s.Want(200, "GET", "/queues/"+id+"/stats", nil, &f)
	return f
}

// queueRecord is the part of a call detail record that concerns queues.
type queueRecord struct {
	Status       string
	MissedReason *string `json:"missed_reason"`
	EndReason    string  `json:"end_reason"`
	Queue        struct{ ID, Name string }
	Waited       int `json:"queue_seconds"`
	Offered      []struct {
		Agent  string `json:"agent_id"`
		Result string
	} `json:"agents_offered"`
}

// queueRecordOf waits for the one record with a number on either side.
func queueRecordOf(s *fixture.Org, number string) queueRecord {
	s.T.Helper()
	var page struct{ Data []queueRecord }
	rig.Until(s.T, "the record", 30*time.Second, func() bool {
		page.Data = nil
		s.Want(200, "GET", "/cdr?phone="+url.QueryEscape(number), nil, &page)
		return len(page.Data) == 1
	})
	return page.Data[0]
}

// results returns the results of the offers of a call, in order.
func (r queueRecord) results() (all []string) {
	for _, o := range r.Offered {
		all = append(all, o.Result)
	}
	return all
}

// missed returns the reason of a missed call, or "".
func (r queueRecord) missed() string {
	if r.MissedReason == nil {
		return ""
	}
	return *r.MissedReason
}

// addQueueCarrier routes an outside number to a queue.
func addQueueCarrier(s *fixture.Org, queue string) fixture.Carrier {
	s.T.Helper()
	way := s.AddCarrier("", nil)
	s.Want(200, "PATCH", "/numbers/"+s.NumberID(way), map[string]any{"queue_id": queue}, nil)
	return way
}
