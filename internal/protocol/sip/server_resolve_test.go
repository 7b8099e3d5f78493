package sip_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
)

// fakeDNSServer is a DNS server for a test, over UDP and TCP.
type fakeDNSServer struct {
	udp      net.PacketConn
	records  map[string][]dnsmessage.Resource // by lower-case name and type
	mu       sync.Mutex                       // guards queries
	queries  []string
	truncate atomic.Bool // answers over UDP are truncated
}

func newFakeDNSServer(t testing.TB, records ...dnsmessage.Resource) *fakeDNSServer {
	t.Helper()
	z := &fakeDNSServer{records: map[string][]dnsmessage.Resource{}}
	for _, r := range records {
		key := dnsRecordKey(r.Header.Name.String(), r.Header.Type)
		z.records[key] = append(z.records[key], r)
	}
	udp, tcp := listenUDPAndTCP(t)
	z.udp = udp
	var done sync.WaitGroup
	done.Go(z.serveUDP)
	done.Go(func() { z.serveTCP(tcp) })
	t.Cleanup(func() { udp.Close(); tcp.Close(); done.Wait() })
	return z
}

// listenUDPAndTCP listens on a port that is free for both.
func listenUDPAndTCP(t testing.TB) (net.PacketConn, net.Listener) {
	t.Helper()
	for try := 0; ; try++ {
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		tcp, err := net.Listen("tcp", udp.LocalAddr().String())
		if err == nil {
			return udp, tcp
		}
		udp.Close()
		if try == 20 {
			t.Fatal(err)
		}
	}
}

func dnsRecordKey(name string, kind dnsmessage.Type) string {
	return strings.ToLower(name) + fmt.Sprint(uint16(kind))
}

func (z *fakeDNSServer) resolver() resolve.Resolver { return resolve.NewResolver(z.addr()) }
func (z *fakeDNSServer) addr() netip.AddrPort {
	return netip.MustParseAddrPort(z.udp.LocalAddr().String())
}

func (z *fakeDNSServer) serveUDP() {
	buf := make([]byte, 4096)
	for {
		n, from, err := z.udp.ReadFrom(buf)
		if err != nil {
			return
		}
		z.udp.WriteTo(z.answer(buf[:n], z.truncate.Load()), from)
	}
}

func (z *fakeDNSServer) serveTCP(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		var length [2]byte
		io.ReadFull(c, length[:])
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		io.ReadFull(c, query)
		reply := z.answer(query, false)
		c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
		c.Close()
	}
}

func (z *fakeDNSServer) answer(query []byte, cut bool) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	z.mu.Lock()
	z.queries = append(z.queries, strings.TrimSuffix(q.Name.String(), "."))
	z.mu.Unlock()
	m.Additionals, m.Response, m.Truncated = nil, true, cut
	if m.Answers = z.records[dnsRecordKey(q.Name.String(), q.Type)]; cut {
		m.Answers = nil
	}
	b, _ := m.Pack()
	return b
}

func (z *fakeDNSServer) queryCount() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return len(z.queries)
}

func dnsRecord(name string, kind dnsmessage.Type, body dnsmessage.ResourceBody) dnsmessage.Resource {
	return dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name + "."), Type: kind, Class: dnsmessage.ClassINET, TTL: 300},
		Body:   body,
	}
}

func aRecord(name, address string) dnsmessage.Resource {
	return dnsRecord(name, dnsmessage.TypeA, &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()})
}

func srvRecord(name, target string, port, priority, weight uint16) dnsmessage.Resource {
	return dnsRecord(name, dnsmessage.TypeSRV, &dnsmessage.SRVResource{Target: dnsmessage.MustNewName(target + "."), Port: port,
		Priority: priority, Weight: weight})
}

func naptrRecord(name string, order, preference uint16, service, replacement string) dnsmessage.Resource {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, order), preference)
	for _, s := range []string{"s", service, ""} {
		b = append(append(b, byte(len(s))), s...)
	}
	for label := range strings.SplitSeq(replacement, ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return dnsRecord(name, 35, &dnsmessage.UnknownResource{Type: 35, Data: append(b, 0)})
}

