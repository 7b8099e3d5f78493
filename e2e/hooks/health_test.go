package hooks_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// healthEvent is an event with the health of a webhook in the live stream.
type healthEvent struct {
	ID       string `json:"webhook_id"`
	Status   string
	Failures int     `json:"consecutive_failures"`
	Reason   *string `json:"disabled_reason"`
	At       time.Time
}

// wantHealth fails unless the next health of a webhook is this, in the stream and the API.
func wantHealth(s *fixture.Org, l *fixture.EventStream, id, status string, failures int, reason string) {
	s.T.Helper()
	h := fixture.NextEventData[healthEvent](l)
	if h.ID != id || h.Status != status || h.Failures != failures || h.reason() != reason {
		s.T.Fatalf("the stream tells %+v, reason %q; want %s of %s, %d failures, reason %q", h, h.reason(), status, id, failures, reason)
	}
	if age := time.Since(h.At); age < 0 || age > time.Minute {
		s.T.Errorf("of now it is told as of %s", h.At)
	}
	shown := healthEvent{}
	var health struct{ Health *healthEvent }
	s.Want(200, "GET", "/webhooks/"+id, nil, &shown)
	s.Want(200, "GET", "/webhooks/"+id, nil, &health)
	if shown.Status != status || shown.reason() != reason || health.Health.Failures != failures {
		s.T.Errorf("the stream tells %+v; the API shows %s, %d failures, reason %q", h, shown.Status, health.Health.Failures, shown.reason())
	}
}

// reason returns the reason, or "".
func (h healthEvent) reason() string {
	if h.Reason == nil {
		return ""
	}
	return *h.Reason
}

// TestHealth_Streamed checks the health events of a receiver that fails, recovers and answers 410, and of a webhook
// that its owner pauses and resumes.
func TestHealth_Streamed(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "a webhook counts as failing after its retries")
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	o, other := fixture.NewOrg(s), fixture.NewOrg(s)
	l, elsewhere := o.OpenStream("", "webhook.health"), other.OpenStream("", "webhook.health")
	var answer atomic.Int64
	answer.Store(http.StatusInternalServerError)
	bad := func(rig.Event, int) int { return int(answer.Load()) }
	hook := o.Hook(bad)
	for i := range 5 {
		o.AddUser(fmt.Sprintf("User%d", i))
	}
	wantHealth(o, l, hook.ID, "failing", 5, "")
	answer.Store(http.StatusOK)
	wantHealth(o, l, hook.ID, "active", 0, "")
	for _, e := range o.Webhook.Events() { // another receiver, healthy all the time
		hook.Wait(e.Event, time.Minute, func(x rig.Event) bool { return x.Body == e.Body })
	}
	answer.Store(http.StatusGone)
	o.AddUser("Ada")
	wantHealth(o, l, hook.ID, "disabled", 1, "the endpoint answered 410 Gone")
	for _, status := range []string{"active", "paused", "active"} {
		o.Want(200, "PATCH", "/webhooks/"+hook.ID, map[string]any{"status": status}, nil)
		wantHealth(o, l, hook.ID, status, 0, "")
	}
	theirs := other.Hook(bad)
	other.AddUser("Eve")
	wantHealth(other, elsewhere, theirs.ID, "disabled", 1, "the endpoint answered 410 Gone")
}

// TestHealth_DisabledOnce answers 410 while three deliveries are in progress: the webhook is disabled once.
func TestHealth_DisabledOnce(t *testing.T) {
	t.Parallel()
	o := fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	var asked atomic.Int64
	three := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) {
		case 1: // a healthy receiver gets several events at once
			return
		case 4:
			close(three)
		}
		select {
		case <-three:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusGone)
	}))
	t.Cleanup(receiver.Close)
	l := o.OpenStream("", "webhook.health")
	var hook struct{ ID string }
	o.Want(201, "POST", "/webhooks", map[string]any{"url": receiver.URL, "events": []string{"user.created"}}, &hook)
	o.AddUser("Ada")
	rig.Until(t, "an event was received", 20*time.Second, func() bool {
		var page struct{ Data []struct{ Status string } }
		o.Want(200, "GET", "/webhooks/"+hook.ID+"/deliveries?status=succeeded", nil, &page)
		return len(page.Data) == 1
	})
	for _, name := range []string{"Bob", "Carol", "Dave"} {
		o.AddUser(name)
	}
	told := fixture.NextEventData[healthEvent](l)
	rig.Until(t, "no event is on its way", 20*time.Second, func() bool {
		var page struct{ Data []struct{ Status string } }
		o.Want(200, "GET", "/webhooks/"+hook.ID+"/deliveries?status=discarded", nil, &page)
		return len(page.Data) == 3
	})
	if told.Status != "disabled" || told.reason() != "the endpoint answered 410 Gone" {
		t.Errorf("told %+v, reason %q", told, told.reason())
	}
	o.Want(200, "PATCH", "/webhooks/"+hook.ID, map[string]any{"status": "active"}, nil)
	wantHealth(o, l, hook.ID, "active", 0, "")
}
