package cluster

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// registrar is a carrier that accepts every REGISTER, and counts the contacts.
type registrar struct {
	conn net.PacketConn

	mu       sync.Mutex // guards contacts
	contacts map[string]int
}

func startRegistrar(t *testing.T) *registrar {
	t.Helper()
	n := fixture.Addresses.Add(1)
	conn, err := net.ListenPacket("udp", fmt.Sprintf("127.5.%d.%d:0", n/250, 1+n%250))
	if err != nil {
		t.Fatal(err)
	}
	r := &registrar{conn: conn, contacts: map[string]int{}}
	t.Cleanup(func() { _ = conn.Close() })
	go r.serve()
	return r
}

var contactHost = regexp.MustCompile(`(?m)^Contact: <sip:[^@]*@([^;>]+)`)

func (r *registrar) serve() {
	b := make([]byte, 1<<16)
	for {
		n, from, err := r.conn.ReadFrom(b)
		if err != nil {
			return
		}
		m := string(b[:n])
		if !strings.HasPrefix(m, "REGISTER ") {
			continue
		}
		if c := contactHost.FindStringSubmatch(m); c != nil {
			r.mu.Lock()
			r.contacts[strings.TrimSpace(c[1])]++
			r.mu.Unlock()
		}
		_, _ = r.conn.WriteTo([]byte(accept(m)), from)
	}
}

// accept returns the 200 response to a REGISTER.
func accept(m string) string {
	var b strings.Builder
	b.WriteString("SIP/2.0 200 OK\r\n")
	for line := range strings.SplitSeq(m, "\r\n") {
		name, _, _ := strings.Cut(line, ":")
		switch name {
		case "Via", "From", "Call-ID", "CSeq":
			b.WriteString(line + "\r\n")
		case "To":
			b.WriteString(line + ";tag=carrier\r\n")
		case "Contact":
			b.WriteString(line + ";expires=3600\r\n")
		}
	}
	b.WriteString("Content-Length: 0\r\n\r\n")
	return b.String()
}

// hosts returns the contacts that registered.
func (r *registrar) hosts() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for h := range r.contacts {
		all = append(all, h)
	}
	return all
}

func TestNodes_OneRegistersTrunk(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "the lease of a node has to end")
	carrier := startRegistrar(t)
	options := rig.Options{Env: fixture.NoSpeech}
	first := rig.Node(t, options)
	o := fixture.NewOrg(first)
	at1 := carrier.conn.LocalAddr().(*net.UDPAddr)
	var trunk struct{ ID string }
	o.Want(200, "PATCH", "/organization", map[string]any{"emergency": map[string]any{"acknowledged": true}}, nil)
	o.Want(201, "POST", "/trunks", map[string]any{"name": "carrier", "kind": "register", "host": at1.IP.String(), "port": at1.Port,
		"username": "customer", "password": "what the carrier gave us"}, &trunk)
	registeredAt(o, trunk.ID)
	second := rig.Node(t, options, first)
	registeredAt(at(o, second), trunk.ID)
	if all := carrier.hosts(); len(all) != 1 || all[0] != first.SIP {
		t.Errorf("contacts at the carrier: %v, want that of %s alone", all, first.SIP)
	}
	first.Kill()
	rig.Until(t, "the other node to register the trunk", 20*time.Second, func() bool { return len(carrier.hosts()) == 2 })
	registeredAt(at(o, second), trunk.ID)
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
