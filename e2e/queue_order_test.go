package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// An order is a queue whose agents' telephones tell the test in which order they ring.
type order struct {
	*site
	queue  string
	rings  chan *ringing
	caller *handset
	agents map[string]*handset // by name
}

func newOrder(s *rig.Server, agents ...string) *order {
	o := &order{site: newSite(s), rings: make(chan *ringing, 100), agents: map[string]*handset{}}
	o.queue = o.addQueue(map[string]any{"extension": "600", "wrap_up_seconds": 0, "missed_offers_limit": 0, "retry_delay_seconds": 0, "ring_timeout_seconds": 60})
	for _, name := range agents {
		h := o.handset(name, o.rings)
		o.agents[h.user.Name] = h
		o.Want(201, "POST", "/queues/"+o.queue+"/members", map[string]any{"user_id": h.user.ID}, nil)
	}
	o.caller = o.handset("Zoe", o.rings)
	return o
}

func (o *order) strategy(name string, more map[string]any) {
	o.T.Helper()
	body := map[string]any{"strategy": name}
	for k, v := range more {
		body[k] = v
	}
	o.Want(200, "PATCH", "/queues/"+o.queue, body, nil)
}

func (o *order) member(name string, settings map[string]any) {
	o.T.Helper()
	o.Want(200, "PATCH", "/queues/"+o.queue+"/members/"+o.agents[name].user.ID, settings, nil)
}

// next waits for the next telephone that rings.
func (o *order) next() *ringing {
	o.T.Helper()
	return nextRinging(o.T, o.rings)
}

// idle waits until nobody waits and all agents are free.
func (o *order) idle() {
	o.T.Helper()
	rig.Until(o.T, "everybody is free", 30*time.Second, func() bool {
		f := o.figures(o.queue)
		return f.Waiting == 0 && f.Agents.Available == len(o.agents)
	})
}

// asked lets n agents refuse a caller, and tells who was asked, in order.
func (o *order) asked(n int) string {
	o.T.Helper()
	o.idle()
	call := o.caller.dial("600").is()
	var names []string
	for range n {
		r := o.next()
		names = append(names, r.name())
		if len(names) < n {
			r.refuse()
			continue
		}
		call.hangUp()
		r.stops()
	}
	return strings.Join(names, " ")
}

// served lets whoever is asked first answer a caller, and tells who it was. Where a name is given, others refuse.
func (o *order) served(by string) string {
	o.T.Helper()
	o.idle()
	call := o.caller.dial("600").is()
	for {
		r := o.next()
		if by != "" && r.name() != by {
			r.refuse()
			continue
		}
		r.answer()
		o.is(r.at.user, "busy")
		call.hangUp()
		r.stops()
		o.is(r.at.user, "available")
		return r.name()
	}
}

// TestEachStrategyAsksAgentsInItsOrder watches telephones ring for callers of one queue, by one strategy after the other.
func TestEachStrategyAsksAgentsInItsOrder(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet, Flags: []string{"--media-timeout", "0"}}, func(t *testing.T, s *rig.Server) {
		o := newOrder(s, "Ada", "Bob", "Cyd")
		order := func(strategy, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s asks %s; want %s", strategy, got, want)
			}
		}
		for _, name := range []string{"Ada", "Ada", "Bob"} {
			o.served(name)
		}
		order("longest_idle", o.asked(3), "Cyd Ada Bob")
		o.strategy("fewest_calls", nil)
		order("fewest_calls", o.asked(3), "Cyd Bob Ada")
		o.strategy("round_robin", nil)
		var turns []string
		for range 4 {
			turns = append(turns, o.served(""))
		}
		order("round_robin", strings.Join(turns, " "), "Cyd Bob Ada Cyd")
		for name, priority := range map[string]int{"Bob": 1, "Ada": 2, "Cyd": 3} {
			o.member(name, map[string]any{"priority": priority})
		}
		o.strategy("priority", nil)
		order("priority", o.asked(3), "Bob Ada Cyd")
		o.member("Ada", map[string]any{"skills": map[string]any{"billing": 9}})
		o.member("Cyd", map[string]any{"skills": map[string]any{"billing": 3}})
		o.strategy("skills", map[string]any{"required_skills": map[string]any{"billing": 1}})
		order("skills", o.asked(3), "Ada Cyd Ada") // Bob has none
		o.strategy("random", map[string]any{"required_skills": map[string]any{}})
		o.random()
		o.strategy("ring_all", nil)
		o.all()
	})
}

// random has callers ask until two different agents were asked first.
func (o *order) random() {
	o.T.Helper()
	first := o.asked(1)
	for range 30 {
		if o.asked(1) != first {
			return
		}
	}
	o.T.Errorf("random asked %s first 31 times", first)
}

// all rings everybody at once; who answers has the caller, and the others' telephones stop.
func (o *order) all() {
	o.T.Helper()
	o.idle()
	call := o.caller.dial("600").is()
	all := []*ringing{o.next(), o.next(), o.next()}
	slices.SortFunc(all, func(a, b *ringing) int { return strings.Compare(a.name(), b.name()) })
	if all[0].name() != "Ada" || all[1].name() != "Bob" || all[2].name() != "Cyd" {
		o.T.Errorf("ring_all rings %s, %s and %s", all[0].name(), all[1].name(), all[2].name())
	}
	all[1].answer()
	all[0].stops()
	all[2].stops()
	o.is(all[1].at.user, "busy")
	call.hangUp()
	all[1].stops()
}
