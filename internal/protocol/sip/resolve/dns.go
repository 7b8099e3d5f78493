package resolve

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// DNS stub resolver for NAPTR and SRV.

// NewResolver returns a Resolver that queries the given name servers, or those of /etc/resolv.conf if none are given.
// Addresses of hosts are also looked up in /etc/hosts.
func NewResolver(servers ...netip.AddrPort) Resolver {
	d := &stubResolver{servers: servers, system: &net.Resolver{PreferGo: true}}
	if len(servers) > 0 {
		d.system.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			var dial net.Dialer
			return dial.DialContext(ctx, network, servers[rand.N(len(servers))].String())
		}
	}
	return d
}

// stubResolver is a DNS stub resolver.
type stubResolver struct {
	servers []netip.AddrPort
	system  *net.Resolver
}

const (
	dnsServerTimeout = 2 * time.Second  // timeout of one server
	addressTTL       = 30 * time.Second // the system's resolver does not report a TTL
	typeNAPTR        = dnsmessage.Type(35)
	udpPayload       = 1232
)

// Addresses returns the addresses in the system's order (RFC 6724).
func (d *stubResolver) Addresses(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	if strings.Contains(host, ".") {
		host = strings.TrimSuffix(host, ".") + "." // absolute name: no search domain is appended
	}
	all, err := d.system.LookupNetIP(ctx, "ip", host)
	var missing *net.DNSError
	if errors.As(err, &missing) && missing.IsNotFound {
		return nil, addressTTL, nil
	}
	for i := range all {
		all[i] = all[i].Unmap()
	}
	return all, addressTTL, err
}

// SRV returns the servers, unordered.
func (d *stubResolver) SRV(ctx context.Context, name string) (all []SRV, ttl time.Duration, err error) {
	ttl, err = d.query(ctx, name, dnsmessage.TypeSRV, func(p *dnsmessage.Parser) error {
		r, err := p.SRVResource()
		all = append(all, SRV{Target: r.Target.String(), Port: r.Port, Priority: r.Priority, Weight: r.Weight})
		return err
	})
	return all, ttl, err
}

// NAPTR returns the rules in the order of use.
func (d *stubResolver) NAPTR(ctx context.Context, domain string) (all []NAPTR, ttl time.Duration, err error) {
	ttl, err = d.query(ctx, domain, typeNAPTR, func(p *dnsmessage.Parser) error {
		r, err := p.UnknownResource()
		if err != nil {
			return err
		}
		n, err := readNAPTR(r.Data)
		all = append(all, n)
		return err
	})
	slices.SortStableFunc(all, func(a, b NAPTR) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference))
	})
	return all, ttl, err
}

var errNAPTR = errors.New("malformed NAPTR")

// readNAPTR parses the data of a record (RFC 3403 §4.1).
func readNAPTR(b []byte) (n NAPTR, err error) {
	if len(b) < 4 {
		return n, errNAPTR
	}
	n.Order, n.Preference = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	var text [3]string // flags, service, regular expression
	b = b[4:]
	for i := range text {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return n, errNAPTR
		}
		text[i], b = string(b[1:1+b[0]]), b[1+b[0]:]
	}
	n.Flags, n.Service = text[0], text[1]
	for len(b) > 0 && b[0] != 0 {
		if b[0] > 63 || len(b) < 1+int(b[0]) {
			return n, errNAPTR // compression is not allowed here
		}
		n.Replacement, b = n.Replacement+string(b[1:1+b[0]])+".", b[1+b[0]:]
	}
	return n, nil
}

// query queries each server until one answers, in two rounds.
func (d *stubResolver) query(ctx context.Context, name string, kind dnsmessage.Type, each func(*dnsmessage.Parser) error) (time.Duration,
	error) {
	servers := d.servers
	if len(servers) == 0 {
		servers = systemServers()
	}
	id := uint16(rand.N(1 << 16))
	query, err := buildQuery(id, name, kind)
	if err != nil {
		return 0, fmt.Errorf("look up %s: %w", name, err)
	}
	for range 2 {
		for _, server := range servers {
			var reply []byte
			if reply, err = queryServer(ctx, server, id, query); err == nil {
				return readAnswers(reply, name, kind, each)
			}
			if ctx.Err() != nil {
				break
			}
		}
	}
	return 0, fmt.Errorf("look up %s: %w", name, err)
}

