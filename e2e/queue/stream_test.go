package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// queueEvent is the state of a queue in the live stream.
type queueEvent struct {
	ID        string `json:"queue_id"`
	Name      string `json:"queue_name"`
	Waiting   int    `json:"callers_waiting"`
	Available int    `json:"agents_available"`
	Longest   int    `json:"longest_wait_seconds"`
	At        time.Time
}

// String returns the fields that tests compare.
func (q queueEvent) String() string {
	return fmt.Sprintf("%s: %d waiting, %d available", q.Name, q.Waiting, q.Available)
}

// waitQueueEvent waits until the live stream publishes a state of a queue. Earlier events of the queue may contain
// only the states in onTheWay.
func waitQueueEvent(l *fixture.EventStream, id, want string, onTheWay ...string) queueEvent {
	l.T.Helper()
	for {
		q := fixture.NextEventData[queueEvent](l)
		if age := time.Since(q.At); q.ID != id || age < 0 || age > time.Minute {
			l.T.Fatalf("the stream tells %+v, want queue %s", q, id)
		}
		if q.String() == want {
			return q
		}
		if !slices.Contains(onTheWay, q.String()) {
			l.T.Fatalf("the stream tells %q, want %q", q, want)
		}
	}
}

// TestStream_QueueFigures checks the events of a queue while callers and an agent arrive and leave.
func TestStream_QueueFigures(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o, other := &fixture.Office{Org: fixture.NewOrg(s)}, fixture.NewOrg(s)
		o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
		_, _ = other.AddUser("Eve"), other.AddUser("Fay") // so that the next event of either organisation has the same number
		l, elsewhere := o.OpenStream("", "queue.updated"), other.OpenStream("", "queue.updated")
		o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{})
		id := o.AddQueue(map[string]any{"extension": "600", "wrap_up_seconds": 1})
		waitQueueEvent(l, id, "Support: 0 waiting, 0 available")
		way := addQueueCarrier(o.Org, id)
		o.Want(201, "POST", "/queues/"+id+"/members", map[string]any{"user_id": o.Ada.ID}, nil)
		waitQueueEvent(l, id, "Support: 0 waiting, 1 available")
		o.SetPresence(o.Ada, "away")
		waitQueueEvent(l, id, "Support: 0 waiting, 0 available")
		o.BobPhone.Dial("600")
		waitQueueEvent(l, id, "Support: 1 waiting, 0 available")
		waitOneSecond(o.Org, id)
		v := o.CallIn(way, "+12125550111")
		if q := waitQueueEvent(l, id, "Support: 2 waiting, 0 available"); q.Longest < 1 {
			t.Errorf("of two callers, one of whom waits for a second, %+v is told", q)
		}
		o.SetPresence(o.Ada, "available")
		o.AdaPhone.Wait("CALL_INCOMING", "")
		o.AdaPhone.Do("accept", "")
		waitQueueEvent(l, id, "Support: 1 waiting, 0 available", "Support: 2 waiting, 1 available", "Support: 2 waiting, 0 available")
		v.Line.HangUp()
		waitQueueEvent(l, id, "Support: 0 waiting, 0 available")
		o.BobPhone.Do("hangup", "")
		waitQueueEvent(l, id, "Support: 0 waiting, 1 available")
		o.Want(200, "PATCH", "/queues/"+id, map[string]any{"name": "Sales"}, nil)
		o.Want(200, "PUT", "/agents/"+o.Ada.ID+"/queues/"+id, map[string]any{"signed_in": false}, nil)
		if q := waitQueueEvent(l, id, "Sales: 0 waiting, 0 available"); q.Longest != 0 {
			t.Errorf("while nobody waits, %+v is told", q)
		}
		waitQueueEvent(elsewhere, other.AddQueue(nil), "Support: 0 waiting, 0 available")
	})
}

// waitOneSecond waits until the first caller of a queue has waited for a second.
func waitOneSecond(s *fixture.Org, id string) {
	s.T.Helper()
	rig.Until(s.T, "a caller to have waited for a second", 20*time.Second, func() bool {
		var f struct {
			Longest int `json:"longest_wait_seconds"`
		}
		s.Want(200, "GET", "/queues/"+id+"/stats", nil, &f)
		return f.Longest > 0
	})
}
