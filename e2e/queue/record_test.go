package queue

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// queueState is the queue of a live call.
type queueState struct {
	ID      string
	Status  string
	Seconds int `json:"queue_seconds"`
	Entry   *struct {
		fixture.QueueEntry
		QueueID string `json:"queue_id"`
		Waited  int    `json:"waited_seconds"`
	} `json:"queue_entry"`
}

// waitCall waits until the one live call has waited in a queue for a second, and returns it.
func (o *team) waitCall() (c queueState) {
	o.T.Helper()
	rig.Until(o.T, "a call that waits", 20*time.Second, func() bool {
		var live struct{ Data []queueState }
		o.Want(200, "GET", "/calls/live", nil, &live)
		if len(live.Data) == 1 {
			c = live.Data[0]
		}
		return c.Entry != nil && c.Seconds > 0
	})
	return c
}

// waitWrapUp waits until the record of a call contains wrap-up time.
func (o *team) waitWrapUp(callID string) (seconds int) {
	o.T.Helper()
	rig.Until(o.T, "wrap-up in the record", 20*time.Second, func() bool {
		r := o.Do("GET", "/cdr/"+callID, nil)
		seconds = 0
		if n, ok := r.JSON()["wrap_up_seconds"].(float64); ok {
			seconds = int(n)
		}
		return seconds > 0
	})
	return seconds
}

// TestRecord_QueueDetails checks the queue details of calls in the live view, events, records and exports.
func TestRecord_QueueDetails(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}}, func(t *testing.T, s *rig.Server) {
		o := newTeam(s, "Ada")
		ada := o.agents["Ada"].User
		o.Want(200, "PATCH", "/queues/"+o.queue, map[string]any{"wrap_up_seconds": 2}, nil)
		o.SetPresence(ada, "away")
		call := o.caller.Dial("600").WaitAnswered()
		c := o.waitCall()
		if e := c.Entry; e.CallID != c.ID || e.QueueID != o.queue || e.Status != "waiting" || e.Position != 1 || e.Waited != c.Seconds {
			t.Errorf("a live call tells of its queue: %+v %+v", c, e)
		}
		var one queueState
		o.Want(200, "GET", "/calls/"+c.ID, nil, &one)
		if one.Entry == nil || one.Entry.ID != c.Entry.ID || one.Seconds < c.Seconds {
			t.Errorf("the call alone tells %+v", one)
		}
		o.SetPresence(ada, "available")
		r := o.next()
		r.Answer()
		e := o.Webhook.Wait("call.answered", 30*time.Second, anyEvent)
		if e.Data["queue_id"] != o.queue || e.Data["queue_seconds"].(float64) < 1 {
			t.Errorf("call.answered %v", e.Data)
		}
		one = queueState{}
		if o.Want(200, "GET", "/calls/"+c.ID, nil, &one); one.Entry != nil || one.Seconds < 1 {
			t.Errorf("who speaks, and has waited, is told as %+v", one)
		}
		call.HangUp()
		if n := o.waitWrapUp(c.ID); n != 2 {
			t.Errorf("wrap-up of %d s; want 2", n)
		}
		if e := o.Webhook.Wait("call.ended", 30*time.Second, anyEvent); e.Data["queue_id"] != o.queue {
			t.Errorf("call.ended %v", e.Data)
		}
		o.endWrapUpEarly(ada)
		o.abandon()
		o.wantExport(c.ID)
	})
}

// anyEvent matches every event.
func anyEvent(rig.Event) bool { return true }

// endWrapUpEarly makes an agent end the wrap-up before its time.
func (o *team) endWrapUpEarly(ada rig.User) {
	o.T.Helper()
	o.waitIdle()
	o.Want(200, "PATCH", "/queues/"+o.queue, map[string]any{"wrap_up_seconds": 600}, nil)
	call := o.caller.Dial("600").WaitAnswered()
	r := o.next()
	r.Answer()
	o.WaitPresence(ada, "busy")
	id := o.LiveCall(nil)["id"].(string)
	call.HangUp()
	o.WaitPresence(ada, "wrap_up")
	<-time.After(1200 * time.Millisecond) // wrap-up work
	o.SetPresence(ada, "available")
	if n := o.waitWrapUp(id); n > 60 {
		o.T.Errorf("wrap-up of %d s, of an agent who was ready at once", n)
	}
}

// abandon makes an outside caller hang up while the agent's phone rings for the second time.
func (o *team) abandon() {
	o.T.Helper()
	o.waitIdle()
	v := o.CallIn(addQueueCarrier(o.Org, o.queue), "+12125550111")
	o.next().Refuse()
	r := o.next()
	v.Line.HangUp()
	r.WaitStopped()
	e := o.Webhook.Wait("call.missed", 30*time.Second, anyEvent)
	if e.Data["queue_id"] != o.queue || e.Data["agents_offered"] != 2.0 || e.Data["missed_reason"] != "abandoned_in_queue" {
		o.T.Errorf("call.missed %v", e.Data)
	}
}

// wantExport exports the records to files and checks their queue details.
func (o *team) wantExport(callID string) {
	o.T.Helper()
	for format, want := range map[string]string{
		"csv":   callID + ",Support,2,",
		"jsonl": `"queue.name":"Support"`,
	} {
		var made struct{ ID, Status, URL string }
		o.Want(202, "POST", "/cdr/exports", map[string]any{"since": "2020-01-01", "until": "2999-01-01", "format": format,
			"columns": []string{"call_id", "queue.name", "wrap_up_seconds", "queue_seconds", "agents_offered"}}, &made)
		rig.Until(o.T, "the file", 30*time.Second, func() bool {
			o.Want(200, "GET", "/cdr/exports/"+made.ID, nil, &made)
			return made.Status == "ready"
		})
		u, err := url.Parse(made.URL)
		if err != nil {
			o.T.Fatal(err)
		}
		file := string(o.Do("GET", strings.TrimPrefix(u.RequestURI(), o.Prefix), nil).Body)
		offered := strings.ReplaceAll(file, `""`, `"`)
		if !strings.Contains(file, want) || strings.Count(offered, `"result":"answered"`) != 2 || !strings.Contains(offered, `"result":"rejected"`) {
			o.T.Errorf("%s export lacks %s or offers: %s", format, want, file)
		}
	}
}