func TestResolver_ReadsRecords(t *testing.T) {
	t.Parallel()
	records := []dnsmessage.Resource{naptrRecord("e.test", 20, 1, "SIP+D2U", "_sip._udp.e.test"), naptrRecord("e.test", 10, 5, "SIPS+D2T", "_sips._tcp.e.test"),
		srvRecord("_sip._udp.e.test", "a.e.test", 5062, 3, 7), aRecord("a.e.test", "192.0.2.9")}
	for _, cut := range []bool{false, true} { // over UDP, and over TCP if it does not fit
		z := newFakeDNSServer(t, records...)
		z.truncate.Store(cut)
		r, ctx := z.resolver(), context.Background()
		rules, ttl, err := r.NAPTR(ctx, "e.test")
		if err != nil || ttl != 300*time.Second || len(rules) != 2 || rules[0] != (resolve.NAPTR{Order: 10, Preference: 5, Flags: "s",
			Service: "SIPS+D2T", Replacement: "_sips._tcp.e.test."}) {
			t.Errorf("NAPTR: %+v %v %v", rules, ttl, err)
		}
		all, _, err := r.SRV(ctx, "_sip._udp.e.test")
		if err != nil || len(all) != 1 || all[0] != (resolve.SRV{Target: "a.e.test.", Port: 5062, Priority: 3, Weight: 7}) {
			t.Errorf("SRV: %+v %v", all, err)
		}
		if none, _, err := r.SRV(ctx, "_sip._tcp.e.test"); err != nil || len(none) != 0 {
			t.Errorf("SRV that is not there: %+v %v", none, err)
		}
		addrs, _, err := r.Addresses(ctx, "a.e.test")
		if err != nil || !slices.Equal(addrs, []netip.Addr{netip.MustParseAddr("192.0.2.9")}) {
			t.Errorf("addresses: %v %v", addrs, err)
		}
	}
}

// The destination of "sip:bob@e.test" by the records of the zone (RFC 3263 §4).
func TestResolve_RFC3263(t *testing.T) {
	t.Parallel()
	conf, roots := testCertificate(t, "e.test") // the domain, not the host SRV names (RFC 5922 §4)
	far := newTestServer(t, sip.Config{TLS: conf})
	port, secure := far.Addr().Port(), far.TLSAddr().Port()
	a := aRecord("a.e.test", "127.0.0.1")
	for _, c := range []struct {
		name    string
		records []dnsmessage.Resource
		uri     string
		want    sipmsg.Transport
	}{
		{"the best NAPTR rule we can use", []dnsmessage.Resource{a,
			naptrRecord("e.test", 5, 1, "SIP+D2S", "_sip._sctp.e.test"), naptrRecord("e.test", 10, 1, "SIP+D2T", "_x.e.test"), naptrRecord("e.test", 20, 1, "SIP+D2U", "_y.e.test"),
			srvRecord("_x.e.test", "a.e.test", port, 1, 1), srvRecord("_y.e.test", "a.e.test", 9, 1, 1)}, "sip:bob@e.test", sipmsg.TCP},
		{"NAPTR for TLS", []dnsmessage.Resource{a, naptrRecord("e.test", 5, 1, "SIPS+D2T", "_sips._tcp.e.test"), srvRecord("_sips._tcp.e.test", "a.e.test", secure, 1, 1)}, "sip:bob@e.test", sipmsg.TLS},
		{"without NAPTR, SRV for UDP first", []dnsmessage.Resource{a, srvRecord("_sip._udp.e.test", "a.e.test", port, 1, 1), srvRecord("_sip._tcp.e.test", "a.e.test", 9, 1, 1)}, "sip:bob@e.test", sipmsg.UDP},
		{"without NAPTR, the SRV there is", []dnsmessage.Resource{a, srvRecord("_sip._tcp.e.test", "a.e.test", port, 1, 1)}, "sip:bob@e.test", sipmsg.TCP},
		{"the transport the URI names", []dnsmessage.Resource{a, srvRecord("_sip._udp.e.test", "a.e.test", 9, 1, 1), srvRecord("_sip._tcp.e.test", "a.e.test", port, 1, 1)}, "sip:bob@e.test;transport=tcp", sipmsg.TCP},
		{"sips", []dnsmessage.Resource{a, srvRecord("_sip._udp.e.test", "a.e.test", port, 1, 1), srvRecord("_sips._tcp.e.test", "a.e.test", secure, 1, 1)}, "sips:bob@e.test", sipmsg.TLS},
		{"a port asks for no service", []dnsmessage.Resource{aRecord("e.test", "127.0.0.1"), srvRecord("_sip._udp.e.test", "a.e.test", 9, 1, 1)}, fmt.Sprintf("sip:bob@e.test:%d", port), sipmsg.UDP},
	} {
		t.Run(c.name, func(t *testing.T) {
			near := newTestServer(t, sip.Config{Resolver: newFakeDNSServer(t, c.records...).resolver(), RootCAs: roots})
			e := newEventLog()
			if _, err := near.Server.Invite(context.Background(), sip.Outgoing{URI: c.uri, SDP: testOfferSDP}, e.record); err != nil {
				t.Fatal(err)
			}
			in := far.wantInbound(t)
			if in.Transport != c.want {
				t.Errorf("came by %s, want %s", in.Transport, c.want)
			}
			in.Reject(486, "", 0)
			wantEvent[sip.Failed](t, e)
		})
	}
}

