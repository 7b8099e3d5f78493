package sip_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// traceRecorder collects the trace entries of a server.
type traceRecorder struct {
	mu  sync.Mutex
	all []transport.TraceEntry
}

func (c *traceRecorder) Trace(e transport.TraceEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, e)
}

func (c *traceRecorder) entries() []transport.TraceEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

func TestTrace_CallWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			var c traceRecorder
			book := newFakeDirectory().addAccount("alice", "secret")
			server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Tracer: &c})
			p := newPeer(t, transport, server)
			p.sendRequest("INVITE", "alice", "call-1", 1, "")
			challenge := headerValue(p.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
			login := digestAuthorization(challenge, "alice", "secret", "INVITE", 1)
			p.sendRequest("INVITE", "alice", "call-1", 2, "Proxy-Authorization: "+login+"\n")
			in := server.wantInbound(t)
			in.Listen(func(sip.Event) {})
			in.Answer([]byte("v=0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:SRTPKEY|2^31 UNENCRYPTED_SRTP\r\na=ice-ufrag:abc\r\na=ice-pwd:ICEPASSWORD\r\nk=clear:OLDKEY\r\n"))
			if ok := p.wantMessage("SIP/2.0 200"); !strings.Contains(ok, "SRTPKEY") {
				t.Fatalf("the peer itself got no key:\n%s", ok)
			}
			_, response, _ := strings.Cut(login, `response="`)
			response, _, _ = strings.Cut(response, `"`)
			var starts []string
			for _, e := range c.entries() {
				raw := e.Message.String()
				for _, secret := range []string{response, "SRTPKEY", "ICEPASSWORD", "OLDKEY"} {
					if strings.Contains(raw, secret) {
						t.Errorf("%s is shown:\n%s", secret, raw)
					}
				}
				if e.CallID != "call-1" || e.Transport != sipmsg.Transport(transport) || e.At.IsZero() ||
					e.Local != server.Addr() || e.Remote.String() != p.conn.LocalAddr().String() {
					t.Errorf("entry %+v", e)
				}
				line, _, _ := strings.Cut(raw, "\r\n")
				starts = append(starts, fmt.Sprint(e.Sent, " ", strings.Join(strings.Fields(line)[:2], " ")))
			}
			want := "false INVITE sip:" + server.Addr().String() + "|true SIP/2.0 100|true SIP/2.0 407|false INVITE sip:" + server.Addr().String() + "|true SIP/2.0 100|true SIP/2.0 200"
			if got := strings.Join(starts, "|"); got != want {
				t.Errorf("traced\n%s\nwant\n%s", got, want)
			}
			all := ""
			for _, e := range c.entries() {
				all += e.Message.String()
			}
			for _, kept := range []string{`username="alice"`, "a=ice-ufrag:abc", "inline:***", "AES_CM_128_HMAC_SHA1_80", `response="***"`} {
				if !strings.Contains(all, kept) {
					t.Errorf("%s is not shown", kept)
				}
			}
		})
	}
}

func TestTrace_CredentialsRedacted(t *testing.T) {
	t.Parallel()
	var c traceRecorder
	server := newTestServer(t, sip.Config{Tracer: &c})
	p := newPeer(t, "udp", server)
	for i, header := range []string{
		"AUTHORIZATION : Digest username=\"a\",\n  RESPONSE = \"hidden\"\n", "Authorization: Basic hidden\n",
		"Proxy-Authorization: Digest response=hidden\n", "Authorization: Bearer hidden\n", "Authentication-Info: rspauth=\"hidden\"\n",
	} {
		p.sendRequest("OPTIONS", "x", fmt.Sprint("o", i), 1, header)
		p.wantMessage("SIP/2.0 200")
	}
	for _, e := range c.entries() {
		if strings.Contains(e.Message.String(), "hidden") {
			t.Errorf("shown:\n%s", e.Message)
		}
	}
	if n := len(c.entries()); n != 10 {
		t.Errorf("%d entries", n)
	}
}

func TestTrace_DTMFRedacted(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{"Signal=5\r\nDuration=160\r\n": "Signal=***\r\nDuration=160\r\n", "signal = 11\r\n": "signal =***\r\n", "7": "***",
		"<xml>5</xml>": "<xml>5</xml>"} {
		head := "INFO sip:a@b SIP/2.0\r\nCSeq: 5 INFO\r\n\r\n"
		if got := transport.NewRawMessage(head + body).String(); got != head+want {
			t.Errorf("%q is shown as %q", body, got)
		}
	}
	if other := "SIP/2.0 200 OK\r\n\r\nSignal=5"; transport.NewRawMessage(other).String() != other {
		t.Errorf("%q is changed", other)
	}
}
