package sip

import (
	"net/netip"
	"testing"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
)

func TestNATKeepalive_OnlyPhonesBehindNAT(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	bind := func(contact, source string, transport sipmsg.Transport) Binding {
		return Binding{Contact: contact, Source: netip.MustParseAddrPort(source), Transport: transport, Expires: now.Add(time.Minute)}
	}
	for _, c := range []struct {
		name string
		b    Binding
		kept bool
	}{
		{"an address of home", bind("sip:al@192.168.1.9:5060", "198.51.100.7:40001", sipmsg.UDP), true},
		{"another port", bind("sip:al@198.51.100.7:5060", "198.51.100.7:40002", sipmsg.UDP), true},
		{"a name", bind("sip:al@phone.local", "198.51.100.7:40003", sipmsg.UDP), true},
		{"who is where it says", bind("sip:al@198.51.100.7:40004", "198.51.100.7:40004", sipmsg.UDP), false},
		{"the port left out", bind("sip:al@198.51.100.8", "198.51.100.8:5060", sipmsg.UDP), false},
		{"a connection", bind("sip:al@192.168.1.9:5060", "198.51.100.7:40005", sipmsg.TCP), false},
	} {
		var p natKeepalives
		p.replace(nil, []Binding{c.b})
		if due := p.dueEntries(now, func(netip.AddrPort) bool { return true }); (len(due) == 1) != c.kept {
			t.Errorf("%s: %v", c.name, due)
		}
		p.replace([]Binding{c.b}, nil)
		if len(p.all) != 0 {
			t.Errorf("%s: asked after the registration is removed", c.name)
		}
		p.replace(nil, []Binding{c.b})
		if due := p.dueEntries(now.Add(time.Hour), func(netip.AddrPort) bool { return true }); len(due) != 0 || len(p.all) != 0 {
			t.Errorf("%s: asked after the registration has ended", c.name)
		}
	}
}

// Two accounts of one phone have the same source. If one unregisters, the binding is still kept open for the other.
func TestNATKeepalive_TwoAccountsOfOnePhone(t *testing.T) {
	t.Parallel()
	var p natKeepalives
	now, source := time.Now(), netip.MustParseAddrPort("203.0.113.7:5062")
	first := []Binding{{Contact: "sip:a@10.0.0.2:5060", Source: source, Transport: sipmsg.UDP, Expires: now.Add(time.Minute)}}
	second := []Binding{{Contact: "sip:b@10.0.0.2:5060", Source: source, Transport: sipmsg.UDP, Expires: now.Add(time.Minute)}}
	p.replace(nil, first)
	p.replace(nil, second)
	p.replace(first, nil)
	if due := p.dueEntries(now, func(netip.AddrPort) bool { return true }); due[source] != "sip:b@10.0.0.2:5060" {
		t.Errorf("due: %v", due)
	}
}
