package attack

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/platform/db/pgtest"
)

// stopStage is an organisation with a trunk for calls, one for emergency calls, and a carrier of messages.
type stopStage struct {
	*fixture.Org
	user     rig.User
	way      fixture.Carrier
	messages atomic.Int64 // that reached the carrier
}

const outsider = "+12125550142"

func newStopStage(t *testing.T, s *rig.Server) *stopStage {
	o := &stopStage{Org: fixture.NewOrg(s)}
	o.user = o.AddUser("Ada")
	o.way = o.AddCarrier(o.user.ID, nil)
	o.Want(200, "PATCH", "/numbers/"+o.NumberID(o.way), map[string]any{"sms_enabled": true}, nil)
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		o.messages.Add(1)
		fmt.Fprintf(w, `{"data":{"id":"m%d"}}`, o.messages.Load())
	}))
	t.Cleanup(vendor.Close)
	o.Want(201, "POST", "/sms/carriers", map[string]any{"provider": "telnyx", "name": "vendor",
		"settings": map[string]any{"api_key": "KEY0", "public_key": strings.Repeat("A", 43) + "=", "url": vendor.URL}}, nil)
	return o
}

// wantStopped tries every way to the outside that needs no answer of a person.
func (o *stopStage) wantStopped(when string) {
	o.T.Helper()
	for path, body := range map[string]map[string]any{"/sms": {"from": o.way.Number, "to": outsider, "body": "x"},
		"/calls": {"to": outsider, "flow_id": o.AddFlow(fixture.Node("bye", "hangup", nil))}} {
		if r := o.Do("POST", path, body); r.Status != 422 || r.JSON()["code"] != "destination_not_allowed" || !strings.Contains(string(r.Body), "stopped") {
			o.T.Errorf("%s: POST %s: %d %s", when, path, r.Status, r.Body)
		}
	}
	o.Server.Sipp(rig.Script{Scenario: "call_refused", Status: 403, Login: &o.user.SIP, Number: outsider}).Wait()
}

// TestOutboundStop_SurvivesCrashAndHoldsWhatWasQueued covers a stop of outbound calls over a crash. A scheduled message that was
// queued before is not sent, and a due callback fails. Emergency calls are connected.
func TestOutboundStop_SurvivesCrashAndHoldsWhatWasQueued(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 75*time.Second, "waits until a message that was held is tried again")
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	o := newStopStage(t, s)
	at := time.Now().Add(3 * time.Second)
	var held struct{ ID, Status string }
	o.Want(201, "POST", "/sms", map[string]any{"from": o.way.Number, "to": outsider, "body": "later", "send_at": at.UTC().Format(time.RFC3339Nano)}, &held)
	var callback struct{ ID, Status string }
	o.Want(201, "POST", "/callbacks", map[string]any{"to": outsider, "user_id": o.user.ID, "max_attempts": 1,
		"scheduled_at": at.UTC().Format(time.RFC3339Nano)}, &callback)
	s.Command("admin", "outbound", "stop")
	o.wantStopped("after the stop")
	s.Kill()
	s.Start()
	if said := s.Command("admin", "outbound", "status"); !strings.Contains(said, "stopped") {
		t.Errorf("after a crash: %s", said)
	}
	o.wantStopped("after a crash")
	way := o.AddCarrier("", map[string]any{"emergency_capable": true})
	help := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
	s.Sipp(rig.Script{Scenario: "call", Login: &o.user.SIP, Number: "911", Talk: 300 * time.Millisecond}).Wait()
	help.Wait()
	rig.Until(t, "the message is due", 20*time.Second, func() bool {
		o.Want(200, "GET", "/sms/"+held.ID, nil, &held)
		return held.Status != "scheduled"
	})
	rig.Until(t, "the callback is over", 30*time.Second, func() bool {
		o.Want(200, "GET", "/callbacks/"+callback.ID, nil, &callback)
		return callback.Status == "failed"
	})
	if held.Status != "queued" || o.messages.Load() != 0 {
		t.Errorf("the message is %s, and the carrier got %d", held.Status, o.messages.Load())
	}
	s.Command("admin", "outbound", "start")
	rig.Until(t, "the message that was held", 30*time.Second, func() bool {
		o.Want(200, "GET", "/sms/"+held.ID, nil, &held)
		return held.Status == "sent"
	})
	if o.messages.Load() != 1 {
		t.Errorf("the carrier got %d messages", o.messages.Load())
	}
}

// secondNode starts another node on the database of the first, with the same master key.
func secondNode(t *testing.T, first *rig.Server) *rig.Server {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(first.Data, "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "master.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	return rig.Start(t, rig.Options{Data: dir, DB: first.DB, Env: fixture.NoSpeech})
}

// A stop on one node holds on every node of the database within seconds, and so does its end.
func TestOutboundStop_SecondNode(t *testing.T) {
	t.Parallel()
	address := os.Getenv("SONIQ_TEST_POSTGRES")
	if address == "" {
		t.Skip("SONIQ_TEST_POSTGRES names no PostgreSQL")
	}
	s := rig.Start(t, rig.Options{DB: pgtest.New(t, address), Env: fixture.NoSpeech})
	o := newStopStage(t, s)
	there := *o.Client
	there.Server = secondNode(t, s)
	message := func() rig.Response {
		return there.Do("POST", "/sms", map[string]any{"from": o.way.Number, "to": outsider, "body": "x"})
	}
	if r := message(); r.Status != 201 {
		t.Fatalf("before the stop: %d %s", r.Status, r.Body)
	}
	s.Command("admin", "outbound", "stop")
	rig.Until(t, "the second node refuses", 10*time.Second, func() bool { return message().Status == 422 })
	s.Command("admin", "outbound", "start")
	rig.Until(t, "the second node accepts", 10*time.Second, func() bool { return message().Status == 201 })
}
