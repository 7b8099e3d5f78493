package queue

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestDisposition_EndsWrapUp proves that the wrap-up lasts until the agent sets the disposition, if the queue requires one. The next caller
// waits meanwhile. Record, list and export have the disposition.
func TestDisposition_EndsWrapUp(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := newTeam(s, "Ada")
		ada := o.agents["Ada"].User
		o.Want(200, "PATCH", "/queues/"+o.queue, map[string]any{"wrap_up_seconds": 1, "disposition_required": true,
			"dispositions": []map[string]any{{"code": "sale", "label": "Sold"}, {"code": "none", "label": "Not interested"}}}, nil)
		call := o.caller.Dial("600").WaitAnswered()
		o.next().Answer()
		o.WaitPresence(ada, "busy")
		id := o.LiveCall(nil)["id"].(string)
		call.HangUp()
		o.WaitPresence(ada, "wrap_up")
		var agent struct {
			Call  string    `json:"wrap_up_call_id"`
			Until time.Time `json:"wrap_up_until"`
		}
		o.Want(200, "GET", "/agents/"+ada.ID, nil, &agent)
		if left := time.Until(agent.Until); agent.Call != id || left < 50*time.Minute {
			t.Errorf("wrap-up for call %s, %s left; want an hour for %s", agent.Call, left, id)
		}
		next := o.caller.Dial("600").WaitAnswered()
		o.SetPresence(ada, "available") // does not end this wrap-up
		o.WaitPresence(ada, "wrap_up")
		path := "/calls/" + id + "/disposition"
		refused := o.Do("PUT", path, map[string]any{"code": "bought"})
		if refused.Status != 422 || !strings.Contains(string(refused.Body), "sale, none") {
			t.Errorf("a code that the queue does not declare: %d %s", refused.Status, refused.Body)
		}
		o.Want(200, "PUT", path, map[string]any{"code": "sale"}, nil)
		o.next().Answer()
		next.HangUp()
		var listed struct {
			Data []struct {
				ID          string `json:"call_id"`
				Disposition string
			}
		}
		o.Want(200, "GET", "/cdr?disposition=sale", nil, &listed)
		if len(listed.Data) != 1 || listed.Data[0].ID != id || listed.Data[0].Disposition != "sale" {
			t.Errorf("records with the disposition: %+v", listed)
		}
		events := o.Do("GET", "/calls/"+id+"/events?limit=200", nil)
		if !strings.Contains(string(events.Body), "api.disposition") {
			t.Errorf("timeline %s", events.Body)
		}
	})
}
