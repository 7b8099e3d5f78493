package eventstream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/api/eventstream"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/limit"
	"soniq/internal/platform/op/optest"
)

func TestStream_ResumeWithoutGapOrDuplicate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d)
		const n = 300
		var done sync.WaitGroup
		done.Go(func() {
			for i := range n {
				s.publish(missed(i))
			}
		})
		last, header := 0, []string(nil)
		for last < n {
			r := s.listen("?after_sequence=0", header...)
			for range 7 + last%90 { // a client that loses its connection repeatedly
				if last == n {
					break
				}
				e := r.next()
				want := fmt.Sprintf("%d call.missed ", last+1)
				if !strings.HasPrefix(e, want) || !strings.Contains(e, waits(last)) {
					t.Fatalf("got %s, want %s", e, want)
				}
				last++
			}
			r.body.Close()
			header = []string{fmt.Sprintf("Last-Event-ID: %d", last)}
		}
		done.Wait()
	})
}

func TestStream_StartsNowWithEphemeralEvents(t *testing.T) {
	t.Parallel()
	s := newFixture(t, dbtest.SQLite(t))
	s.publish(missed(1))
	first := s.listen("?after_sequence=0")
	first.next() // numbered; events from now on are later
	r := s.listen("")
	s.must(s.outbox.PublishEphemeral(s.org, event.CallQuality{CallID: "call_1", MOS: 4.2}))
	if e := r.next(); !strings.HasPrefix(e, "call.quality {") || !strings.Contains(e, `"mos":4.2`) {
		t.Errorf("got %s", e)
	}
	s.must(s.outbox.PublishEphemeral("org_other", event.CallQuality{}))
	s.publish(event.CallHeld{CallID: "call_1", By: "api"})
	if e := r.next(); !strings.HasPrefix(e, "2 call.held {") {
		t.Errorf("got %s", e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) != 1 {
		t.Errorf("webhooks were given %d events, want the first alone", len(s.seen))
	}
}

func TestStream_ScopesAndFilter(t *testing.T) {
	t.Parallel()
	s := newFixture(t, dbtest.SQLite(t))
	s.mu.Lock()
	s.principal.Scopes = []access.Scope{access.QueuesRead}
	s.mu.Unlock()
	queues := s.listen("?after_sequence=0")
	asked := s.listen("?after_sequence=0&events=call.missed,user.created,queue.updated")
	s.mu.Lock()
	s.principal.Scopes = access.All()
	s.mu.Unlock()
	some := s.listen("?after_sequence=0&events=device.registration,call.missed")
	for _, p := range []event.Payload{missed(1), event.UserCreated{}, event.DeviceRegistration{DeviceID: "dev_1"},
		event.QueueUpdated{QueueID: "que_1"}, event.AgentPresence{AgentID: "usr_1"}, event.ScreenPop{}} {
		s.publish(p)
	}
	for _, want := range []string{"4 queue.updated", "5 agent.presence"} {
		if e := queues.next(); !strings.HasPrefix(e, want+" ") {
			t.Errorf("got %s, want %s", e, want)
		}
	}
	if e := asked.next(); !strings.HasPrefix(e, "4 queue.updated ") {
		t.Errorf("asked for what the scopes do not read: got %s", e)
	}
	for _, want := range []string{"1 call.missed", "3 device.registration"} {
		if e := some.next(); !strings.HasPrefix(e, want+" ") {
			t.Errorf("got %s, want %s", e, want)
		}
	}
}

// A listener whose rights shrink gets no further events of what it may not read any more.
func TestStream_ScopeLostWhileListening(t *testing.T) {
	t.Parallel()
	s := newFixture(t, dbtest.SQLite(t))
	c := s.listen("?after_sequence=0")
	s.publish(missed(1))
	if e := c.next(); !strings.HasPrefix(e, "1 call.missed ") {
		t.Fatalf("got %s", e)
	}
	s.changeScopes(access.QueuesRead)
	s.publish(missed(2))
	s.publish(event.QueueUpdated{QueueID: "que_1"})
	if e := c.next(); !strings.HasPrefix(e, "3 queue.updated ") {
		t.Errorf("got %s", e)
	}
}

func TestStream_CallEndedOnce(t *testing.T) {
	t.Parallel()
	s := newFixture(t, dbtest.SQLite(t))
	r := s.listen("?after_sequence=0")
	s.must(s.outbox.DB.Tx(ctx, func(tx db.Querier) error {
		return errors.Join(s.outbox.PublishTo(ctx, tx, s.org, event.AudienceImmediate, event.CallEnded{CallID: "call_1"}),
			s.outbox.PublishTo(ctx, tx, s.org, event.AudienceEnriched, event.CallEnded{CallID: "call_1", Enriched: true}))
	}))
	s.publish(missed(1))
	if e := r.next(); !strings.HasPrefix(e, "1 call.ended ") || !strings.Contains(e, `"enriched":false`) {
		t.Errorf("got %s", e)
	}
	if e := r.next(); !strings.HasPrefix(e, "3 call.missed ") {
		t.Errorf("got %s", e)
	}
}

// A stream in the webhook format sends the webhook kinds, once each, with id and exact body.
func TestStream_WebhookFormat(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d)
		late, early := s.listen("?format=webhook&after_sequence=0"), s.listen("?format=webhook&call_ended_timing=immediate&after_sequence=0")
		s.must(s.outbox.PublishEphemeral(s.org, event.CallQuality{CallID: "call_1"}))
		s.publish(event.DeviceRegistration{DeviceID: "dev_1"})
		ended := event.CallEnded{CallID: "call_1", EndReason: "a <b> \u2028 \n"}
		s.must(s.outbox.DB.Tx(ctx, func(tx db.Querier) error {
			return errors.Join(s.outbox.PublishTo(ctx, tx, s.org, event.AudienceImmediate, ended),
				s.outbox.PublishTo(ctx, tx, s.org, event.AudienceEnriched, ended))
		}))
		s.publish(missed(1))
		for _, x := range []struct {
			of    *streamClient
			first string
		}{{early, "2"}, {late, "3"}} {
			e := x.of.next()
			id, rest, _ := strings.Cut(e, " call.ended ")
			var h eventstream.WebhookMessage
			s.must(json.Unmarshal([]byte(rest), &h))
			body, _ := event.Encode(ended)
			s.mu.Lock()
			want := s.seen[slices.IndexFunc(s.seen, func(e event.Event) bool { return fmt.Sprint(e.Sequence) == x.first })]
			s.mu.Unlock()
			if id != x.first || h.Body != string(body) || h.ID != want.ID || h.Sequence != want.Sequence ||
				h.OccurredAt.Sub(want.OccurredAt.Time).Abs() > time.Millisecond {
				t.Errorf("got %s", e)
			}
			if e := x.of.next(); !strings.HasPrefix(e, "4 call.missed ") {
				t.Errorf("got %s", e)
			}
		}
	})
}

