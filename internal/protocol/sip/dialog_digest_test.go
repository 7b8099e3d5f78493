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
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
)

// authorizationFor returns the credentials of a request for a realm.
func authorizationFor(m, header, realm string) map[string]string {
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

func digestSum(alg string, parts ...string) string {
	text := strings.Join(parts, ":")
	if alg == "SHA-256" {
		x := sha256.Sum256([]byte(text))
		return hex.EncodeToString(x[:])
	}
	x := md5.Sum([]byte(text))
	return hex.EncodeToString(x[:])
}

// validAuthorization reports whether credentials are those of user al with password secret.
func validAuthorization(p map[string]string, method, body string) bool {
	a2 := []string{method, p["uri"]}
	if p["qop"] == "auth-int" {
		a2 = append(a2, digestSum(p["algorithm"], body))
	}
	ha1, ha2 := digestSum(p["algorithm"], "al", p["realm"], "secret"), digestSum(p["algorithm"], a2...)
	if p["qop"] == "" {
		return p["response"] == digestSum(p["algorithm"], ha1, p["nonce"], ha2)
	}
	return p["response"] == digestSum(p["algorithm"], ha1, p["nonce"], p["nc"], p["cnonce"], p["qop"], ha2)
}

var secret = digest.Credentials{Username: "al", Password: "secret"}

// challengedCall places a call with credentials to a peer and returns its INVITE.
func challengedCall(t *testing.T) (p *peer, leg *sip.Leg, e eventLog, invite string) {
	t.Helper()
	server := newTestServer(t, sip.Config{})
	p, e = newPeer(t, "udp", server), newEventLog()
	leg, err := server.Server.Invite(testContext(t), sip.Outgoing{
		URI: "sip:bob@" + p.conn.LocalAddr().String(), SDP: testOfferSDP, Credentials: secret,
	}, e.record)
	if err != nil {
		t.Fatal(err)
	}
	return p, leg, e, p.wantMessage("INVITE ")
}

func digestChallengeFields(realm, nonce, more string) string {
	return fmt.Sprintf("Digest realm=%q, nonce=%q%s\n", realm, nonce, more)
}

func TestDigestClient_AnswersAllChallenges(t *testing.T) {
	t.Parallel()
	p, leg, e, invite := challengedCall(t)
	contact := "Contact: <sip:bob@" + p.conn.LocalAddr().String() + ">\n"

	// Two proxies and the registrar of one carrier, which asks for a stronger algorithm the second time.
	p.respond(invite, 407, "one", "Proxy-Authenticate: "+digestChallengeFields("edge", "n1", `, qop="auth"`)+
		"Proxy-Authenticate: "+digestChallengeFields("core", "n2", "")+"WWW-Authenticate: "+digestChallengeFields("far", "n0", ""))
	p.wantMessage("ACK ")
	invite = p.wantMessage("INVITE ")
	for _, realm := range []string{"edge", "core"} {
		if l := authorizationFor(invite, "Proxy-Authorization", realm); l == nil || !validAuthorization(l, "INVITE", "") {
			t.Errorf("realm %s got %v", realm, l)
		}
	}
	p.respond(invite, 401, "two", "WWW-Authenticate: "+digestChallengeFields("far", "n3", `, stale=true, algorithm=MD5, qop="auth"`)+
		"WWW-Authenticate: "+digestChallengeFields("far", "n4", `, stale=true, algorithm=SHA-256, qop="auth-int,auth"`)+
		"WWW-Authenticate: "+digestChallengeFields("far", "n5", `, algorithm=SHA-512-256, qop="auth"`))
	p.wantMessage("ACK ")
	invite = p.wantMessage("INVITE ")
	far := authorizationFor(invite, "Authorization", "far")
	if far["nonce"] != "n4" || far["qop"] != "auth" || !validAuthorization(far, "INVITE", "") {
		t.Errorf("the far end got %v", far)
	}
	if again := authorizationFor(invite, "Proxy-Authorization", "edge"); again["nc"] != "00000002" || !validAuthorization(again, "INVITE", "") {
		t.Errorf("the first proxy got %v the second time", again)
	}
	p.respond(invite, 200, "three", contact+"Content-Type: text/plain\n")
	ack := p.wantMessage("ACK ")
	if l := authorizationFor(ack, "Authorization", "far"); l["response"] != far["response"] {
		t.Errorf("the ACK carries %v, the INVITE %v", l, far) // RFC 3261 §22.1
	}
	wantEvent[sip.Answered](t, e)

	// Inside the dialog: known challenges are answered in advance, new ones after the 407.
	leg.Bye(sip.Reason{})
	bye := p.wantMessage("BYE ")
	if l := authorizationFor(bye, "Proxy-Authorization", "edge"); l["nc"] != "00000003" || !validAuthorization(l, "BYE", "") {
		t.Errorf("the BYE carries %v", l)
	}
	p.respond(bye, 407, "", "Proxy-Authenticate: "+digestChallengeFields("edge", "n6", `, qop="auth", stale=TRUE`))
	bye = p.wantMessage("BYE ")
	if l := authorizationFor(bye, "Proxy-Authorization", "edge"); l["nonce"] != "n6" || l["nc"] != "00000001" || !validAuthorization(l, "BYE", "") {
		t.Errorf("the second BYE carries %v", l)
	}
	p.respond(bye, 200, "", "")
	wantEvent[sip.Closed](t, e)
}

func TestDigestClient_AuthInt(t *testing.T) {
	t.Parallel()
	p, _, _, invite := challengedCall(t)
	p.respond(invite, 401, "one", "WWW-Authenticate: "+digestChallengeFields("far", "n", `, qop="auth-int", opaque="o"`))
	p.wantMessage("ACK ")
	invite = p.wantMessage("INVITE ")
	if l := authorizationFor(invite, "Authorization", "far"); l["qop"] != "auth-int" || l["opaque"] != "o" || !validAuthorization(l, "INVITE", string(testOfferSDP)) {
		t.Errorf("got %v", l)
	}
}

func TestDigestClient_WrongPasswordTriedOnce(t *testing.T) {
	t.Parallel()
	p, _, e, invite := challengedCall(t)
	for i := range 2 {
		p.respond(invite, 401, "one", "WWW-Authenticate: "+digestChallengeFields("far", fmt.Sprint("n", i), ""))
		p.wantMessage("ACK ")
		if i == 0 {
			invite = p.wantMessage("INVITE ")
		}
	}
	if f := wantEvent[sip.Failed](t, e); f.Status != 401 {
		t.Errorf("got %+v, want 401", f)
	}
}

func TestDigestClient_StaleNoncesAreLimited(t *testing.T) {
	t.Parallel()
	p, _, e, invite := challengedCall(t)
	stale := func(i int) {
		p.respond(invite, 401, "one", "WWW-Authenticate: "+digestChallengeFields("far", fmt.Sprint("n", i), ", stale=true"))
		p.wantMessage("ACK ")
	}
	for i := range 8 {
		stale(i)
		invite = p.wantMessage("INVITE ")
	}
	stale(8)
	if f := wantEvent[sip.Failed](t, e); f.Status != 401 {
		t.Errorf("got %+v, want 401", f)
	}
}

// newFakeRegistrar returns a hand-driven registrar on a socket, with a client that registers there.
func newFakeRegistrar(t *testing.T, r sip.RegistrationConfig) (*peer, *sip.ClientRegistration, chan sip.RegistrationStatus) {
	t.Helper()
	phone := newTestServer(t, sip.Config{})
	p, told := newPeer(t, "udp", phone), make(chan sip.RegistrationStatus, 64)
	r.Registrar, r.AOR, r.Credentials = resolve.Target{Host: p.conn.LocalAddr().String()}, "sip:al@trunk.example", secret
	r.OnStatus = func(s sip.RegistrationStatus) { told <- s }
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	reg, err := phone.KeepRegistered(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return p, reg, told
}

func TestRegisterClient_StaysRegistered(t *testing.T) {
	t.Parallel()
	p, reg, told := newFakeRegistrar(t, sip.RegistrationConfig{ContactUser: "4930", Retry: time.Millisecond})
	first := p.wantMessage("REGISTER ")
	if !strings.HasPrefix(headerValue(first, "Contact"), "<sip:4930@127.0.0.1:") || headerValue(first, "Expires") != "3600" {
		t.Errorf("got:\n%s", first)
	}
	p.respond(first, 503, "r", "Retry-After: 1\n")
	if s := <-told; s.Registered || s.Status != 503 || s.NextAttempt < 700*time.Millisecond {
		t.Errorf("told %+v", s)
	}
	r := p.wantMessage("REGISTER ")
	p.respond(r, 401, "r", "WWW-Authenticate: "+digestChallengeFields("far", "n1", `, qop="auth"`))
	r = p.wantMessage("REGISTER ")
	if l := authorizationFor(r, "Authorization", "far"); !validAuthorization(l, "REGISTER", "") {
		t.Errorf("got %v", l)
	}
	p.respond(r, 423, "r", "Min-Expires: 7200\n")
	if r = p.wantMessage("REGISTER "); headerValue(r, "Expires") != "7200" || headerValue(r, "Call-ID") != headerValue(first, "Call-ID") {
		t.Errorf("after 423:\n%s", r)
	}
	p.respond(r, 200, "r", "Contact: <sip:other@x>;expires=9999, "+headerValue(r, "Contact")+";expires=2\n")
	if s := <-told; !s.Registered || s.Expires != 2*time.Second || s.NextAttempt > time.Second ||
		s.Registrar.String() != p.conn.LocalAddr().String() {
		t.Errorf("told %+v", s)
	}
	r = p.wantMessage("REGISTER ") // at half the time, with the nonce it knows
	if l := authorizationFor(r, "Authorization", "far"); l["nonce"] != "n1" || !validAuthorization(l, "REGISTER", "") {
		t.Errorf("the refresh carries %v", l)
	}
	p.respond(r, 200, "r", "Contact: "+headerValue(r, "Contact")+";expires=100\n")
	<-told
	gone := make(chan error, 1)
	go func() { gone <- reg.Unregister(testContext(t)) }()
	r = p.wantMessage("REGISTER ")
	if headerValue(r, "Expires") != "0" {
		t.Errorf("unregistering:\n%s", r)
	}
	p.respond(r, 200, "r", "")
	if err := <-gone; err != nil {
		t.Error(err)
	}
	if s := <-told; s.Registered || s.NextAttempt != 0 {
		t.Errorf("told %+v at the end", s)
	}
}

// TestRegisterClient_ContactsOfOthers proves that the lifetime of our Contact is found in a list with others, even if those cannot be read.
// https://github.com/onsip/SIP.js/issues/560
func TestRegisterClient_ContactsOfOthers(t *testing.T) {
	t.Parallel()
	p, _, told := newFakeRegistrar(t, sip.RegistrationConfig{ContactUser: "4930", Retry: time.Minute})
	r := p.wantMessage("REGISTER ")
	p.respond(r, 200, "r", "m:<sip:10001080@203.0.113.5:65080;transport=tcp>;expires=2353204,"+headerValue(r, "Contact")+
		";expires=600,<sip:PBX#1000#905448737777@203.0.113.5>;expires=2519533,Date:Thu, 24 May 2018 05:52:55 GMT\n")
	if s := <-told; !s.Registered || s.Expires != 600*time.Second {
		t.Errorf("told %+v", s)
	}
}

func TestRegisterClient_WrongPasswordBacksOff(t *testing.T) {
	t.Parallel()
	p, _, told := newFakeRegistrar(t, sip.RegistrationConfig{Retry: time.Minute})
	for i := range 2 {
		p.respond(p.wantMessage("REGISTER "), 401, "r", "WWW-Authenticate: "+digestChallengeFields("far", fmt.Sprint("n", i), ""))
	}
	if s := <-told; s.Status != 401 || s.NextAttempt < 3*time.Minute {
		t.Errorf("told %+v", s)
	}
}

func TestRegisterClient_RegisterFailsAtOnce(t *testing.T) {
	t.Parallel()
	phone := newTestServer(t, sip.Config{})
	p := newPeer(t, "udp", phone)
	go func() {
		p.respond(p.read(), 403, "r", "")
	}()
	_, err := phone.Register(testContext(t), sip.RegistrationConfig{Registrar: resolve.Target{Host: p.conn.LocalAddr().String()},
		AOR: "sip:al@x"})
	var status *sip.StatusError
	if !errors.As(err, &status) || status.Status != 403 {
		t.Errorf("got %v, want 403", err)
	}
	if _, err := phone.KeepRegistered(testContext(t), sip.RegistrationConfig{AOR: "nonsense"}); err == nil {
		t.Error("nonsense is kept")
	}
}

// The far end of a call gets no response made with the carrier's password: neither to a challenge of the INVITE after the
// carrier's, nor to one inside the dialog.
func TestDigestClient_OtherRealmsGetNothing(t *testing.T) {
	t.Parallel()
	p, leg, e, invite := challengedCall(t)
	p.respond(invite, 407, "one", "Proxy-Authenticate: "+digestChallengeFields("carrier", "n1", ""))
	p.wantMessage("ACK ")
	invite = p.wantMessage("INVITE ")
	p.respond(invite, 200, "two", "Contact: <sip:bob@"+p.conn.LocalAddr().String()+">\n")
	p.wantMessage("ACK ")
	wantEvent[sip.Answered](t, e)
	leg.Bye(sip.Reason{})
	bye := p.wantMessage("BYE ")
	p.respond(bye, 407, "", "Proxy-Authenticate: "+digestChallengeFields("thief", "n2", ""))
	wantEvent[sip.Closed](t, e)
	p.wantSilence(200 * time.Millisecond)
}

func TestDigestClient_UnchallengedCallAnswersNoChallengeInside(t *testing.T) {
	t.Parallel()
	p, leg, e, invite := challengedCall(t)
	p.respond(invite, 200, "two", "Contact: <sip:bob@"+p.conn.LocalAddr().String()+">\n")
	p.wantMessage("ACK ")
	wantEvent[sip.Answered](t, e)
	leg.Bye(sip.Reason{})
	p.respond(p.wantMessage("BYE "), 401, "", "WWW-Authenticate: "+digestChallengeFields("thief", "n2", ""))
	wantEvent[sip.Closed](t, e)
	p.wantSilence(200 * time.Millisecond)
}

func TestDigestClient_LaterChallengeOfTheInvite(t *testing.T) {
	t.Parallel()
	p, _, e, invite := challengedCall(t)
	p.respond(invite, 407, "one", "Proxy-Authenticate: "+digestChallengeFields("carrier", "n1", ""))
	p.wantMessage("ACK ")
	invite = p.wantMessage("INVITE ")
	p.respond(invite, 401, "far", "WWW-Authenticate: "+digestChallengeFields("thief", "n2", ""))
	p.wantMessage("ACK ")
	if f := wantEvent[sip.Failed](t, e); f.Status != 401 {
		t.Errorf("got %+v", f)
	}
}
