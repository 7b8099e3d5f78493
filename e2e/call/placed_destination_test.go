package call

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// wantDestinationRefused fails unless a request is refused because of its destination, with the foreign host in the message.
func wantDestinationRefused(o *fixture.Office, path string, body map[string]any) {
	o.T.Helper()
	var problem struct{ Code, Detail, Reason string }
	o.Want(422, "POST", path, body, &problem)
	if problem.Code != "destination_not_allowed" || problem.Reason != "foreign_host" || !strings.Contains(problem.Detail, "partner.example") {
		o.T.Errorf("POST %s %v: %+v", path, body, problem)
	}
}

// TestPlacedCall_ForeignSIPAddress proves that sip:101@host rings extension 101 only if phones use that host for the
// server.
func TestPlacedCall_ForeignSIPAddress(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--provision-host", "pbx.example.com"}}))
	at := func(u rig.User, host string) string { return "sip:" + u.Extension + "@" + host }
	foreign := at(o.Bob, "partner.example")
	wantDestinationRefused(o, "/calls", map[string]any{"to": foreign, "user_id": o.Ada.ID})
	wantDestinationRefused(o, "/calls", map[string]any{"to": "sips:+12025550143@partner.example", "user_id": o.Ada.ID})
	wantDestinationRefused(o, "/callbacks", map[string]any{"to": foreign, "user_id": o.Ada.ID})
	dave := o.AddUser("Dave")
	o.Want(422, "PATCH", "/users/"+dave.ID, fixture.Forwarding("always", foreign), nil)
	o.Want(200, "PATCH", "/users/"+dave.ID, fixture.Forwarding("busy", at(o.Bob, o.Server.SIP)), nil)
	people := []rig.User{o.Bob, o.Carol, dave} // no user is called twice within a second
	phones := []*rig.Phone{o.BobPhone, o.CarolPhone, o.Phone(dave, 700, rig.PhoneOptions{Auto: true})}
	for i, host := range []string{o.Server.SIP, o.Ada.SIP.Domain, "PBX.example.com"} {
		next := (i + 1) % len(people)
		o.Want(201, "POST", "/calls", map[string]any{"to": at(people[i], host), "user_id": o.Ada.ID}, nil)
		phones[i].Wait("CALL_ESTABLISHED", "")
		path := "/calls/" + o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
		wantDestinationRefused(o, path+"/transfer", map[string]any{"to": at(people[next], "partner.example")})
		wantDestinationRefused(o, path+"/participants", map[string]any{"to": at(people[next], "partner.example")})
		o.Want(200, "POST", path+"/transfer", map[string]any{"to": at(people[next], host)}, nil)
		phones[next].Wait("CALL_ESTABLISHED", "")
		o.Want(200, "POST", path+"/end", map[string]any{}, nil)
		phones[next].Wait("CALL_CLOSED", "")
	}
	for _, r := range o.CDRs(3, "") { // nothing else was called
		if r.String() != "internal completed api api 0" {
			t.Errorf("record: %s", r)
		}
	}
}

// wantHeaders fails unless the INVITE to a telephone has these header fields.
func wantHeaders(r *fixture.IncomingCall, header map[string]string) {
	r.Handset.T.Helper()
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if got := r.Inbound.Header(name); got != header[name] {
			r.Handset.T.Errorf("%s was sent %s: %q, want %q", r.UserName(), name, got, header[name])
		}
	}
}

// TestPlacedCall_CustomHeaders proves that the headers of POST /calls are in the INVITEs to the user's phone and to the destination. That
// holds also if a flow or a queue leads to the destination.
func TestPlacedCall_CustomHeaders(t *testing.T) {
	t.Parallel()
	s := fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}}))
	rings := make(chan *fixture.IncomingCall, 8)
	ada, bob, carol, dave := s.AddHandset("Ada", rings), s.AddHandset("Bob", rings), s.AddHandset("Carol", rings), s.AddHandset("Dave", rings)
	header := map[string]string{"X-Order": "4711; paid", "x-customer": "A-17"}
	next := func(want *fixture.Handset) *fixture.IncomingCall {
		t.Helper()
		var r *fixture.IncomingCall
		select {
		case r = <-rings:
		case <-time.After(limit.Hang(0)):
			t.Fatalf("%s's telephone does not ring", want.User.Name)
		}
		if r.Handset != want {
			t.Fatalf("%s's telephone rings; want %s's", r.UserName(), want.User.Name)
		}
		wantHeaders(r, header)
		return r
	}
	place := func(to rig.User, more map[string]any) {
		t.Helper()
		more["to"], more["headers"] = "ext:"+to.Extension, header
		s.Want(201, "POST", "/calls", more, nil)
	}
	over := func(rung ...*fixture.IncomingCall) {
		t.Helper()
		path := "/calls/" + s.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
		s.Want(200, "POST", path+"/end", map[string]any{}, nil)
		for _, r := range rung {
			r.WaitStopped()
		}
	}
	answered := func(h *fixture.Handset) *fixture.IncomingCall {
		t.Helper()
		r := next(h)
		r.Answer()
		return r
	}
	place(bob.User, map[string]any{"user_id": ada.User.ID})
	over(answered(ada), answered(bob))
	queue := s.AddQueue(nil, carol.User)
	s.SetPresence(carol.User, "available")
	place(dave.User, map[string]any{"queue_id": queue})
	over(answered(dave), answered(carol))
	erin := s.AddUser("Erin")
	s.Want(200, "PATCH", "/users/"+erin.ID, fixture.Forwarding("always", "user:"+bob.User.ID), nil)
	place(erin, map[string]any{"user_id": ada.User.ID})
	over(answered(ada), answered(bob))
}

// Only the named telephone of a user rings.
func TestPlacedCall_NamedDevice(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	desk, login := o.AddDevice(o.Ada)
	tone, _ := fixture.Tone(t, 700)
	deskPhone := o.Server.Phone(login, rig.PhoneOptions{Auto: true, Say: tone})
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Bob.Extension, "device_id": desk}, nil)
	deskPhone.Wait("CALL_ESTABLISHED", "")
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	id := o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
	wantHears(o, "Bob", o.BobPhone, 700)
	if rung := rungDevices(o, id, o.Ada); len(rung) != 1 || rung[0] != desk {
		t.Errorf("of Ada's telephones %v rang, want only %s", rung, desk)
	}
	deskPhone.Do("hangup", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Carol.Extension, "user_id": o.Ada.ID}, nil) // without a named device both would ring
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	if rung := rungDevices(o, o.LiveCall(nil)["id"].(string), o.Ada); len(rung) != 2 {
		t.Errorf("of Ada's telephones %v rang, want both", rung)
	}
}

// rungDevices returns the devices of a user that rang in a call.
func rungDevices(o *fixture.Office, callID string, u rig.User) (all []string) {
	o.T.Helper()
	var c struct {
		Legs []struct {
			User   string `json:"user_id"`
			Device string `json:"device_id"`
		}
	}
	o.Want(200, "GET", "/calls/"+callID+"?expand=legs", nil, &c)
	for _, l := range c.Legs {
		if l.User == u.ID {
			all = append(all, l.Device)
		}
	}
	return all
}

// wantHears fails unless a phone receives a tone now.
func wantHears(o *fixture.Office, who string, p fixture.Listener, hz float64) {
	o.T.Helper()
	fixture.Hears(o.T, who, p.Since(p.Mark(), 3*time.Second), hz, time.Second)
}