func TestStream_OutlivesReadTimeout(t *testing.T) {
	t.Parallel()
	s := newFixture(t, dbtest.SQLite(t))
	r := s.listen("")
	for beats := 0; beats < 12; { // twice the limit
		line, err := r.lines.ReadString('\n')
		s.must(err)
		if line == ": \n" {
			beats++
		}
	}
	s.publish(missed(1))
	r.next()
}

func TestStream_EndsWithCredentialOrServer(t *testing.T) {
	t.Parallel()
	s := newFixture(t, dbtest.SQLite(t))
	if f := s.outbox.Subscribers("call.quality"); f != nil {
		t.Errorf("followed by %v before anybody came", f)
	}
	s.listen("?events=call.ended").body.Close()
	s.listen("?format=webhook").body.Close()
	r := s.listen("")
	if f := s.outbox.Subscribers("call.quality"); !f[s.org] {
		t.Error("who follows is not known")
	}
	s.mu.Lock()
	s.invalid = errors.New("revoked")
	s.mu.Unlock()
	s.outbox.Bus.Publish("changed.keys", "digest")
	if e, err := r.read(); err == nil {
		t.Errorf("a stream without credential goes on with %s", e)
	}
	s.mu.Lock()
	s.invalid = nil
	s.mu.Unlock()
	r = s.listen("?events=call.ended,call.quality")
	s.stream.Close()
	if e, err := r.read(); err == nil {
		t.Errorf("a stream of a closed server goes on with %s", e)
	}
	if f := s.outbox.Subscribers("call.quality"); f != nil {
		t.Errorf("followed by %v after all have gone", f)
	}
	s.refused("", 503, "draining")
}

