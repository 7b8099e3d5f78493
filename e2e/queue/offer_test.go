package queue

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestOffer_RefusalGoesToNextAgent proves that a caller refused by an agent keeps the place in the queue and is
// offered to another agent.
func TestOffer_RefusalGoesToNextAgent(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Ada, o.Carol = o.AddUser("Ada"), o.AddUser("Carol")
		o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
		o.CarolPhone = o.Phone(o.Carol, fixture.CarolTone, rig.PhoneOptions{})
		id := o.AddQueue(map[string]any{"strategy": "priority", "missed_offers_limit": 1, "missed_offers_pause_seconds": 4}, o.Ada, o.Carol)
		o.Want(200, "PATCH", "/queues/"+id+"/members/"+o.Ada.ID, map[string]any{"priority": 1}, nil)
		way := addQueueCarrier(o.Org, id)
		v := o.CallIn(way, "+12125550111")
		o.AdaPhone.Wait("CALL_INCOMING", "")
		first := o.WaitQueueEntry(id, "offering")
		o.AdaPhone.Do("hangup", "")
		o.CarolPhone.Wait("CALL_INCOMING", "")
		if e := o.QueueEntries(id); len(e) != 1 || e[0].ID != first.ID || e[0].Position != 1 || e[0].Offers != 2 {
			t.Errorf("offered again: %+v, first %+v", e, first)
		}
		var a struct {
			Presence struct{ Status, Reason string }
		}
		rig.Until(t, "who refused is away", 3*time.Second, func() bool {
			o.Want(200, "GET", "/agents/"+o.Ada.ID, nil, &a)
			return a.Presence.Status == "away" && a.Presence.Reason == "missed_offers"
		})
		mark := v.Mark()
		o.CarolPhone.Do("accept", "")
		v.WaitTone(mark, fixture.CarolTone)
		o.WaitPresence(o.Ada, "available")
		o.CarolPhone.Do("hangup", "")
		v.WaitEnd()
		if r := queueRecordOf(o.Org, "+12125550111"); r.Status != "completed" || len(r.Offered) != 2 || r.Offered[0].Result != "rejected" || r.Offered[1].Result != "answered" {
			t.Errorf("record %+v", r)
		}
	})
}

// TestAbandon_CallMissed checks the records of a caller who hangs up while an agent's phone rings.
func TestAbandon_CallMissed(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
	o.Ada = o.AddUser("Ada")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
	id := o.AddQueue(map[string]any{"short_abandon_seconds": 0}, o.Ada)
	v := o.CallIn(addQueueCarrier(o.Org, id), "+12125550111")
	o.AdaPhone.Wait("CALL_INCOMING", "")
	v.Line.HangUp()
	o.AdaPhone.Wait("CALL_CLOSED", "")
	o.WaitQueueEntry(id, "abandoned")
	o.WaitPresence(o.Ada, "available")
	if r := queueRecordOf(o.Org, "+12125550111"); r.Status != "missed" || r.missed() != "abandoned_in_queue" || r.EndReason != "caller_hangup" || r.results()[0] != "canceled" {
		t.Errorf("record %+v", r)
	}
	if f := figuresOf(o.Org, id); f.Today.Abandoned != 1 || f.Waiting != 0 {
		t.Errorf("figures %+v", f)
	}
}

// TestOffer_AgentWithdraws proves that the phone of an agent who takes no calls any more stops ringing at once. The next agent rings, and
// no miss is counted.
//
// https://github.com/signalwire/freeswitch/pull/800
func TestOffer_AgentWithdraws(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	for name, withdraw := range map[string]func(o *fixture.Office, id string){
		"Away": func(o *fixture.Office, _ string) { o.SetPresence(o.Ada, "away") },
		"DND": func(o *fixture.Office, _ string) {
			o.Want(200, "PUT", "/users/"+o.Ada.ID+"/dnd", map[string]any{"enabled": true}, nil)
		},
		"Paused": func(o *fixture.Office, id string) {
			o.Want(200, "PUT", "/agents/"+o.Ada.ID+"/queues/"+id, map[string]any{"signed_in": true, "paused": true}, nil)
		},
		"SignedOut": func(o *fixture.Office, id string) {
			o.Want(200, "PUT", "/agents/"+o.Ada.ID+"/queues/"+id, map[string]any{"signed_in": false}, nil)
		},
		"MemberRemoved": func(o *fixture.Office, id string) {
			o.Want(204, "DELETE", "/queues/"+id+"/members/"+o.Ada.ID, nil, nil)
		},
		"Suspended": func(o *fixture.Office, _ string) {
			o.Want(200, "PATCH", "/users/"+o.Ada.ID, map[string]any{"status": "suspended"}, nil)
		},
		"DeviceRemoved": func(o *fixture.Office, _ string) {
			var page struct{ Data []struct{ ID string } }
			o.Want(200, "GET", "/devices?user_id="+o.Ada.ID, nil, &page)
			o.Want(204, "DELETE", "/devices/"+page.Data[0].ID, nil, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &fixture.Office{Org: fixture.NewOrg(s)}
			o.Ada, o.Carol = o.AddUser("Ada"), o.AddUser("Carol")
			o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
			o.CarolPhone = o.Phone(o.Carol, fixture.CarolTone, rig.PhoneOptions{})
			id := o.AddQueue(map[string]any{"strategy": "priority", "ring_timeout_seconds": 60, "missed_offers_limit": 1}, o.Ada, o.Carol)
			o.Want(200, "PATCH", "/queues/"+id+"/members/"+o.Ada.ID, map[string]any{"priority": 1}, nil)
			v := o.CallIn(addQueueCarrier(o.Org, id), "+12125550111")
			o.AdaPhone.Wait("CALL_INCOMING", "")
			withdraw(o, id)
			asked := time.Now()
			o.AdaPhone.Wait("CALL_CLOSED", "")
			if took := time.Since(asked); took > promptly() {
				t.Errorf("the phone rang for another %s", took)
			}
			o.CarolPhone.Wait("CALL_INCOMING", "")
			o.CarolPhone.Do("accept", "")
			o.WaitQueueEntry(id, "connected")
			o.CarolPhone.Do("hangup", "")
			v.WaitEnd()
			if r := queueRecordOf(o.Org, "+12125550111"); len(r.Offered) != 2 || r.Offered[0].Result != "canceled" || r.Offered[1].Result != "answered" {
				t.Errorf("record %+v", r)
			}
			var a struct {
				Presence struct{ Reason string }
				Today    struct{ Missed int }
			}
			o.Want(200, "GET", "/agents/"+o.Ada.ID, nil, &a)
			if a.Today.Missed != 0 || a.Presence.Reason == "missed_offers" {
				t.Errorf("a miss is counted: %+v", a)
			}
		})
	}
}
