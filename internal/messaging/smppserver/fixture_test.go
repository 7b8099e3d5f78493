package smppserver_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"soniq/internal/messaging/smppserver"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/redact"
	"soniq/internal/protocol/smpp"
	"soniq/internal/sandbox/sandbox"
)

const own, silent, second = "+12025550143", "+12025550144", "+12025550145"

// waitTimeout bounds every wait of a test.
const waitTimeout = 30 * time.Second

// fixture is a server with two organisations.
type fixture struct {
	t        *testing.T
	db       *db.DB
	service  *smppserver.Service
	messages *sms.Service
	server   *optest.Server
	address  string
	bus      *bus.Bus
	runners  []*job.Runner
	stop     func()
}

func newFixture(t *testing.T, d *db.DB, change func(*smppserver.Config)) *fixture {
	t.Helper()
	s := &fixture{t: t, db: d}
	for _, org := range []string{"org_a", "org_b"} {
		s.exec(`INSERT INTO orgs (id, path, environment, name, plan, status, country, timezone, language, settings, created_at, updated_at)
			VALUES ($1, $1, 'test', $1, 'free', 'active', 'US', 'UTC', 'en', '{}', 0, 0)`, org)
	}
	s.start(change)
	return s
}

// start starts the services, as after a crash.
func (s *fixture) start(change func(*smppserver.Config)) {
	t, now := s.t, time.Now
	s.bus = bus.New()
	jobs := &job.Queue{Bus: s.bus, Clock: clock.Func(now)}
	f := fakeDependencies{}
	s.messages = sms.New(sms.Config{DB: s.db, Outbox: &event.Outbox{DB: s.db, Bus: s.bus, Clock: clock.Func(now)},
		Jobs: jobs, Log: slog.New(slog.DiscardHandler), Digester: f, Numbers: f, Router: f, Users: f, Carriers: f, Contacts: f, Phones: f,
		Redactions: redact.Off{}})
	s.messages.BuiltIn["sandbox"] = sandbox.SMSCarrier{}
	c := smppserver.Config{DB: s.db, Jobs: jobs, Messages: s.messages, Digester: f, Node: "n1", Log: slog.New(slog.DiscardHandler),
		Numbers: f, Environments: f}
	if change != nil {
		change(&c)
	}
	var err error
	if s.service, err = smppserver.New(c); err != nil {
		t.Fatal(err)
	}
	s.server = optest.New(t, s.db, append(s.messages.Operations(), s.service.Operations()...)...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	s.run(l, jobs)
}

// run starts the SMPP server and the workers of its jobs.
func (s *fixture) run(l net.Listener, jobs *job.Queue) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.service.Serve(ctx, l, nil) }()
	s.runners = nil
	for queue, handle := range map[string]func(*job.Runner){sms.Queue: s.messages.Handle, smppserver.Queue: s.service.Handle} {
		r := &job.Runner{DB: s.db, Queue: jobs, Name: queue, Node: "n1", Log: slog.New(slog.DiscardHandler),
			Options: job.Options{Workers: 8, Timeout: time.Minute}}
		handle(r)
		if err := r.Start(context.Background()); err != nil {
			s.t.Fatal(err)
		}
		s.runners = append(s.runners, r)
	}
	s.stop = sync.OnceFunc(func() {
		for _, r := range s.runners {
			r.Stop(context.Background())
		}
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
		s.service.Close()
	})
	s.t.Cleanup(s.stop)
}

func (s *fixture) exec(q string, args ...any) {
	s.t.Helper()
	err := s.db.Tx(context.Background(), func(tx db.Querier) error { _, err := tx.Exec(context.Background(), q, args...); return err })
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *fixture) request(method, path string, body any) *optest.Answer {
	s.t.Helper()
	p := optest.Admin("org_a")
	p.Environment = access.Sandbox
	return s.server.Do(p, method, path, body)
}

// createApplication creates an application and returns its id and credentials.
func (s *fixture) createApplication(body map[string]any) (id, systemID, password string) {
	s.t.Helper()
	if body == nil {
		body = map[string]any{}
	}
	body["name"] = "Reminders"
	a := s.request("POST", "/sms/applications", body).Want(201)
	return a.Text("id"), a.Text("system_id"), a.Text("password")
}

// testClient is an SMPP client of an application.
type testClient struct {
	*smpp.Client
	t        *testing.T
	got      chan smpp.Incoming
	receipts chan smpp.Receipt
	end      func()
}

func (s *fixture) bind(systemID, password string, change func(*smpp.Config)) *testClient {
	s.t.Helper()
	p := s.startClient(systemID, password, change)
	ctx, cancel := context.WithTimeout(s.t.Context(), waitTimeout)
	defer cancel()
	if err := p.WaitBound(ctx); err != nil {
		s.t.Fatalf("%v: %v", err, p.State())
	}
	return p
}

func (s *fixture) startClient(systemID, password string, change func(*smpp.Config)) *testClient {
	s.t.Helper()
	p := &testClient{t: s.t, got: make(chan smpp.Incoming, 1000), receipts: make(chan smpp.Receipt, 1000)}
	c := smpp.Config{Address: s.address, Dialer: &net.Dialer{}, SystemID: systemID, Password: smpp.Secret(password),
		Handler:        p,
		ReconnectDelay: 20 * time.Millisecond, MaxReconnectDelay: 50 * time.Millisecond}
	if change != nil {
		change(&c)
	}
	var err error
	if p.Client, err = smpp.New(c); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { p.Run(ctx); close(ended) }()
	p.end = sync.OnceFunc(func() { cancel(); within(s.t, ended, "end of the client") })
	s.t.Cleanup(p.end)
	return p
}

