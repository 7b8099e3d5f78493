package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// A toldQueue is what the live stream tells of a queue.
type toldQueue struct {
	ID        string `json:"queue_id"`
	Name      string `json:"queue_name"`
	Waiting   int    `json:"callers_waiting"`
	Available int    `json:"agents_available"`
	Longest   int    `json:"longest_wait_seconds"`
	At        time.Time
}

func (q toldQueue) String() string {
	return fmt.Sprintf("%s: %d waiting, %d available", q.Name, q.Waiting, q.Available)
}

// queueTells waits until the live stream tells this of a queue; before it only what may be told on the way.
func (l *listener) queueTells(id, want string, onTheWay ...string) toldQueue {
	l.t.Helper()
	for {
		q := tells[toldQueue](l)
		if age := time.Since(q.At); q.ID != id || age < 0 || age > time.Minute {
			l.t.Fatalf("the stream tells %+v, want queue %s", q, id)
		}
		if q.String() == want {
			return q
		}
		if !slices.Contains(onTheWay, q.String()) {
			l.t.Fatalf("the stream tells %q, want %q", q, want)
		}
	}
}

// TestTheStreamTellsWhoWaitsInAQueue follows callers and an agent who come and go.
func TestTheStreamTellsWhoWaitsInAQueue(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o, other := &office{site: newSite(s)}, newSite(s)
		o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
		_, _ = other.AddUser("Eve"), other.AddUser("Fay") // so that the next event of either organisation has the same number
		l, elsewhere := o.listen("", "queue.updated"), other.listen("", "queue.updated")
		o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
		o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{})
		id := o.addQueue(map[string]any{"extension": "600", "wrap_up_seconds": 1})
		l.queueTells(id, "Support: 0 waiting, 0 available")
		way := o.leadTo(id)
		o.Want(201, "POST", "/queues/"+id+"/members", map[string]any{"user_id": o.ada.ID}, nil)
		l.queueTells(id, "Support: 0 waiting, 1 available")
		o.presence(o.ada, "away")
		l.queueTells(id, "Support: 0 waiting, 0 available")
		o.bobPhone.Dial("600")
		l.queueTells(id, "Support: 1 waiting, 0 available")
		o.waitsLong(id)
		v := o.visit(way, "+12125550111")
		if q := l.queueTells(id, "Support: 2 waiting, 0 available"); q.Longest < 1 {
			t.Errorf("of two callers, one of whom waits for a second, %+v is told", q)
		}
		o.presence(o.ada, "available")
		o.adaPhone.Wait("CALL_INCOMING", "")
		o.adaPhone.Do("accept", "")
		l.queueTells(id, "Support: 1 waiting, 0 available", "Support: 2 waiting, 1 available", "Support: 2 waiting, 0 available")
		v.line.HangUp()
		l.queueTells(id, "Support: 0 waiting, 0 available")
		o.bobPhone.Do("hangup", "")
		l.queueTells(id, "Support: 0 waiting, 1 available")
		o.Want(200, "PATCH", "/queues/"+id, map[string]any{"name": "Sales"}, nil)
		o.Want(200, "PUT", "/agents/"+o.ada.ID+"/queues/"+id, map[string]any{"signed_in": false}, nil)
		if q := l.queueTells(id, "Sales: 0 waiting, 0 available"); q.Longest != 0 {
			t.Errorf("while nobody waits, %+v is told", q)
		}
		elsewhere.queueTells(other.addQueue(nil), "Support: 0 waiting, 0 available")
	})
}

// waitsLong waits until the first caller of a queue has waited for a second.
func (s *site) waitsLong(id string) {
	s.T.Helper()
	rig.Until(s.T, "a caller to have waited for a second", 20*time.Second, func() bool {
		var f struct {
			Longest int `json:"longest_wait_seconds"`
		}
		s.Want(200, "GET", "/queues/"+id+"/stats", nil, &f)
		return f.Longest > 0
	})
}
