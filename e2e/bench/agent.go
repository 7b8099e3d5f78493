package main

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// agent is one end of calls: it registers, calls and answers, and names the address for audio. It implements just
// enough SIP.
type agent struct {
	conn  *net.UDPConn
	local netip.AddrPort
	audio func() (seat int, at netip.AddrPort) // address for the audio of the next call
	rung  chan time.Time                       // if set, calls are refused as busy, and their time is sent here

	mu      sync.Mutex // guards the fields below
	waiting map[string]chan sipText
	heard   map[string]taken // calls that came in, by Call-ID
}

// taken is an incoming call: the index of its socket here, and the peer's address for audio.
type taken struct {
	seat int
	far  netip.AddrPort
}

// sipText is a SIP message as text.
type sipText string

func (m sipText) field(name string) string { return strings.Join(m.fields(name), ", ") }

func (m sipText) fields(name string) (all []string) {
	for line := range strings.SplitSeq(string(m), "\r\n") {
		if n, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(strings.TrimSpace(n), name) {
			all = append(all, strings.TrimSpace(v))
		}
	}
	return all
}

var audioAddress = regexp.MustCompile(`(?s)c=IN IP4 (\S+).*m=audio (\d+)`)

// target returns the address for audio in the SDP of the message.
func (m sipText) target() netip.AddrPort {
	found := audioAddress.FindStringSubmatch(string(m))
	if found == nil {
		return netip.AddrPort{}
	}
	a, _ := netip.ParseAddrPort(found[1] + ":" + found[2])
	return a
}

func newAgent(address string, audio func() (int, netip.AddrPort)) (*agent, error) {
	a, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	conn, err := net.ListenUDP("udp", a)
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(4 << 20)
	g := &agent{conn: conn, local: conn.LocalAddr().(*net.UDPAddr).AddrPort(), audio: audio, waiting: map[string]chan sipText{},
		heard: map[string]taken{}}
	go g.read()
	return g, nil
}

func (g *agent) close() { _ = g.conn.Close() }

func (g *agent) read() {
	b := make([]byte, 65536)
	for {
		n, from, err := g.conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		m := sipText(b[:n])
		switch {
		case strings.HasPrefix(string(m), "SIP/2.0 1"):
		case strings.HasPrefix(string(m), "SIP/2.0 "):
			g.mu.Lock()
			c := g.waiting[m.field("Call-ID")+m.field("CSeq")]
			g.mu.Unlock()
			select {
			case c <- m:
			default: // repeated, or of an unknown call
			}
		case strings.HasPrefix(string(m), "INVITE "):
			g.answer(m, from)
		case strings.HasPrefix(string(m), "ACK "):
		default:
			g.respond(m, from, "200 OK", "", "")
		}
	}
}

// answer answers a call at once.
func (g *agent) answer(m sipText, from netip.AddrPort) {
	if g.rung != nil {
		select {
		case g.rung <- time.Now():
		default:
		}
		g.respond(m, from, "486 Busy Here", "", "")
		return
	}
	seat, at := g.audio()
	g.mu.Lock()
	g.heard[m.field("Call-ID")] = taken{seat, m.target()}
	g.mu.Unlock()
	extra := fmt.Sprintf("Contact: <sip:callee@%s>\r\n", g.local)
	for _, r := range m.fields("Record-Route") {
		extra += "Record-Route: " + r + "\r\n"
	}
	g.respond(m, from, "200 OK", extra, description(at))
}

func (g *agent) respond(m sipText, to netip.AddrPort, status, extra, body string) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "SIP/2.0 %s\r\n", status)
	for _, v := range m.fields("Via") {
		fmt.Fprintf(&b, "Via: %s\r\n", v)
	}
	tag := m.field("To")
	if !strings.Contains(tag, "tag=") {
		tag += ";tag=callee"
	}
	fmt.Fprintf(&b, "From: %s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %s\r\n%s", m.field("From"), tag, m.field("Call-ID"), m.field("CSeq"), extra)
	writeBody(&b, body)
	_, _ = g.conn.WriteToUDPAddrPort(b.Bytes(), to)
}

func writeBody(b *bytes.Buffer, body string) {
	if body != "" {
		b.WriteString("Content-Type: application/sdp\r\n")
	}
	fmt.Fprintf(b, "Content-Length: %d\r\n\r\n%s", len(body), body)
}

func description(audio netip.AddrPort) string {
	return fmt.Sprintf("v=0\r\no=- 1 1 IN IP4 %[1]s\r\ns=-\r\nc=IN IP4 %[1]s\r\nt=0 0\r\nm=audio %[2]d RTP/AVP 0 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\na=ptime:20\r\n",
		audio.Addr(), audio.Port())
}