func within[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(waitTimeout):
		t.Fatalf("no %s", what)
		panic("")
	}
}

func newMessage(from, to, body string) smpp.Outgoing {
	return smpp.Outgoing{From: smpp.ParseAddress(from), To: smpp.ParseAddress(to), Text: body, Receipt: true}
}

// send submits a message that must be accepted.
func (p *testClient) send(o smpp.Outgoing) []string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), waitTimeout)
	defer cancel()
	r, err := p.Submit(ctx, o)
	if err != nil {
		p.t.Fatal(err)
	}
	return r.MessageIDs
}

// receive simulates a message from a carrier.
func (s *fixture) receive(from, to, body string) {
	s.t.Helper()
	if _, err := s.messages.Receive(context.Background(), sms.Incoming{Org: "org_a", From: from, To: to, Body: body, Carrier: "sandbox",
		Sandbox: true}); err != nil {
		s.t.Fatal(err)
	}
}

// Message implements smpp.ClientHandler.
func (p *testClient) Message(_ context.Context, in smpp.Incoming) error { p.got <- in; return nil }

// Receipt implements smpp.ClientHandler.
func (p *testClient) Receipt(_ context.Context, r smpp.Receipt) error { p.receipts <- r; return nil }

// StateChanged implements smpp.ClientHandler.
func (p *testClient) StateChanged(error) {}

// refuseFirst is a client handler that refuses a message with each error from the channel.
type refuseFirst struct {
	smpp.ClientHandler
	tries  chan<- string
	refuse <-chan error
}

func (r refuseFirst) Message(_ context.Context, in smpp.Incoming) error {
	r.tries <- in.Text
	return <-r.refuse
}

// waitUnbound waits until the application has no binds.
func (s *fixture) waitUnbound(id string) {
	s.t.Helper()
	s.waitUntil("still bound", func() bool {
		return s.request("GET", "/sms/applications/"+id, nil).Want(200).At("bound") == float64(0)
	})
}

// waitResponsesMarked waits until the service has marked all responses as received, which it does after an unbind.
func (s *fixture) waitResponsesMarked() {
	s.t.Helper()
	ctx := s.t.Context()
	s.waitUntil("responses are not marked as received", func() bool {
		var n int
		// tenant: the database has one organisation
		if err := s.db.Read(ctx).QueryRow(ctx, `SELECT count(*) FROM sms_submissions WHERE bind IS NOT NULL`).Scan(&n); err != nil {
			s.t.Fatal(err)
		}
		return n == 0
	})
}

// waitUntil calls done until it returns true, and fails the test with a text if that takes too long.
func (s *fixture) waitUntil(failure string, done func() bool) {
	s.t.Helper()
	late := time.After(waitTimeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			s.t.Fatal(failure)
		}
	}
}

// rawClient sends single PDUs over a connection.
type rawClient struct {
	net.Conn
	t *testing.T
	n uint32
}

func (s *fixture) dial() *rawClient {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(waitTimeout))
	return &rawClient{Conn: c, t: s.t}
}

func (w *rawClient) write(p smpp.PDU) {
	w.t.Helper()
	w.n++
	p.Sequence = w.n
	b, err := p.Encode()
	if err == nil {
		_, err = w.Write(b)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// response returns the name and status of the next PDU, or EOF.
func (w *rawClient) response() string {
	var head [16]byte
	if _, err := io.ReadFull(w, head[:]); err != nil {
		return "EOF"
	}
	_, _ = io.CopyN(io.Discard, w, int64(binary.BigEndian.Uint32(head[:]))-16)
	return fmt.Sprint(smpp.Command(binary.BigEndian.Uint32(head[4:])), " ", smpp.Status(binary.BigEndian.Uint32(head[8:])))
}

func (w *rawClient) bind(systemID, password string) string {
	w.t.Helper()
	w.write(smpp.PDU{Command: smpp.BindTransceiver, Body: &smpp.Bind{SystemID: systemID, Password: smpp.Secret(password),
		InterfaceVersion: 0x34}})
	return w.response()
}

// bindRefusal returns the response to a bind with wrong credentials.
func (s *fixture) bindRefusal(systemID, password string) string {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(waitTimeout))
	w := &rawClient{Conn: c, t: s.t}
	b, _ := smpp.PDU{Command: smpp.BindTransceiver, Sequence: 1, Body: &smpp.Bind{SystemID: systemID, Password: smpp.Secret(password),
		InterfaceVersion: 0x34}}.Encode()
	_, _ = c.Write(b) // if the connection is closed already, the read returns the error
	return w.response()
}

func (w *rawClient) submit(from, to, body string) {
	w.t.Helper()
	w.write(smpp.PDU{Command: smpp.SubmitSM, Body: &smpp.Message{Source: smpp.ParseAddress(from), Destination: smpp.ParseAddress(to),
		RegisteredDelivery: 1, ShortMessage: []byte(body)}})
}

// sentTexts returns the texts of all sent messages, newest first.
func (s *fixture) sentTexts() (all []string) {
	for _, m := range s.request("GET", "/sms?direction=outbound", nil).Want(200).At("data").([]any) {
		all = append(all, m.(map[string]any)["body"].(string))
	}
	return all
}
