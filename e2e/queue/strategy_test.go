package queue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// setStrategy sets the strategy of the queue.
func (o *team) setStrategy(name string, more map[string]any) {
	o.T.Helper()
	body := map[string]any{"strategy": name}
	for k, v := range more {
		body[k] = v
	}
	o.Want(200, "PATCH", "/queues/"+o.queue, body, nil)
}

// setMember changes the settings of an agent in the queue.
func (o *team) setMember(name string, settings map[string]any) {
	o.T.Helper()
	o.Want(200, "PATCH", "/queues/"+o.queue+"/members/"+o.agents[name].User.ID, settings, nil)
}

// waitNoneWaiting waits until no caller waits for an agent.
func (o *team) waitNoneWaiting() {
	o.T.Helper()
	rig.Until(o.T, "no caller to wait", 30*time.Second, func() bool { return figuresOf(o.Org, o.queue).Waiting == 0 })
}

// waitIdle waits until no caller waits and all agents are free.
func (o *team) waitIdle() {
	o.T.Helper()
	rig.Until(o.T, "everybody is free", 30*time.Second, func() bool {
		f := figuresOf(o.Org, o.queue)
		return f.Waiting == 0 && f.Agents.Available == len(o.agents)
	})
}

// refusals lets n agents refuse a caller, and returns their names in order.
func (o *team) refusals(n int) string {
	o.T.Helper()
	o.waitIdle()
	call := o.caller.Dial("600").WaitAnswered()
	var names []string
	for range n {
		r := o.next()
		names = append(names, r.UserName())
		if len(names) < n {
			r.Refuse()
			continue
		}
		call.HangUp()
		r.WaitStopped()
	}
	return strings.Join(names, " ")
}

// serve lets the first agent that rings answer a caller, and returns the name. If a name is given, other agents
// refuse.
func (o *team) serve(by string) string {
	o.T.Helper()
	o.waitIdle()
	call := o.caller.Dial("600").WaitAnswered()
	for {
		r := o.next()
		if by != "" && r.UserName() != by {
			r.Refuse()
			continue
		}
		r.Answer()
		o.WaitPresence(r.Handset.User, "busy")
		o.waitNoneWaiting() // the queue records the answer after the agent's leg was answered
		call.HangUp()
		r.WaitStopped()
		o.WaitPresence(r.Handset.User, "available")
		return r.UserName()
	}
}

// TestStrategy_AgentOrder checks the order in which telephones ring for callers of one queue, for one strategy after
// the other.
func TestStrategy_AgentOrder(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}}, func(t *testing.T, s *rig.Server) {
		o := newTeam(s, "Ada", "Bob", "Cyd")
		order := func(strategy, got, want string) {
			t.Helper()
			if got != want {
				var members any
				o.Want(200, "GET", "/queues/"+o.queue+"/members", nil, &members)
				t.Errorf("%s asks %s; want %s; the members are %v", strategy, got, want, members)
			}
		}
		for _, name := range []string{"Ada", "Ada", "Bob"} {
			o.serve(name)
		}
		order("longest_idle", o.refusals(3), "Cyd Ada Bob")
		o.setStrategy("fewest_calls", nil)
		order("fewest_calls", o.refusals(3), "Cyd Bob Ada")
		o.setStrategy("round_robin", nil)
		var turns []string
		for range 4 {
			turns = append(turns, o.serve(""))
		}
		order("round_robin", strings.Join(turns, " "), "Cyd Bob Ada Cyd")
		for name, priority := range map[string]int{"Bob": 1, "Ada": 2, "Cyd": 3} {
			o.setMember(name, map[string]any{"priority": priority})
		}
		o.setStrategy("priority", nil)
		order("priority", o.refusals(3), "Bob Ada Cyd")
		o.setMember("Ada", map[string]any{"skills": map[string]any{"billing": 9}})
		o.setMember("Cyd", map[string]any{"skills": map[string]any{"billing": 3}})
		o.setStrategy("skills", map[string]any{"required_skills": map[string]any{"billing": 1}})
		order("skills", o.refusals(3), "Ada Cyd Ada") // Bob lacks the skill
		o.setStrategy("random", map[string]any{"required_skills": map[string]any{}})
		o.wantRandom()
		o.setStrategy("ring_all", nil)
		o.wantRingAll()
	})
}

// wantRandom makes calls until two different agents were offered a caller first.
func (o *team) wantRandom() {
	o.T.Helper()
	first := o.refusals(1)
	for range 30 {
		if o.refusals(1) != first {
			return
		}
	}
	o.T.Errorf("random asked %s first 31 times", first)
}

// wantRingAll rings all agents at once. One of them answers, and the telephones of the others stop.
func (o *team) wantRingAll() {
	o.T.Helper()
	o.waitIdle()
	call := o.caller.Dial("600").WaitAnswered()
	all := []*fixture.IncomingCall{o.next(), o.next(), o.next()}
	slices.SortFunc(all, func(a, b *fixture.IncomingCall) int { return strings.Compare(a.UserName(), b.UserName()) })
	if all[0].UserName() != "Ada" || all[1].UserName() != "Bob" || all[2].UserName() != "Cyd" {
		o.T.Errorf("ring_all rings %s, %s and %s", all[0].UserName(), all[1].UserName(), all[2].UserName())
	}
	all[1].Answer()
	all[0].WaitStopped()
	all[2].WaitStopped()
	o.WaitPresence(all[1].Handset.User, "busy")
	call.HangUp()
	all[1].WaitStopped()
}
