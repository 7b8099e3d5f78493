package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"soniq/internal/config"
	"soniq/internal/platform/op/optest"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
)

// phoneFixture is a platform with a SIP server, but without calls and HTTP.
type phoneFixture struct {
	*Platform
	server *optest.Server
	org    string
	sip    *sip.Server
}

func newPhoneFixture(t *testing.T) *phoneFixture {
	t.Helper()
	ctx := context.Background()
	c, err := config.Parse("--data", t.TempDir(), "--transcriber", "off", "--sip-domain", "here")
	if err != nil {
		t.Fatal(err)
	}
	h := &phoneFixture{}
	if h.Platform, err = Open(ctx, c, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	o, err := h.orgs.Create(ctx, "Acme", "GB")
	if err != nil {
		t.Fatal(err)
	}
	h.org = o.ID
	h.server = optest.New(t, h.db, h.operations()...)
	d := h.newDirectory(t.Context(), nil)
	h.sip = listenWithoutCalls(t, sip.Config{Addr: "127.0.0.1:0", Realm: "here", Accounts: d, Bindings: d})
	return h
}

func (h *phoneFixture) do(method, path string, body any) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body)
}

// challenged returns the digest algorithm of the challenge for a phone.
func (h *phoneFixture) challenged(t *testing.T, user string) string {
	t.Helper()
	c, err := net.Dial("udp", h.sip.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "REGISTER sip:here SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bK%d;rport\r\nMax-Forwards: 70\r\nFrom: <sip:%s@here>;tag=a\r\n"+
		"To: <sip:%s@here>\r\nCall-ID: %d\r\nCSeq: 1 REGISTER\r\nContact: <sip:%s@%s>\r\nContent-Length: 0\r\n\r\n",
		c.LocalAddr(), time.Now().UnixNano(), user, user, time.Now().UnixNano(), user, c.LocalAddr())
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b[:n]), "algorithm=")
	name, _, _ := strings.Cut(after, ",")
	return strings.TrimSpace(strings.SplitN(name, "\r\n", 2)[0])
}

func TestRegister_ConfiguredDigest(t *testing.T) {
	t.Parallel()
	h := newPhoneFixture(t)
	user := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada"}`).Want(201).Text("id")
	for set, algorithm := range map[string]string{"": "MD5", `,"sip":{"digest":"sha256"}`: "SHA-256"} {
		a := h.do("POST", "/devices", fmt.Sprintf(`{"user_id":%q,"name":"Desk","kind":"desk_phone"%s}`, user, set)).Want(201)
		name, password := a.Text("sip.username"), a.Text("sip.password")
		if got := h.challenged(t, name); got != algorithm {
			t.Errorf("a phone with %q is challenged with %s, want %s", set, got, algorithm)
		}
		phone := listenWithoutCalls(t, sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}})
		r, err := phone.Register(t.Context(), sip.RegistrationConfig{Registrar: resolve.Target{Host: h.sip.Addr().String()},
			AOR: "sip:" + name + "@here", Credentials: digest.Credentials{Username: name, Password: password}})
		if err != nil {
			t.Fatalf("%s: %v", algorithm, err)
		}
		if got := h.do("GET", "/devices/"+a.Text("id"), nil); got.Text("registration.status") != "registered" {
			t.Errorf("%s: %s", algorithm, got.Bytes)
		}
		if err := r.Unregister(t.Context()); err != nil {
			t.Error(err)
		}
	}
	h.do("POST", "/devices", fmt.Sprintf(`{"user_id":%q,"name":"Desk","kind":"desk_phone","sip":{"digest":"sha1"}}`, user)).Want(422).
		Refused("validation_failed", "sip.digest invalid_value")
}

func TestExtension_EmergencyNumberNeverMatches(t *testing.T) {
	t.Parallel()
	h := newPhoneFixture(t)
	h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada","extension":"110"}`).Want(201)
	d := h.newDirectory(t.Context(), nil)
	h.do("PATCH", "/organization", `{"country":"DE"}`).Want(200) // where 110 is an emergency number
	if _, ok, err := d.Extension(t.Context(), h.org, "110"); ok || err != nil {
		t.Errorf("110 rings somebody: %v, %v", ok, err)
	}
}

// noCalls ignores INVITEs.
type noCalls struct{}

func (noCalls) Invite(context.Context, *sip.Inbound) {}

func listenWithoutCalls(t *testing.T, c sip.Config) *sip.Server {
	t.Helper()
	s, err := sip.Listen(context.Background(), c, noCalls{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
