package sip

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

func TestRegister_BindingRules(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	src := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("198.51.100.7"), port) }
	old := []Binding{
		{Contact: "sip:al@10.0.0.1:5060", Source: src(1), Transport: sipmsg.UDP, CallID: "a", CSeq: 5, Expires: now.Add(time.Hour)},
		{Contact: "sip:al@10.0.0.2:5060", Source: src(2), Transport: sipmsg.UDP, CallID: "b", CSeq: 5, Expires: now.Add(time.Hour), Instance: "<urn:uuid:1>;1"},
	}
	for _, c := range []struct {
		name     string
		contacts string
		expires  string
		callID   string
		cseq     uint32
		source   netip.AddrPort
		status   int
		want     string // contacts kept, in order
	}{
		{"a second phone is added", "<sip:al@10.0.0.3>", "600", "c", 1, src(3), 200, "sip:al@10.0.0.1:5060 sip:al@10.0.0.2:5060 sip:al@10.0.0.3"},
		{"a refresh replaces", "<sip:al@10.0.0.1:5060>", "600", "a", 6, src(1), 200, "sip:al@10.0.0.2:5060 sip:al@10.0.0.1:5060"},
		{"an instance keeps its binding when its address changes", `<sip:al@10.9.9.9>;+sip.instance="<urn:uuid:1>";reg-id=1`, "600", "z", 1, src(9), 200, "sip:al@10.0.0.1:5060 sip:al@10.9.9.9"},
		{"the same user at the same source is the same phone", "<sip:al@10.0.0.77>", "600", "z", 1, src(1), 200, "sip:al@10.0.0.2:5060 sip:al@10.0.0.77"},
		{"expires 0 removes", "<sip:al@10.0.0.1:5060>;expires=0", "600", "a", 6, src(1), 200, "sip:al@10.0.0.2:5060"},
		{"star removes all", "*", "0", "z", 1, src(1), 200, ""},
		{"star needs expires 0", "*", "60", "z", 1, src(1), 400, ""},
		{"star stands alone", "*,<sip:al@10.0.0.1>", "0", "z", 1, src(1), 400, ""},
		{"star obeys the order of a Call-ID", "*", "0", "a", 5, src(1), 500, ""},
		{"an old CSeq changes nothing", "<sip:al@10.0.0.1:5060>", "600", "a", 5, src(1), 500, ""},
		{"too brief", "<sip:al@10.0.0.3>", "59", "c", 1, src(3), 423, ""},
		{"one bad contact spoils all", "<sip:al@10.0.0.3>,<tel:123>", "600", "c", 1, src(3), 400, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var m received
			m.Fields = []sipmsg.Field{{Kind: sipmsg.FieldContact, Name: "Contact", Value: c.contacts}}
			r := &registerRequest{contacts: m.List(sipmsg.FieldContact), expires: c.expires, callID: c.callID, cseq: c.cseq,
				source: c.source}
			next, status := r.applyContacts(old, now, 10)
			var got []string
			for _, b := range next {
				got = append(got, b.Contact)
			}
			if status != c.status || status == 200 && strings.Join(got, " ") != c.want {
				t.Errorf("got %d %v, want %d %s", status, got, c.status, c.want)
			}
		})
	}
}

// contactsAfter returns the Contacts that are registered after a REGISTER, in order, and the status.
func contactsAfter(old []Binding, r registerRequest, contacts string) ([]Binding, string, int) {
	var m received
	m.Fields = []sipmsg.Field{{Kind: sipmsg.FieldContact, Name: "Contact", Value: contacts}}
	r.contacts = m.List(sipmsg.FieldContact)
	next, status := r.applyContacts(old, time.Unix(1e9, 0), 10)
	var names []string
	for _, b := range next {
		names = append(names, b.Contact)
	}
	slices.Sort(names)
	return next, strings.Join(names, " "), status
}

