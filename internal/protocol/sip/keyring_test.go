package sip_test

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// authorizationFor returns the credentials of a request for a realm.
func loginOf(m, header, realm string) map[string]string {
	for _, line := range strings.Split(m, "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		if name != header || !strings.Contains(value, `realm="`+realm+`"`) {
			continue
		}
		p := map[string]string{}
		for _, f := range quotedParam.FindAllStringSubmatch(value, -1) {
			p[f[1]] = f[2]
		}
		return p
	}
	return nil
}

func sumOf(alg string, parts ...string) string {
	text := strings.Join(parts, ":")
	if alg == "SHA-256" {
		x := sha256.Sum256([]byte(text))
		return hex.EncodeToString(x[:])
	}
	x := md5.Sum([]byte(text))
	return hex.EncodeToString(x[:])
}

// validAuthorization reports whether credentials are those of user al with password secret.
func right(p map[string]string, method, body string) bool {
	a2 := []string{method, p["uri"]}
	if p["qop"] == "auth-int" {
		a2 = append(a2, sumOf(p["algorithm"], body))
	}
	ha1, ha2 := sumOf(p["algorithm"], "al", p["realm"], "secret"), sumOf(p["algorithm"], a2...)
	if p["qop"] == "" {
		return p["response"] == sumOf(p["algorithm"], ha1, p["nonce"], ha2)
	}
	return p["response"] == sumOf(p["algorithm"], ha1, p["nonce"], p["nc"], p["cnonce"], p["qop"], ha2)
}

var secret = sip.Credentials{Username: "al", Password: "secret"}

// challengedCall places a call with credentials to a peer and returns its INVITE.
func challenged(t *testing.T) (p *peer, leg *sip.Leg, e events, invite string) {
	t.Helper()
	server := listen(t, sip.Config{})
	p, e = newPeer(t, "udp", server), newEvents()
	leg, err := server.Server.Invite(within(t), sip.Outgoing{
		URI: "sip:bob@" + p.conn.LocalAddr().String(), SDP: offerSDP, Credentials: secret,
	}, e.on)
	if err != nil {
		t.Fatal(err)
	}
	return p, leg, e, p.expect("INVITE ")
}

func challenge(realm, nonce, more string) string {
	return fmt.Sprintf("Digest realm=%q, nonce=%q%s\n", realm, nonce, more)
}

func TestEveryChallengeOnTheWayIsAnswered(t *testing.T) {
	t.Parallel()
	p, leg, e, invite := challenged(t)
	contact := "Contact: <sip:bob@" + p.conn.LocalAddr().String() + ">\n"

	// A proxy, then another behind it, then the far end with two challenges.
	p.answer(invite, 407, "one", "Proxy-Authenticate: "+challenge("edge", "n1", `, qop="auth"`)+"Proxy-Authenticate: "+challenge("core", "n2", ""))
	p.expect("ACK ")
	invite = p.expect("INVITE ")
	for _, realm := range []string{"edge", "core"} {
		if l := loginOf(invite, "Proxy-Authorization", realm); l == nil || !right(l, "INVITE", "") {
			t.Errorf("realm %s got %v", realm, l)
		}
	}
	p.answer(invite, 401, "two", "WWW-Authenticate: "+challenge("far", "n3", `, algorithm=MD5, qop="auth"`)+
		"WWW-Authenticate: "+challenge("far", "n4", `, algorithm=SHA-256, qop="auth-int,auth"`)+
		"WWW-Authenticate: "+challenge("far", "n5", `, algorithm=SHA-512-256, qop="auth"`))
	p.expect("ACK ")
	invite = p.expect("INVITE ")
	far := loginOf(invite, "Authorization", "far")
	if far["nonce"] != "n4" || far["qop"] != "auth" || !right(far, "INVITE", "") {
		t.Errorf("the far end got %v", far)
	}
	if again := loginOf(invite, "Proxy-Authorization", "edge"); again["nc"] != "00000002" || !right(again, "INVITE", "") {
		t.Errorf("the first proxy got %v the second time", again)
	}
	p.answer(invite, 200, "three", contact+"Content-Type: text/plain\n")
	ack := p.expect("ACK ")
	if l := loginOf(ack, "Authorization", "far"); l["response"] != far["response"] {
		t.Errorf("the ACK carries %v, the INVITE %v", l, far) // RFC 3261 §22.1
	}
	want[sip.Answered](t, e)

	// Inside the dialog: known challenges are answered in advance, new ones after the 407.
	leg.Bye(sip.Reason{})
	bye := p.expect("BYE ")
	if l := loginOf(bye, "Proxy-Authorization", "edge"); l["nc"] != "00000003" || !right(l, "BYE", "") {
		t.Errorf("the BYE carries %v", l)
	}
	p.answer(bye, 407, "", "Proxy-Authenticate: "+challenge("edge", "n6", `, qop="auth", stale=TRUE`))
	bye = p.expect("BYE ")
	if l := loginOf(bye, "Proxy-Authorization", "edge"); l["nonce"] != "n6" || l["nc"] != "00000001" || !right(l, "BYE", "") {
		t.Errorf("the second BYE carries %v", l)
	}
	p.answer(bye, 200, "", "")
	want[sip.Closed](t, e)
}

func TestIntegrityOfTheBodyIsProtectedWhereAsked(t *testing.T) {
	t.Parallel()
	p, _, _, invite := challenged(t)
	p.answer(invite, 401, "one", "WWW-Authenticate: "+challenge("far", "n", `, qop="auth-int", opaque="o"`))
	p.expect("ACK ")
	invite = p.expect("INVITE ")
	if l := loginOf(invite, "Authorization", "far"); l["qop"] != "auth-int" || l["opaque"] != "o" || !right(l, "INVITE", string(offerSDP)) {
		t.Errorf("got %v", l)
	}
}