func TestList_WebhookEvents(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d)
		r := s.listen("?after_sequence=0")
		s.publish(missed(1))
		s.publish(event.CallHeld{CallID: "call_1"})
		s.must(d.Tx(ctx, func(tx db.Querier) error {
			return errors.Join(s.outbox.PublishTo(ctx, tx, s.org, event.AudienceImmediate, event.CallEnded{CallID: "call_2"}),
				s.outbox.PublishTo(ctx, tx, s.org, event.AudienceEnriched, event.CallEnded{CallID: "call_2", Enriched: true}))
		}))
		s.publish(missed(2))
		for range 4 { // numbered
			r.next()
		}
		api := optest.New(t, d, s.stream.Operations()...)
		list := func(query string) string {
			t.Helper()
			var all []string
			for _, x := range api.Do(optest.Admin(s.org), "GET", "/events"+query, nil).Want(200).Body["data"].([]any) {
				e := x.(map[string]any)
				all = append(all, fmt.Sprintf("%v %v", e["sequence"], e["kind"]))
			}
			return strings.Join(all, ", ")
		}
		for query, want := range map[string]string{"": "1 call.missed, 4 call.ended, 5 call.missed", "?after_sequence=4": "5 call.missed",
			"?call_id=call_2": "4 call.ended", "?kind=call.missed": "1 call.missed, 5 call.missed", "?until=2020-01-01": ""} {
			if got := list(query); got != want {
				t.Errorf("%s: got %s, want %s", query, got, want)
			}
		}
		page := api.Do(optest.Admin(s.org), "GET", "/events?limit=2&include_total=true", nil).Want(200)
		if got := list("?limit=2&cursor=" + page.Text("next_cursor")); got != "5 call.missed" || page.At("total") != 3.0 || page.At("data.0.data.wait_seconds") != 1.0 {
			t.Errorf("second page %s after %s", got, page.Bytes)
		}
		api.Do(optest.Admin(s.org), "GET", "/events?kind=nonsense", nil).Want(400)
	})
}

// It is not parallel to other tests, because it lowers a limit: 2000 streams would take minutes.
func TestStream_LimitPerOrganisation(t *testing.T) {
	most := &limit.EventStreamsOfOrganisation.Default
	defer func(was int64) { *most = was }(*most)
	*most = 20
	s := newFixture(t, dbtest.SQLite(t))
	s.refused("?events=call.nonsense", 400, "invalid_query")
	s.refused("?after_sequence=x", 400, "invalid_query")
	var all []*streamClient
	for range limit.EventStreamsOfCredential.Int() {
		all = append(all, s.listen(""))
	}
	s.refused("", 429, "concurrency_limit") // the places left are for the organisation's other credentials
	s.mu.Lock()
	s.principal.KeyID = "key_other"
	s.mu.Unlock()
	for range limit.EventStreamsOfOrganisation.Int() - len(all) {
		all = append(all, s.listen(""))
	}
	s.refused("", 429, "concurrency_limit")
	all[len(all)-1].body.Close()
	for { // the server notices at its next write
		a, err := http.Get(s.url)
		if errors.Is(err, io.EOF) {
			continue
		}
		s.must(err)
		a.Body.Close()
		if a.StatusCode == 200 {
			return
		}
	}
}

func TestStream_SlowClientClosed(t *testing.T) {
	t.Parallel()
	s := newFixture(t, dbtest.SQLite(t))
	r := s.listen("?after_sequence=0")
	text := strings.Repeat("x", 100_000)
	for range 200 { // more than the socket buffers hold
		s.publish(event.CallTranscription{CallID: "call_1", Text: &text})
	}
	seen := 0
	first := r.next() // reads on only after the server has given up
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		t.Fatal("the server writes on to a client that does not read")
	}
	for {
		if _, err := r.read(); err != nil {
			break
		}
		if seen++; seen > 198 {
			t.Fatal("a client that did not read got everything")
		}
	}
	id, _, _ := strings.Cut(first, " ")
	again := s.listen("", "Last-Event-ID: "+id)
	if e := again.next(); !strings.HasPrefix(e, "2 ") {
		t.Errorf("resumed with %.20s", e)
	}
}
