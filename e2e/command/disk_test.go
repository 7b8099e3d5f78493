package command_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// callOnFullDisk is the length of the call, longer than the checks on the full disk take.
const callOnFullDisk = 15 * time.Second

// TestDisk_FullLosesNothing fills the disk under a server. Writes are refused with 503 and have no effect, /ready is 503, and a call
// in progress continues and can end. Once there is space again, everything is stored and published, and the recording says that audio is
// missing.
//
// https://github.com/getnora-io/nora/issues/629, https://github.com/rustfs/rustfs/issues/2658,
// https://github.com/fastlabel/open-lutra/pull/73
func TestDisk_FullLosesNothing(t *testing.T) {
	disk := fixture.SmallDisk(t, 48)
	data := filepath.Join(disk, "data")
	s := rig.Start(t, rig.Options{Data: data, Flags: []string{"--transcriber", "off"}, Upset: true})
	o := newOffice(t, s)
	acknowledged := o.AddUser("Before")
	caller, callee := o.call(callOnFullDisk)
	call := o.live()[0]
	<-time.After(2500 * time.Millisecond) // of the call are recorded

	free := fixture.FillDisk(t, disk)
	refused, left := refusedWrites(t, o)
	reads(t, o)
	if status, reason := ready(t, s); status != 503 || !strings.Contains(reason, "disk") {
		t.Errorf("/ready on a full disk: %d %s", status, reason)
	}
	caller.Wait() // it hangs up while the disk is full
	callee.Wait()
	newCallsAreRefused(t, o)
	if strings.Contains(s.Log(), "end written after all") {
		t.Error("the end was written on a full disk: this test proves nothing")
	}
	free()

	ended := o.hooks.Wait("call.ended", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == call })
	if ended.Data["end_reason"] != "caller_hangup" || ended.Data["talk_duration_seconds"].(float64) < 5 {
		t.Errorf("call.ended: %s", ended.Body)
	}
	says(t, s.Log(), "end written after all")
	wholeAudio(t, o, call)
	rig.Until(t, "/ready to answer 200 again", time.Minute, func() bool {
		status, _ := ready(t, s)
		return status == 200
	})
	for _, id := range left {
		o.Want(204, "DELETE", "/users/"+id, nil, nil)
	}
	for email := range refused {
		if err := add(o, email, refused[email]); err != nil {
			t.Errorf("after the disk has space again: %v", err)
		}
	}
	people := users(t, o)
	for _, email := range append([]string{"before@example.com"}, keys(refused)...) {
		if people[email] != 1 {
			t.Errorf("%s is there %d times", email, people[email])
		}
	}
	if len(people) != 3+len(refused) {
		t.Errorf("%d users: %v", len(people), people)
	}
	o.Want(200, "GET", "/users/"+acknowledged.ID, nil, nil)
	if next := o.talk(300 * time.Millisecond); next == call {
		t.Error("no new call")
	}
}

// ready returns the answer of /ready.
func ready(t *testing.T, s *rig.Server) (status int, body string) {
	t.Helper()
	r, err := http.Get("http://" + s.HTTP + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

func keys(m map[string]string) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

// add adds a user with a key. It returns the response as an error unless the status is 201.
func add(o *office, email, key string) error {
	r := o.Do("POST", "/users", map[string]any{"email": email, "first_name": "Full", "provision_sip": false}, "Idempotency-Key", key)
	if r.Status != 201 {
		return fmt.Errorf("%d %s (Retry-After %q)", r.Status, r.Body, r.Header.Get("Retry-After"))
	}
	return nil
}

// refusedWrites adds users until the server refuses five for lack of space. It returns those refused, with their
// keys.
func refusedWrites(t *testing.T, o *office) (refused map[string]string, left []string) {
	t.Helper()
	refused = map[string]string{}
	for n := 0; len(refused) < 5; n++ {
		if n > 2000 {
			t.Fatal("writes go on although the disk is full")
		}
		email := fmt.Sprintf("full%d@example.org", n)
		r := o.Do("POST", "/users", map[string]any{"email": email, "first_name": "Full", "provision_sip": false}, "Idempotency-Key", email)
		if r.Status == 201 { // a database page had free space
			if id := r.JSON()["id"].(string); o.Do("DELETE", "/users/"+id, nil).Status != 204 { // the user used that space up
				left = append(left, id)
			}
			continue
		}
		refused[email] = email
		if p := r.JSON(); r.Status != 503 || p["code"] != "overloaded" || r.Header.Get("Retry-After") == "" || !strings.Contains(fmt.Sprint(p["detail"]), "disk is full") {
			t.Errorf("a write on a full disk: %d %s", r.Status, r.Body)
		}
	}
	return refused, left
}

// reads checks that reads still succeed.
func reads(t *testing.T, o *office) {
	t.Helper()
	for _, path := range []string{"/users", "/calls", "/cdr", "/webhooks", "/me"} {
		if r := o.Do("GET", path, nil); r.Status != 200 {
			t.Errorf("GET %s on a full disk: %d %s", path, r.Status, r.Body)
		}
	}
	if len(o.live()) != 1 {
		t.Error("the call in progress is gone")
	}
}

// newCallsAreRefused checks that the server refuses a call that it cannot store.
func newCallsAreRefused(t *testing.T, o *office) {
	t.Helper()
	for range 5 { // one may be accepted: when the write-ahead log restarts, it has space for a few writes
		callee := o.Server.Sipp(rig.Script{Scenario: "cancelled", Port: o.port, Limit: 20 * time.Second, Quiet: true})
		err := o.Server.Sipp(rig.Script{Scenario: "call_refused", Login: &o.ada.SIP, Number: o.bob.Extension, Status: 503,
			Limit: 15 * time.Second, Quiet: true}).End()
		_ = callee.End()
		if err == nil {
			return
		}
	}
	t.Error("new calls are not refused")
}

// wholeAudio waits for the recording: it contains the audio from before the disk was full, and the file is complete.
func wholeAudio(t *testing.T, o *office, call string) {
	t.Helper()
	told := o.hooks.Wait("call.recording", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == call })
	if told.Data["status"] != "available" {
		t.Errorf("recording: %s", told.Body)
		return
	}
	var record map[string]any
	o.Want(200, "GET", "/recordings/"+told.Data["recording_id"].(string), nil, &record)
	for where, r := range map[string]map[string]any{"event": told.Data, "API": record} {
		fault, _ := r["error"].(map[string]any)
		if missing, _ := r["missing_seconds"].(float64); r["truncated"] != true || missing < 1 || missing > callOnFullDisk.Seconds() ||
			!strings.Contains(fmt.Sprint(fault["message"]), "disk is full") {
			t.Errorf("the %s does not say what is missing: %v", where, r)
		}
	}
	r := o.Do("GET", "/recordings/"+told.Data["recording_id"].(string)+"/audio", nil)
	if r.Status != 200 || !bytes.HasPrefix(r.Body, []byte("RIFF")) || len(r.Body) < 2*2*8000 {
		t.Errorf("audio: %d with %d bytes", r.Status, len(r.Body))
	}
}

func users(t *testing.T, o *office) map[string]int {
	t.Helper()
	var page struct{ Data []struct{ Email string } }
	o.Want(200, "GET", "/users?limit=200", nil, &page)
	count := map[string]int{}
	for _, u := range page.Data {
		count[u.Email]++
	}
	return count
}