// https://github.com/pjsip/pjproject/issues/1086
// https://github.com/BelledonneCommunications/linphone-iphone/issues/304
// https://github.com/BelledonneCommunications/flexisip/issues/243
func TestRegister_ContactsOfOneRequest(t *testing.T) {
	t.Parallel()
	const x, y = `;+sip.instance="<urn:uuid:x>"`, `;+sip.instance="<urn:uuid:y>"`
	for _, c := range []struct {
		name   string
		first  string // the REGISTER before
		second string
		cseq   uint32 // of second; first has 1
		status int
		want   string
	}{
		{"a changed network, new first", "<sip:al@a>", "<sip:al@b>,<sip:al@a>;expires=0", 2, 200, "sip:al@b"},
		{"a changed network, old first", "<sip:al@a>", "<sip:al@a>;expires=0,<sip:al@b>", 2, 200, "sip:al@b"},
		{"a changed network of an instance, new first", "<sip:al@a>" + x, "<sip:al@b>" + x + ",<sip:al@a>;expires=0" + x, 2, 200, "sip:al@b"},
		{"a changed network of an instance, old first", "<sip:al@a>" + x, "<sip:al@a>;expires=0" + x + ",<sip:al@b>" + x, 2, 200, "sip:al@b"},
		{"a changed network of a flow, new first", "<sip:al@a>;reg-id=1" + x, "<sip:al@b>;reg-id=1" + x + ",<sip:al@a>;reg-id=1;expires=0" + x, 2, 200, "sip:al@b"},
		{"a changed network of a flow, old first", "<sip:al@a>;reg-id=1" + x, "<sip:al@a>;reg-id=1;expires=0" + x + ",<sip:al@b>;reg-id=1" + x, 2, 200, "sip:al@b"},
		{"an unknown contact is removed", "<sip:al@b>", "<sip:al@b>,<sip:al@a>;expires=0", 2, 200, "sip:al@b"},
		{"two contacts", "", "<sip:al@a>,<sip:al@b>", 2, 200, "sip:al@a sip:al@b"},
		{"two contacts are refreshed", "<sip:al@a>,<sip:al@b>", "<sip:al@b>,<sip:al@a>", 2, 200, "sip:al@a sip:al@b"},
		{"one of two is refreshed", "<sip:al@a>,<sip:al@b>", "<sip:al@b>", 2, 200, "sip:al@a sip:al@b"},
		{"one of two is removed", "<sip:al@a>,<sip:al@b>", "<sip:al@b>;expires=0", 2, 200, "sip:al@a"},
		{"one of two contacts of an instance is removed", "<sip:al@a>" + x + ",<sip:al@b>" + x, "<sip:al@a>;expires=0" + x, 2, 200, "sip:al@b"},
		{"the previous contact is removed later", "<sip:al@b>" + x, "<sip:al@a>;expires=0" + x, 2, 200, "sip:al@b"},
		{"a contact of the same source is not removed", "<sip:al@b>", "<sip:al@a>;expires=0", 2, 200, "sip:al@b"},
		{"both contacts removed", "<sip:al@a>,<sip:al@b>", "<sip:al@a>;expires=0,<sip:al@b>;expires=0", 2, 200, ""},
		{"one added, one kept", "<sip:al@a>", "<sip:al@a>,<sip:al@b>", 2, 200, "sip:al@a sip:al@b"},
		{"two added for one", "<sip:al@c>", "<sip:al@a>,<sip:al@b>", 2, 200, "sip:al@a sip:al@b"},
		{"the same contact twice", "", "<sip:al@a>,<sip:al@a>", 2, 200, "sip:al@a"},
		{"the same contact twice, removed last", "<sip:al@a>", "<sip:al@a>,<sip:al@a>;expires=0", 2, 200, ""},
		{"a flow twice", "", "<sip:al@a>;reg-id=1" + x + ",<sip:al@b>;reg-id=1" + x, 2, 200, "sip:al@b"},
		{"two flows of one address", "", "<sip:al@a>;reg-id=1" + x + ",<sip:al@a>;reg-id=2" + x, 2, 200, "sip:al@a sip:al@a"},
		{"an app installed anew", "<sip:al@a>" + x, "<sip:al@a>" + y, 2, 200, "sip:al@a"},
		{"an app with flows installed anew", "<sip:al@a>;reg-id=1" + x, "<sip:al@a>;reg-id=1" + y, 2, 200, "sip:al@a"},
		{"another rinstance", "<sip:al@a;rinstance=1>", "<sip:al@a;rinstance=2>", 2, 200, "sip:al@a;rinstance=2"},
		{"another rinstance of an instance", "<sip:al@a;rinstance=1>" + x, "<sip:al@a;rinstance=2>" + x, 2, 200, "sip:al@a;rinstance=2"},
		{"an app installed anew, with another rinstance", "<sip:al@a;rinstance=1>" + x, "<sip:al@a;rinstance=2>" + y, 2, 200, "sip:al@a;rinstance=2"},
		{"an app installed anew, without an instance", "<sip:al@a;rinstance=1>" + x, "<sip:al@a;rinstance=2>", 2, 200, "sip:al@a;rinstance=2"},
		{"an app installed anew, with flows", "<sip:al@a;rinstance=1>" + x, "<sip:al@a;rinstance=2>;reg-id=1" + y, 2, 200, "sip:al@a;rinstance=2"},
		{"an app with flows installed anew, with another rinstance", "<sip:al@a;rinstance=1>;reg-id=1" + x + ",<sip:al@a;rinstance=1>;reg-id=2" + x,
			"<sip:al@a;rinstance=2>;reg-id=1" + y, 2, 200, "sip:al@a;rinstance=2"},
		{"a second flow with another rinstance", "<sip:al@a;rinstance=1>;reg-id=1" + x, "<sip:al@a;rinstance=2>;reg-id=2" + x, 2, 200,
			"sip:al@a;rinstance=1 sip:al@a;rinstance=2"},
		{"another instance at another port", "<sip:al@a:5060>" + x, "<sip:al@a:5062>" + y, 2, 200, "sip:al@a:5060 sip:al@a:5062"},
		{"another instance over another transport", "<sip:al@a>" + x, "<sip:al@a;transport=tcp>" + y, 2, 200, "sip:al@a sip:al@a;transport=tcp"},
		{"another rinstance is removed", "<sip:al@a;rinstance=1>", "<sip:al@a;rinstance=2>;expires=0", 2, 200, "sip:al@a;rinstance=1"},
		{"an old CSeq", "<sip:al@a>,<sip:al@b>", "<sip:al@b>,<sip:al@a>;expires=0", 1, 500, ""},
		{"an old CSeq for one binding", "<sip:al@a>", "<sip:al@b>,<sip:al@a>;expires=0", 1, 500, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := registerRequest{callID: "a", cseq: 1, source: netip.MustParseAddrPort("198.51.100.7:5060")}
			var old []Binding
			if c.first != "" {
				old, _, _ = contactsAfter(nil, r, c.first)
			}
			r.cseq = c.cseq
			_, got, status := contactsAfter(old, r, c.second)
			if status != c.status || got != c.want {
				t.Errorf("got %d %q, want %d %q", status, got, c.status, c.want)
			}
		})
	}
}