func TestResolve_UnusableNamesFail(t *testing.T) {
	t.Parallel()
	z := newFakeDNSServer(t, srvRecord("_sip._udp.off.test", "", 0, 0, 0), srvRecord("_sip._udp.dangling.test", "gone.test", 5060, 1, 1))
	near := newTestServer(t, sip.Config{Resolver: z.resolver()})
	for _, name := range []string{"off.test", "dangling.test", "unknown.test"} {
		if _, err := near.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:bob@" + name, SDP: testOfferSDP},
			func(sip.Event) {}); err == nil {
			t.Errorf("%s was called", name)
		}
	}
}

func TestResolve_AnswersAreCached(t *testing.T) {
	t.Parallel()
	far := newTestServer(t, sip.Config{})
	z := newFakeDNSServer(t, aRecord("a.e.test", "127.0.0.1"), srvRecord("_sip._udp.e.test", "a.e.test", far.Addr().Port(), 1, 1))
	near := newTestServer(t, sip.Config{Resolver: z.resolver()})
	var first int
	for i := range 3 {
		e := newEventLog()
		near.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:bob@e.test", SDP: testOfferSDP}, e.record)
		far.wantInbound(t).Reject(486, "", 0)
		wantEvent[sip.Failed](t, e)
		if i == 0 {
			first = z.queryCount()
		}
	}
	if n := z.queryCount(); first == 0 || n != first {
		t.Errorf("%d questions for one call, %d for three", first, n)
	}
}

// closedPort returns a port without a listener.
func closedPort(t testing.TB) uint16 {
	t.Helper()
	return uint16(freePortBlock(t))
}

func TestFailover_NextAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, service string }{{"TCP is refused", "_sip._tcp.e.test"}, {"UDP says nothing", "_sip._udp.e.test"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			far := newTestServer(t, sip.Config{})
			z := newFakeDNSServer(t, aRecord("a.e.test", "127.0.0.1"), srvRecord(c.service, "a.e.test", closedPort(t), 1, 1), srvRecord(c.service, "a.e.test", far.Addr().Port(), 2, 1))
			near := newTestServer(t, sip.Config{Resolver: z.resolver()})
			e, f := newEventLog(), newEventLog()
			leg, _ := near.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:bob@e.test", SDP: testOfferSDP}, e.record)
			in := far.wantInbound(t)
			in.Listen(f.record)
			in.Answer(testAnswerSDP)
			wantEvent[sip.Answered](t, e)
			wantEvent[sip.Acked](t, f)
			leg.Bye(sip.Reason{})
			wantEvent[sip.Bye](t, f)
			wantEvent[sip.Closed](t, e)

			// A failed address is tried last for a while.
			near.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:bob@e.test", SDP: testOfferSDP}, e.record)
			far.wantInbound(t).Reject(486, "", 0)
			if f := wantEvent[sip.Failed](t, e); f.Targets != 1 || f.Status != 486 {
				t.Errorf("second call: %+v", f)
			}
		})
	}
}