// dialog is an outgoing call of this agent.
type dialog struct {
	agent  *agent
	server netip.AddrPort
	id, to string
	target string // of requests
	routes []string
	taken
	took time.Duration // from INVITE to 200
}

// request sends one, repeats it until it is answered, and returns the final answer.
func (g *agent) request(server netip.AddrPort, id, method, uri, cseq, more, body string) (sipText, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bK%s%s;rport\r\nMax-Forwards: 70\r\nCall-ID: %s\r\nCSeq: %s %s\r\nContact: <sip:caller@%s>\r\n%s",
		method, uri, g.local, id, cseq+method, id, cseq, method, g.local, more)
	writeBody(&b, body)
	if method == "ACK" {
		_, err := g.conn.WriteToUDPAddrPort(b.Bytes(), server)
		return "", err
	}
	c := make(chan sipText, 1)
	key := id + cseq + " " + method
	g.mu.Lock()
	g.waiting[key] = c
	g.mu.Unlock()
	defer func() { g.mu.Lock(); delete(g.waiting, key); g.mu.Unlock() }()
	for range 10 {
		if _, err := g.conn.WriteToUDPAddrPort(b.Bytes(), server); err != nil {
			return "", err
		}
		select {
		case m := <-c:
			return m, nil
		case <-time.After(time.Second):
		}
	}
	return "", fmt.Errorf("%s %s: no answer", method, uri)
}

// dial calls the number and waits until it is answered.
func (g *agent) dial(server, id string) (*dialog, error) {
	to, err := netip.ParseAddrPort(server)
	if err != nil {
		return nil, err
	}
	uri := "sip:" + did + "@" + server
	head := fmt.Sprintf("From: <sip:+12125550177@%s>;tag=%s\r\n", g.local.Addr(), id)
	seat, at := g.audio()
	began := time.Now()
	m, err := g.request(to, id, "INVITE", uri, "1", head+"To: <"+uri+">\r\n", description(at))
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(m), "SIP/2.0 200") {
		line, _, _ := strings.Cut(string(m), "\r\n")
		return nil, fmt.Errorf("the call was answered with %s", line)
	}
	contact := strings.Trim(strings.SplitN(m.field("Contact"), ">", 2)[0], "<>")
	d := &dialog{agent: g, server: to, id: id, to: m.field("To"), target: contact, routes: m.fields("Record-Route"),
		taken: taken{seat, m.target()}, took: time.Since(began)}
	_, err = g.request(to, id, "ACK", d.target, "1", d.head(), "")
	return d, err
}

func (d *dialog) head() string {
	s := fmt.Sprintf("From: <sip:+12125550177@%s>;tag=%s\r\nTo: %s\r\n", d.agent.local.Addr(), d.id, d.to)
	for i := len(d.routes) - 1; i >= 0; i-- {
		s += "Route: " + d.routes[i] + "\r\n"
	}
	return s
}

func (d *dialog) bye() error {
	_, err := d.agent.request(d.server, d.id, "BYE", d.target, "2", d.head(), "")
	return err
}

// register registers this agent's address as a phone.
func (g *agent) register(server, username, password string) error {
	to, err := netip.ParseAddrPort(server)
	if err != nil {
		return err
	}
	uri, id := "sip:"+server, "register"+strconv.Itoa(int(time.Now().UnixNano()%1e9))
	head := fmt.Sprintf("From: <sip:%[1]s@%[2]s>;tag=r\r\nTo: <sip:%[1]s@%[2]s>\r\nExpires: 3600\r\n", username, server)
	m, err := g.request(to, id, "REGISTER", uri, "1", head, "")
	if err != nil {
		return err
	}
	challenge := m.field("WWW-Authenticate")
	m, err = g.request(to, id, "REGISTER", uri, "2", head+"Authorization: "+digest(challenge, username, password, uri)+"\r\n", "")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(m), "SIP/2.0 200") {
		return fmt.Errorf("register: %s", m)
	}
	return nil
}

var challengeValue = regexp.MustCompile(`(realm|nonce|opaque)="([^"]*)"`)

func digest(challenge, username, password, uri string) string {
	v := map[string]string{}
	for _, m := range challengeValue.FindAllStringSubmatch(challenge, -1) {
		v[m[1]] = m[2]
	}
	hash := func(s string) string { h := md5.Sum([]byte(s)); return hex.EncodeToString(h[:]) }
	response := hash(hash(username+":"+v["realm"]+":"+password) + ":" + v["nonce"] + ":00000001:bench:auth:" + hash("REGISTER:"+uri))
	return fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", response="%s", algorithm=MD5, qop=auth, nc=00000001, cnonce="bench", opaque="%s"`,
		username, v["realm"], v["nonce"], uri, response, v["opaque"])
}