// Two phones behind different routers may have the same private address.
func TestRegister_SameAddressBehindTwoRouters(t *testing.T) {
	t.Parallel()
	old, _, _ := contactsAfter(nil, registerRequest{callID: "a", cseq: 1, source: netip.MustParseAddrPort("198.51.100.7:5060")},
		`<sip:al@192.168.1.5>;+sip.instance="<urn:uuid:x>"`)
	next, _, _ := contactsAfter(old, registerRequest{callID: "b", cseq: 1, source: netip.MustParseAddrPort("198.51.100.8:5060")},
		`<sip:al@192.168.1.5>;+sip.instance="<urn:uuid:y>"`)
	if len(next) != 2 {
		t.Errorf("%d bindings, want both phones", len(next))
	}
}

func TestRegister_BindingKeepsSourceAndFlow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := &registerRequest{
		contacts: []string{`<sip:al@192.168.1.5:5060;ob>;q=0.5;expires=90000`}, path: []string{"<sip:edge.example;lr>"},
		source: netip.MustParseAddrPort("203.0.113.9:33000"), conn: &transport.Conn{ID: 77, Key: transport.ConnKey{Transport: sipmsg.TCP}},
	}
	next, status := r.applyContacts(nil, now, 10)
	if status != 200 || len(next) != 1 {
		t.Fatalf("got %d %v", status, next)
	}
	b := next[0]
	if b.Contact != "sip:al@192.168.1.5:5060;ob" || b.Source != r.source || b.Transport != sipmsg.TCP || b.Flow != 77 ||
		b.Priority != 500 || b.Expires != now.Add(time.Hour) || len(b.Path) != 1 || b.Path[0] != "sip:edge.example;lr" {
		t.Errorf("binding %+v", b)
	}
}

func TestRegister_OldestBindingsRemoved(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var all []Binding
	for i := range 5 {
		r := &registerRequest{
			contacts: []string{"<sip:al@10.0.0." + string(rune('1'+i)) + ">"}, callID: string(rune('a' + i)), cseq: 1,
			source: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(i+1)),
		}
		all, _ = r.applyContacts(all, now, 3)
	}
	if len(all) != 3 || all[0].Contact != "sip:al@10.0.0.3" {
		t.Errorf("got %+v, want the newest three", all)
	}
}
