package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// refused wants a request to be refused as a destination that is not allowed, in words that name the foreign host.
func (o *office) refused(path string, body map[string]any) {
	o.T.Helper()
	var problem struct{ Code, Detail, Reason string }
	o.Want(422, "POST", path, body, &problem)
	if problem.Code != "destination_not_allowed" || problem.Reason != "foreign_host" || !strings.Contains(problem.Detail, "partner.example") {
		o.T.Errorf("POST %s %v: %+v", path, body, problem)
	}
}

// Who is called 101 elsewhere is not our 101; who is called so at any host by which phones know us is.
func TestASIPAddressElsewhereIsNotOneOfOurs(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--provision-host", "pbx.example.com"}}))
	at := func(u rig.User, host string) string { return "sip:" + u.Extension + "@" + host }
	foreign := at(o.bob, "partner.example")
	o.refused("/calls", map[string]any{"to": foreign, "user_id": o.ada.ID})
	o.refused("/calls", map[string]any{"to": "sips:+12025550143@partner.example", "user_id": o.ada.ID})
	o.refused("/callbacks", map[string]any{"to": foreign, "user_id": o.ada.ID})
	dave := o.AddUser("Dave")
	o.Want(422, "PATCH", "/users/"+dave.ID, forwards("always", foreign), nil)
	o.Want(200, "PATCH", "/users/"+dave.ID, forwards("busy", at(o.bob, o.Server.SIP)), nil)
	people := []rig.User{o.bob, o.carol, dave} // nobody is called twice in a second
	phones := []*rig.Phone{o.bobPhone, o.carolPhone, o.phone(dave, 700, rig.PhoneOptions{Auto: true})}
	for i, host := range []string{o.Server.SIP, o.ada.SIP.Domain, "PBX.example.com"} {
		next := (i + 1) % len(people)
		o.Want(201, "POST", "/calls", map[string]any{"to": at(people[i], host), "user_id": o.ada.ID}, nil)
		phones[i].Wait("CALL_ESTABLISHED", "")
		path := "/calls/" + o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
		o.refused(path+"/transfer", map[string]any{"to": at(people[next], "partner.example")})
		o.refused(path+"/participants", map[string]any{"to": at(people[next], "partner.example")})
		o.Want(200, "POST", path+"/transfer", map[string]any{"to": at(people[next], host)}, nil)
		phones[next].Wait("CALL_ESTABLISHED", "")
		o.Want(200, "POST", path+"/end", map[string]any{}, nil)
		phones[next].Wait("CALL_CLOSED", "")
	}
	for _, r := range o.records(3, "") { // nothing else was called
		if r.String() != "internal completed api api 0" {
			t.Errorf("record: %s", r)
		}
	}
}

// sent fails unless a telephone was sent the header fields with the INVITE it rings by.
func (r *ringing) sent(header map[string]string) {
	r.at.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if got := r.in.Header(name); got != header[name] {
			r.at.t.Errorf("%s was sent %s: %q, want %q", r.name(), name, got, header[name])
		}
	}
}

// The header fields of a call that a program places reach the user's own telephone, and whoever is called; so they do where the
// destination is led to, and where who answers is led to a queue.
func TestHeadersOfACallReachThePhonesAndTheDestination(t *testing.T) {
	t.Parallel()
	s := newSite(rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--media-timeout", "0"}}))
	rings := make(chan *ringing, 8)
	ada, bob, carol, dave := s.handset("Ada", rings), s.handset("Bob", rings), s.handset("Carol", rings), s.handset("Dave", rings)
	header := map[string]string{"X-Order": "4711; paid", "x-customer": "A-17"}
	next := func(want *handset) *ringing {
		t.Helper()
		var r *ringing
		select {
		case r = <-rings:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s's telephone does not ring", want.user.Name)
		}
		if r.at != want {
			t.Fatalf("%s's telephone rings; want %s's", r.name(), want.user.Name)
		}
		r.sent(header)
		return r
	}
	place := func(to rig.User, more map[string]any) {
		t.Helper()
		more["to"], more["headers"] = "ext:"+to.Extension, header
		s.Want(201, "POST", "/calls", more, nil)
	}
	over := func(rung ...*ringing) {
		t.Helper()
		path := "/calls/" + s.live(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
		s.Want(200, "POST", path+"/end", map[string]any{}, nil)
		for _, r := range rung {
			r.stops()
		}
	}
	answered := func(h *handset) *ringing {
		t.Helper()
		r := next(h)
		r.answer()
		return r
	}
	place(bob.user, map[string]any{"user_id": ada.user.ID})
	over(answered(ada), answered(bob))
	queue := s.addQueue(nil, carol.user)
	s.presence(carol.user, "available")
	place(dave.user, map[string]any{"queue_id": queue})
	over(answered(dave), answered(carol))
	erin := s.AddUser("Erin")
	s.Want(200, "PATCH", "/users/"+erin.ID, forwards("always", "user:"+bob.user.ID), nil)
	place(erin, map[string]any{"user_id": ada.user.ID})
	over(answered(ada), answered(bob))
}

// Of the telephones of a user only the one that is named rings.
func TestACallRingsOnlyTheDeviceThatIsNamed(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	desk, login := o.secondPhone(o.ada)
	tone, _ := tone(t, 700)
	deskPhone := o.Server.Phone(login, rig.PhoneOptions{Auto: true, Say: tone})
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.bob.Extension, "device_id": desk}, nil)
	deskPhone.Wait("CALL_ESTABLISHED", "")
	o.bobPhone.Wait("CALL_ESTABLISHED", "")
	id := o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
	o.talksWith("Bob", o.bobPhone, 700)
	if rung := o.devices(id, o.ada); len(rung) != 1 || rung[0] != desk {
		t.Errorf("of Ada's telephones %v rang, want only %s", rung, desk)
	}
	deskPhone.Do("hangup", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.carol.Extension, "user_id": o.ada.ID}, nil) // else both would
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	if rung := o.devices(o.live(nil)["id"].(string), o.ada); len(rung) != 2 {
		t.Errorf("of Ada's telephones %v rang, want both", rung)
	}
}

// devices are the telephones of a user that were rung in a call.
func (o *office) devices(callID string, u rig.User) (all []string) {
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

// talksWith fails unless a phone hears a tone now.
func (o *office) talksWith(who string, p ear, hz float64) {
	o.T.Helper()
	hears(o.T, who, p.Since(p.Mark(), 3*time.Second), hz, time.Second)
}
