package command_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/sandbox/softphone"
)

// office is an organisation with two users and a receiver of its events.
type office struct {
	*rig.Client
	hooks    *rig.Receiver
	ada, bob rig.User
	port     int    // of Bob's telephone
	voice    string // audio of Ada, raw mu-law; "" for none
}

func newOffice(t *testing.T, s *rig.Server) *office {
	t.Helper()
	c := s.Org("live")
	o := &office{Client: c, hooks: c.Hook(nil), ada: c.AddUser("Ada"), bob: c.AddUser("Bob")}
	registration := s.Sipp(rig.Script{Scenario: "register", Login: &o.bob.SIP})
	registration.Wait()
	o.port = registration.Port
	return o
}

// call connects Ada and Bob for a time. It returns when the call is answered.
func (o *office) call(talk time.Duration) (caller, callee *rig.Sipp) {
	o.T.Helper()
	caller, callee = o.ring(talk)
	rig.Until(o.T, "call in progress", 20*time.Second, func() bool { return len(o.live()) == 1 })
	return caller, callee
}

// ring makes Ada call Bob, who will answer.
func (o *office) ring(talk time.Duration) (caller, callee *rig.Sipp) {
	o.T.Helper()
	callee = o.Server.Sipp(rig.Script{Scenario: "answer", Port: o.port, Limit: talk + time.Minute})
	caller = o.Server.Sipp(rig.Script{Scenario: "call", Login: &o.ada.SIP, Number: o.bob.Extension, Talk: talk, Play: o.voice,
		Limit: talk + time.Minute})
	return caller, callee
}

// live returns the answered calls in progress.
func (o *office) live() (ids []string) {
	o.T.Helper()
	var snapshot struct{ Data []struct{ ID, Status string } }
	o.Want(200, "GET", "/calls/live", nil, &snapshot)
	for _, c := range snapshot.Data {
		if c.Status == "in_progress" {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// talk makes a call of a length, and returns its id after its last event.
func (o *office) talk(d time.Duration) string {
	o.T.Helper()
	known := len(o.ended())
	caller, callee := o.ring(d)
	caller.Wait()
	callee.Wait()
	rig.Until(o.T, "end of the call", time.Minute, func() bool { return len(o.ended()) > known })
	return o.ended()[known]
}

// ended returns the calls with a call.ended event.
func (o *office) ended() (ids []string) {
	for _, e := range o.hooks.Events() {
		if e.Event == "call.ended" {
			ids = append(ids, e.Data["call_id"].(string))
		}
	}
	return ids
}

// speech writes a sentence as audio for telephones.
func speech(t *testing.T) string {
	t.Helper()
	all, err := softphone.Conversation()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "voice.ulaw")
	if err := os.WriteFile(path, codec.EncodeULaw(nil, all[0].PCM), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
