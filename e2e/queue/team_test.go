package queue

import (
	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// team is a queue whose agents have handsets. The test sees in which order they ring.
type team struct {
	*fixture.Org
	queue  string
	rings  chan *fixture.IncomingCall
	caller *fixture.Handset
	agents map[string]*fixture.Handset // by name
}

// newTeam makes a queue, its agents and a caller.
func newTeam(s *rig.Server, agents ...string) *team {
	o := &team{Org: fixture.NewOrg(s), rings: make(chan *fixture.IncomingCall, 100), agents: map[string]*fixture.Handset{}}
	o.queue = o.AddQueue(map[string]any{"extension": "600", "wrap_up_seconds": 0, "missed_offers_limit": 0, "retry_delay_seconds": 0, "ring_timeout_seconds": 60})
	for _, name := range agents {
		h := o.AddHandset(name, o.rings)
		o.agents[h.User.Name] = h
		o.Want(201, "POST", "/queues/"+o.queue+"/members", map[string]any{"user_id": h.User.ID}, nil)
	}
	o.caller = o.AddHandset("Zoe", o.rings)
	return o
}

// next waits for the next handset that rings.
func (o *team) next() *fixture.IncomingCall {
	o.T.Helper()
	return fixture.NextRinging(o.T, o.rings)
}