// buildQuery returns a query that allows large answers (RFC 6891).
func buildQuery(id uint16, name string, kind dnsmessage.Type) ([]byte, error) {
	n, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + ".")
	if err != nil {
		return nil, err
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: id, RecursionDesired: true})
	b.StartQuestions()
	if err := b.Question(dnsmessage.Question{Name: n, Type: kind, Class: dnsmessage.ClassINET}); err != nil {
		return nil, err
	}
	b.StartAdditionals()
	var h dnsmessage.ResourceHeader
	h.SetEDNS0(udpPayload, dnsmessage.RCodeSuccess, false)
	if err := b.OPTResource(h, dnsmessage.OPTResource{}); err != nil {
		return nil, err
	}
	return b.Finish()
}

// queryServer queries one server by UDP, and by TCP if the answer is truncated.
func queryServer(ctx context.Context, server netip.AddrPort, id uint16, query []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsServerTimeout)
	defer cancel()
	reply, cut, err := queryUDP(ctx, server, id, query)
	if err != nil || !cut {
		return reply, err
	}
	return queryTCP(ctx, server, query)
}

func queryUDP(ctx context.Context, server netip.AddrPort, id uint16, query []byte) ([]byte, bool, error) {
	c, err := dialDNS(ctx, "udp", server)
	if err != nil {
		return nil, false, err
	}
	defer c.Close()
	if _, err := c.Write(query); err != nil {
		return nil, false, err
	}
	b := make([]byte, 4096)
	for {
		n, err := c.Read(b)
		if err != nil {
			return nil, false, err
		}
		var p dnsmessage.Parser
		if h, err := p.Start(b[:n]); err == nil && h.Response && h.ID == id {
			return b[:n], h.Truncated, nil
		} // else a forged answer
	}
}

func queryTCP(ctx context.Context, server netip.AddrPort, query []byte) ([]byte, error) {
	c, err := dialDNS(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)); err != nil {
		return nil, err
	}
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return nil, err
	}
	reply := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err = io.ReadFull(c, reply)
	return reply, err
}

func dialDNS(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, server.String())
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	c.SetDeadline(deadline)
	return c, nil
}

// negativeTTL is how long an empty answer is cached.
const negativeTTL = 30 * time.Second

// readAnswers calls each for every record of a kind and returns the smallest TTL.
func readAnswers(reply []byte, name string, kind dnsmessage.Type, each func(*dnsmessage.Parser) error) (time.Duration, error) {
	var p dnsmessage.Parser
	h, err := p.Start(reply)
	if err != nil {
		return 0, err
	}
	q, err := p.AllQuestions()
	if err != nil || len(q) != 1 || q[0].Type != kind || !strings.EqualFold(strings.TrimSuffix(q[0].Name.String(), "."),
		strings.TrimSuffix(name, ".")) {
		return 0, fmt.Errorf("look up %s: the response is for another question", name)
	}
	if h.RCode == dnsmessage.RCodeNameError {
		return negativeTTL, nil
	}
	if h.RCode != dnsmessage.RCodeSuccess {
		return 0, fmt.Errorf("look up %s: the name server returned %s", name, h.RCode)
	}
	ttl, found := time.Duration(0), false
	for {
		rh, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			break
		}
		if err != nil {
			return 0, err
		}
		if rh.Type != kind {
			if err := p.SkipAnswer(); err != nil {
				return 0, err
			}
			continue
		}
		if err := each(&p); err != nil {
			return 0, err
		}
		if t := time.Duration(rh.TTL) * time.Second; !found || t < ttl {
			ttl, found = t, true
		}
	}
	if !found {
		return negativeTTL, nil
	}
	return ttl, nil
}

// systemServers returns the name servers of this machine.
func systemServers() (all []netip.AddrPort) {
	f, err := os.Open("/etc/resolv.conf")
	if err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan() && len(all) < 3; {
			words := strings.Fields(s.Text())
			if len(words) < 2 || words[0] != "nameserver" {
				continue
			}
			if a, err := netip.ParseAddr(words[1]); err == nil {
				all = append(all, netip.AddrPortFrom(a, 53))
			}
		}
	}
	if len(all) == 0 {
		all = append(all, netip.MustParseAddrPort("127.0.0.1:53"))
	}
	return all
}
