package cluster

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

func TestNodes_OneRegistersTrunk(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "the lease of a node has to end")
	carrier := fixture.NewRegistrar(t)
	options := rig.Options{Env: fixture.NoSpeech}
	first := rig.Node(t, options)
	o := fixture.NewOrg(first)
	trunk := carrier.AddTrunk(o)
	registeredAt(o, trunk)
	second := rig.Node(t, options, first)
	registeredAt(at(o, second), trunk)
	if all := carrier.Hosts(); len(all) != 1 || all[0] != first.SIP {
		t.Errorf("contacts at the carrier: %v, want that of %s alone", all, first.SIP)
	}
	first.Kill()
	rig.Until(t, "the other node to register the trunk", 20*time.Second, func() bool { return len(carrier.Hosts()) == 2 })
	registeredAt(at(o, second), trunk)
}

// registeredAt waits until a trunk is registered according to a node.
func registeredAt(o *fixture.Org, trunk string) {
	o.T.Helper()
	rig.Until(o.T, "the trunk to be registered", 20*time.Second, func() bool {
		var now struct{ Registration struct{ Status string } }
		o.Want(200, "GET", "/trunks/"+trunk, nil, &now)
		return now.Registration.Status == "registered"
	})
}