func TestAWrongPasswordIsTriedOnce(t *testing.T) {
	t.Parallel()
	p, _, e, invite := challenged(t)
	for i := range 2 {
		p.answer(invite, 401, "one", "WWW-Authenticate: "+challenge("far", fmt.Sprint("n", i), ""))
		p.expect("ACK ")
		if i == 0 {
			invite = p.expect("INVITE ")
		}
	}
	if f := want[sip.Failed](t, e); f.Status != 401 {
		t.Errorf("got %+v, want 401", f)
	}
}

func TestEndlessStaleNoncesEnd(t *testing.T) {
	t.Parallel()
	p, _, e, invite := challenged(t)
	stale := func(i int) {
		p.answer(invite, 401, "one", "WWW-Authenticate: "+challenge("far", fmt.Sprint("n", i), ", stale=true"))
		p.expect("ACK ")
	}
	for i := range 8 {
		stale(i)
		invite = p.expect("INVITE ")
	}
	stale(8)
	if f := want[sip.Failed](t, e); f.Status != 401 {
		t.Errorf("got %+v, want 401", f)
	}
}

// newFakeRegistrar returns a hand-driven registrar on a socket, with a client that registers there.
func registrar(t *testing.T, r sip.Registration) (*peer, *sip.Registered, chan sip.RegistrationStatus) {
	t.Helper()
	phone := listen(t, sip.Config{})
	p, told := newPeer(t, "udp", phone), make(chan sip.RegistrationStatus, 64)
	r.Registrar, r.AOR, r.Credentials = sip.Target{Host: p.conn.LocalAddr().String()}, "sip:al@trunk.example", secret
	r.OnStatus = func(s sip.RegistrationStatus) { told <- s }
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	reg, err := phone.KeepRegistered(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return p, reg, told
}

func TestATrunkStaysRegistered(t *testing.T) {
	t.Parallel()
	p, reg, told := registrar(t, sip.Registration{ContactUser: "4930", Retry: time.Millisecond})
	first := p.expect("REGISTER ")
	if !strings.HasPrefix(headerOf(first, "Contact"), "<sip:4930@127.0.0.1:") || headerOf(first, "Expires") != "3600" {
		t.Errorf("got:\n%s", first)
	}
	p.answer(first, 503, "r", "Retry-After: 1\n")
	if s := <-told; s.Registered || s.Status != 503 || s.Next < 700*time.Millisecond {
		t.Errorf("told %+v", s)
	}
	r := p.expect("REGISTER ")
	p.answer(r, 401, "r", "WWW-Authenticate: "+challenge("far", "n1", `, qop="auth"`))
	r = p.expect("REGISTER ")
	if l := loginOf(r, "Authorization", "far"); !right(l, "REGISTER", "") {
		t.Errorf("got %v", l)
	}
	p.answer(r, 423, "r", "Min-Expires: 7200\n")
	if r = p.expect("REGISTER "); headerOf(r, "Expires") != "7200" || headerOf(r, "Call-ID") != headerOf(first, "Call-ID") {
		t.Errorf("after 423:\n%s", r)
	}
	p.answer(r, 200, "r", "Contact: <sip:other@x>;expires=9999, "+headerOf(r, "Contact")+";expires=2\n")
	if s := <-told; !s.Registered || s.Expires != 2*time.Second || s.Next > time.Second || s.Registrar.String() != p.conn.LocalAddr().String() {
		t.Errorf("told %+v", s)
	}
	r = p.expect("REGISTER ") // at half the time, with the nonce it knows
	if l := loginOf(r, "Authorization", "far"); l["nonce"] != "n1" || !right(l, "REGISTER", "") {
		t.Errorf("the refresh carries %v", l)
	}
	p.answer(r, 200, "r", "Contact: "+headerOf(r, "Contact")+";expires=100\n")
	<-told
	gone := make(chan error, 1)
	go func() { gone <- reg.Unregister(within(t)) }()
	r = p.expect("REGISTER ")
	if headerOf(r, "Expires") != "0" {
		t.Errorf("unregistering:\n%s", r)
	}
	p.answer(r, 200, "r", "")
	if err := <-gone; err != nil {
		t.Error(err)
	}
	if s := <-told; s.Registered || s.Next != 0 {
		t.Errorf("told %+v at the end", s)
	}
}

func TestAWrongPasswordIsNotHammered(t *testing.T) {
	t.Parallel()
	p, _, told := registrar(t, sip.Registration{Retry: time.Minute})
	for i := range 2 {
		p.answer(p.expect("REGISTER "), 401, "r", "WWW-Authenticate: "+challenge("far", fmt.Sprint("n", i), ""))
	}
	if s := <-told; s.Status != 401 || s.Next < 3*time.Minute {
		t.Errorf("told %+v", s)
	}
}

func TestRegisterFailsAtOnceWhereKeepWaits(t *testing.T) {
	t.Parallel()
	phone := listen(t, sip.Config{})
	p := newPeer(t, "udp", phone)
	go func() {
		p.answer(p.read(), 403, "r", "")
	}()
	_, err := phone.Register(within(t), sip.Registration{Registrar: sip.Target{Host: p.conn.LocalAddr().String()}, AOR: "sip:al@x"})
	var status *sip.StatusError
	if !errors.As(err, &status) || status.Status != 403 {
		t.Errorf("got %v, want 403", err)
	}
	if _, err := phone.KeepRegistered(within(t), sip.Registration{AOR: "nonsense"}); err == nil {
		t.Error("nonsense is kept")
	}
}