func TestFailover_503UnlessRinging(t *testing.T) {
	t.Parallel()
	busy, free := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	z := newFakeDNSServer(t, aRecord("a.e.test", "127.0.0.1"), srvRecord("_sip._udp.e.test", "a.e.test", busy.Addr().Port(), 1, 1), srvRecord("_sip._udp.e.test", "a.e.test", free.Addr().Port(), 2, 1))
	near := newTestServer(t, sip.Config{Resolver: z.resolver()})
	e := newEventLog()
	near.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:bob@e.test", SDP: testOfferSDP}, e.record)
	in := busy.wantInbound(t)
	in.Ring(180, nil)
	wantEvent[sip.Provisional](t, e)
	in.Reject(503, "", 0)
	if f := wantEvent[sip.Failed](t, e); f.Status != 503 || f.Targets != 1 {
		t.Errorf("after ringing: %+v", f)
	}
	near.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:bob@e.test", SDP: testOfferSDP}, e.record)
	busy.wantInbound(t).Reject(503, "", 0)
	free.wantInbound(t).Reject(486, "", 0)
	if f := wantEvent[sip.Failed](t, e); f.Status != 486 || f.Targets != 2 {
		t.Errorf("without ringing: %+v", f)
	}
	near.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:bob@e.test", SDP: testOfferSDP}, e.record)
	free.wantInbound(t).Reject(486, "", 0)
	if f := wantEvent[sip.Failed](t, e); f.Status != 486 || f.Targets != 1 {
		t.Errorf("the busy one was not passed over next time: %+v", f)
	}
}

func TestFailover_EndedByCancel(t *testing.T) {
	t.Parallel()
	far := newTestServer(t, sip.Config{})
	z := newFakeDNSServer(t, aRecord("a.e.test", "127.0.0.1"), srvRecord("_sip._udp.e.test", "a.e.test", closedPort(t), 1, 1), srvRecord("_sip._udp.e.test", "a.e.test", far.Addr().Port(), 2, 1))
	near := newTestServer(t, sip.Config{Resolver: z.resolver()})
	e := newEventLog()
	leg, _ := near.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:bob@e.test", SDP: testOfferSDP}, e.record)
	leg.Cancel()
	wantEvent[sip.Failed](t, e)
	waitUntil(t, "the call forgotten", func() bool { return near.Stats().Dialogs == 0 })
	if len(far.calls) > 0 {
		t.Error("the next address was called after the cancel")
	}
}

func TestFailover_NextHopsAreLimited(t *testing.T) {
	t.Parallel()
	records := []dnsmessage.Resource{aRecord("a.e.test", "127.0.0.1")}
	for i := range 40 {
		records = append(records, srvRecord("_sip._tcp.e.test", "a.e.test", uint16(1+i), uint16(i), 1)) // ports without a listener
	}
	near := newTestServer(t, sip.Config{Resolver: newFakeDNSServer(t, records...).resolver()})
	e := newEventLog()
	near.Server.Invite(context.Background(), sip.Outgoing{URI: "sip:bob@e.test", SDP: bytes.Repeat(testOfferSDP, 1)}, e.record)
	if f := wantEvent[sip.Failed](t, e); f.Status != 503 || f.Targets < 10 || f.Targets > 16 {
		t.Errorf("failed as %+v", f)
	}
}
