package sip_test

import (
	"bufio"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// peer is a hand-driven SIP element on a socket.
type peer struct {
	t         testing.TB
	conn      net.Conn // connected
	in        *bufio.Reader
	tcp       bool
	webSocket bool
}

func newPeer(t testing.TB, network string, server *testServer) *peer {
	t.Helper()
	conn, err := net.Dial(network, server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &peer{t: t, conn: conn, in: bufio.NewReaderSize(conn, 65536), tcp: network == "tcp"}
}

func (p *peer) send(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.conn, strings.ReplaceAll(format, "\n", "\r\n"), args...); err != nil {
		p.t.Fatal(err)
	}
}

// read returns the next message.
func (p *peer) read() string {
	p.t.Helper()
	p.conn.SetReadDeadline(time.Now().Add(testTimeout))
	if !p.tcp {
		buf := make([]byte, 65536)
		n, err := p.conn.Read(buf)
		if err != nil {
			p.t.Fatalf("nothing came: %v", err)
		}
		return string(buf[:n])
	}
	return p.readStream()
}

func (p *peer) readStream() string {
	p.t.Helper()
	var b strings.Builder
	for {
		line, err := p.in.ReadString('\n')
		if err != nil {
			p.t.Fatalf("nothing came: %v", err)
		}
		b.WriteString(line)
		if line == "\r\n" && b.Len() > 2 {
			break
		}
	}
	n, _ := strconv.Atoi(headerValue(b.String(), "Content-Length"))
	body := make([]byte, n)
	io.ReadFull(p.in, body)
	return b.String() + string(body)
}

// wantMessage reads the next message, skipping 100 Trying, and fails unless it has that prefix.
func (p *peer) wantMessage(start string) string {
	p.t.Helper()
	m := p.read()
	for strings.HasPrefix(m, "SIP/2.0 100") {
		m = p.read()
	}
	if !strings.HasPrefix(m, start) {
		p.t.Fatalf("want %s, got:\n%s", start, m)
	}
	return m
}

// wantSilence fails if a message arrives within d.
func (p *peer) wantSilence(d time.Duration) {
	p.t.Helper()
	p.conn.SetReadDeadline(time.Now().Add(d))
	buf := make([]byte, 65536)
	if n, err := p.conn.Read(buf); err == nil {
		p.t.Fatalf("want silence, got:\n%s", buf[:n])
	}
}

// headerValue returns the first value of a header field.
func headerValue(m, name string) string {
	for _, l := range strings.Split(m, "\r\n") {
		if n, v, ok := strings.Cut(l, ":"); ok && strings.EqualFold(n, name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

var requestSerial atomic.Int64

// sendRequest sends a request outside dialogs.
func (p *peer) sendRequest(method, user, callID string, seq int, extra string) {
	p.t.Helper()
	network := "UDP"
	if p.tcp {
		network = "TCP"
	}
	local, remote := p.conn.LocalAddr().String(), p.conn.RemoteAddr().String()
	if p.webSocket {
		network, local, remote = "WS", "phone.invalid", "pbx.example"
	}
	p.send("%s sip:%s SIP/2.0\nVia: SIP/2.0/%s %s;branch=z9hG4bK%d;rport\nMax-Forwards: 70\nFrom: <sip:%s@x>;tag=f%s\nTo: <sip:%s@x>\nCall-ID: %s\nCSeq: %d %s\nContact: <sip:%s@%s>\n%sContent-Length: 0\n\n",
		method, remote, network, local, requestSerial.Add(1), user, callID, user, callID, seq, method, user, local, extra)
}

// respond sends a response to a request.
func (p *peer) respond(req string, status int, tag, extra string) {
	p.t.Helper()
	to := headerValue(req, "To")
	if tag != "" {
		to += ";tag=" + tag
	}
	p.send("SIP/2.0 %d x\nVia: %s\nFrom: %s\nTo: %s\nCall-ID: %s\nCSeq: %s\n%sContent-Length: 0\n\n",
		status, headerValue(req, "Via"), headerValue(req, "From"), to, headerValue(req, "Call-ID"), headerValue(req, "CSeq"), extra)
}

var quotedParam = regexp.MustCompile(`(\w+)="?([^",]*)"?`)

// digestAuthorization answers a challenge as a phone does.
func digestAuthorization(challenge, user, password, method string, nc int) string {
	return digestAuthorizationFor("sip:x", challenge, user, password, method, nc)
}

// digestAuthorizationFor answers a challenge for a request URI.
func digestAuthorizationFor(uri, challenge, user, password, method string, nc int) string {
	p := map[string]string{}
	for _, m := range quotedParam.FindAllStringSubmatch(challenge, -1) {
		p[m[1]] = m[2]
	}
	h := func(s string) string { x := md5.Sum([]byte(s)); return hex.EncodeToString(x[:]) }
	alg := "MD5"
	if strings.Contains(challenge, "algorithm=SHA-256") {
		h = func(s string) string { x := sha256.Sum256([]byte(s)); return hex.EncodeToString(x[:]) }
		alg = "SHA-256"
	}
	count := fmt.Sprintf("%08x", nc)
	response := h(h(user+":"+p["realm"]+":"+password) + ":" + p["nonce"] + ":" + count + ":abc:auth:" + h(method+":"+uri))
	return fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", response="%s", algorithm=%s, cnonce="abc", qop=auth, nc=%s`,
		user, p["realm"], p["nonce"], uri, response, alg, count)
}
