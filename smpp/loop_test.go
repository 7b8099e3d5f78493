package smpp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// within fails a test that waits too long.
func within[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("")
	}
}

// A centre is a server on a loopback port that keeps what it was sent.
type centre struct {
	*Server
	address string
	got     chan Incoming
	stop    func()
}

func startCentre(t *testing.T, change func(*ServerConfig)) *centre {
	t.Helper()
	c := &centre{got: make(chan Incoming, 1000)}
	config := ServerConfig{
		Authenticate: func(_ context.Context, l Login) (Account, error) {
			if l.SystemID != "esme" || l.Password != "secret" {
				return Account{}, errors.New("wrong password")
			}
			return Account{ID: "acme"}, nil
		},
		Message: func(_ context.Context, in Incoming) error { c.got <- in; return nil },
	}
	if change != nil {
		change(&config)
	}
	var err error
	if c.Server, err = NewServer(config); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, l) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		if err := within(t, ended, "end of the server"); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(c.stop)
	return c
}

// An esme is a client that keeps what it was sent.
type esme struct {
	*Client
	got      chan Incoming
	receipts chan Receipt
	stop     func()
}

func startClient(t *testing.T, address string, change func(*Config)) *esme {
	t.Helper()
	e := &esme{got: make(chan Incoming, 1000), receipts: make(chan Receipt, 1000)}
	config := Config{Address: address, Dial: (&net.Dialer{}).DialContext, SystemID: "esme", Password: "secret",
		Message: func(_ context.Context, in Incoming) error { e.got <- in; return nil },
		Receipt: func(_ context.Context, r Receipt) error { e.receipts <- r; return nil },
		Pause:   time.Millisecond, MaxPause: 10 * time.Millisecond}
	if change != nil {
		change(&config)
	}
	var err error
	if e.Client, err = New(config); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { e.Run(ctx); close(ended) }()
	e.stop = sync.OnceFunc(func() { cancel(); within(t, ended, "end of the client") })
	t.Cleanup(e.stop)
	return e
}

func (e *esme) bound(t *testing.T) *esme {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := e.WaitBound(ctx); err != nil {
		t.Fatalf("%v: %v", err, e.State())
	}
	return e
}

// outcome is what an error of Submit means.
func outcome(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *Error", err)
	}
	return e
}

func hello(text string) Outgoing {
	return Outgoing{From: ParseAddress("+4930111"), To: ParseAddress("+4930222"), Text: text}
}

func TestFourHundredCharactersWithAnEmojiGoOutAndComeBackWithAReceipt(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 39) + "Grüße € 😀"
	for name, way := range map[string]Text{"udh8": {}, "udh16": {Long: UDH16}, "sar": {Long: SAR}, "payload": {Long: Payload}, "packed": {Default: GSMPacked}, "latin1": {Default: Latin1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCentre(t, func(s *ServerConfig) { s.Text = way })
			e := startClient(t, c.address, func(f *Config) { f.Text = way }).bound(t)
			o := hello(text)
			o.Receipt, o.Validity, o.UserReference = true, time.Hour, 77
			r, err := e.Submit(t.Context(), o)
			if err != nil || len(r.MessageIDs) != r.Parts {
				t.Fatalf("%+v %v", r, err)
			}
			in := within(t, c.got, "message at the centre")
			if in.Text != text || in.Parts != r.Parts || in.From != o.From || in.To != o.To || !in.Receipt || in.Account != "acme" ||
				in.Validity != "000000010000000R" || in.Reference != 77 || strings.Join(in.MessageIDs, " ") != strings.Join(r.MessageIDs, " ") {
				t.Fatalf("%+v", in)
			}
			if want := map[string]int{"payload": 1, "udh16": 7, "udh8": 6, "sar": 6, "packed": 6, "latin1": 6}[name]; r.Parts != want {
				t.Errorf("%d parts", r.Parts)
			}
			back := Outgoing{From: in.To, To: in.From, Text: in.Text}
			if _, err := c.Deliver(t.Context(), "acme", back); err != nil {
				t.Fatal(err)
			}
			if in := within(t, e.got, "message at the client"); in.Text != text || in.From.String() != "+4930222" {
				t.Fatalf("%+v", in)
			}
			for _, id := range in.MessageIDs {
				done := Receipt{MessageID: id, From: in.To, To: in.From, State: Delivered, Text: "Grüße 😀", Delivered: 1, Done: time.Now()}
				if err := c.Receipt(t.Context(), "acme", done); err != nil {
					t.Fatal(err)
				}
				if got := within(t, e.receipts, "receipt"); got.MessageID != id || got.State != Delivered || got.From != in.To || got.Done.IsZero() {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}

func TestWhatTheCallerCannotKeepStaysWithTheCentre(t *testing.T) {
	t.Parallel()
	c := startCentre(t, nil)
	full := make(chan error, 10)
	var kept []string
	e := startClient(t, c.address, func(f *Config) {
		f.Message = func(_ context.Context, in Incoming) error {
			err := <-full
			if err == nil {
				kept = append(kept, in.Text)
			}
			return err
		}
	}).bound(t)
	full <- errors.New("the disk is full")
	_, err := c.Deliver(t.Context(), "acme", hello("one"))
	if got := outcome(t, err); got.Status != TemporaryAppError || got.Outcome != Retryable {
		t.Errorf("%v", err)
	}
	full <- RejectedAppError
	_, err = c.Deliver(t.Context(), "acme", hello("two"))
	if got := outcome(t, err); got.Status != RejectedAppError || got.Outcome != Permanent {
		t.Errorf("%v", err)
	}
	long := hello(strings.Repeat("long ", 60))
	full <- errors.New("the disk is full")
	r, err := c.Deliver(t.Context(), "acme", long)
	if got := outcome(t, err); got.Part != 2 || got.Outcome != Retryable || len(r.MessageIDs) != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	full <- nil
	long.Reference, long.Sent = r.Reference, r.MessageIDs // only what is missing
	if _, err = c.Deliver(t.Context(), "acme", long); err != nil {
		t.Fatal(err)
	}
	e.stop()
	if len(kept) != 1 || kept[0] != long.Text {
		t.Errorf("%q", kept)
	}
}

func TestACentreRefusesPolitely(t *testing.T) {
	t.Parallel()
	refuse := make(chan error, 10)
	c := startCentre(t, func(s *ServerConfig) {
		s.Message = func(context.Context, Incoming) error { return <-refuse }
		s.Query = func(_ context.Context, account, id string) (QueryAnswer, error) {
			if id != "17" || account != "acme" {
				return QueryAnswer{}, errors.New("unknown")
			}
			return QueryAnswer{State: Delivered}, nil
		}
	})
	e := startClient(t, c.address, nil).bound(t)
	for _, r := range []struct {
		err  error
		want Error
	}{
		{BadDestination, Error{Outcome: Permanent, Status: BadDestination}},
		{errors.New("oh"), Error{Outcome: Retryable, Status: SystemError}},
		{QueueFull, Error{Outcome: Retryable, Status: QueueFull}},
	} {
		refuse <- r.err
		_, err := e.Submit(t.Context(), hello("x"))
		if got := outcome(t, err); got.Outcome != r.want.Outcome || got.Status != r.want.Status || got.Part != 1 {
			t.Errorf("%v: %v", r.err, err)
		}
	}
	if a, err := e.Query(t.Context(), "17", Address{}); err != nil || a.State != Delivered || a.MessageID != "17" {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := e.Query(t.Context(), "18", Address{}); outcome(t, err).Status != QueryFailed {
		t.Errorf("%v", err)
	}
	s, _, _ := e.current()
	for command, want := range map[Command]Status{CancelSM: CancelFailed, ReplaceSM: ReplaceFailed, SubmitMulti: BadCommand, DeliverSM: BadCommand,
		BindReceiver: AlreadyBound, 0x777: BadCommand} {
		_, err := s.request(t.Context(), PDU{Command: command, Body: newBody(command)})
		if err == nil || err.Status != want {
			t.Errorf("%s: %v", command, err)
		}
	}
	bad := hello("x")
	bad.To.Digits = strings.Repeat("1", 21)
	if _, err := e.Submit(t.Context(), bad); outcome(t, err).Outcome != Permanent {
		t.Errorf("%v", err)
	}
	refuse <- nil
	if _, err := s.request(t.Context(), PDU{Command: DataSM, Body: &Message{Destination: ParseAddress("+1"), TLVs: TLVs{{TagMessagePayload, []byte("hi")}}}}); err != nil {
		t.Errorf("data_sm: %v", err)
	}
}

func TestWhoIsNotLetIn(t *testing.T) {
	t.Parallel()
	c := startCentre(t, nil)
	tries := make(chan struct{}, 1000)
	e := startClient(t, c.address, func(f *Config) {
		f.Password = "wrong"
		f.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			tries <- struct{}{}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	})
	for range 3 {
		within(t, tries, "try")
	}
	if err := e.State(); !errors.Is(err, ErrNotBound) {
		t.Errorf("%v", err)
	}
	if _, err := e.Submit(t.Context(), hello("x")); outcome(t, err).Outcome != Retryable {
		t.Errorf("%v", err)
	}
	if n := c.Bound("acme"); n != 0 {
		t.Errorf("%d binds", n)
	}
}

func TestModesAndLimitsOfBinds(t *testing.T) {
	t.Parallel()
	c := startCentre(t, func(s *ServerConfig) {
		let := s.Authenticate
		s.Authenticate = func(ctx context.Context, l Login) (Account, error) {
			a, err := let(ctx, l)
			a.Binds = 2
			return a, err
		}
	})
	sends := startClient(t, c.address, func(f *Config) { f.Mode = BindTransmitter }).bound(t)
	if _, err := c.Deliver(t.Context(), "acme", hello("x")); outcome(t, err).Err != ErrNotBound {
		t.Errorf("to a transmitter: %v", err)
	}
	hears := startClient(t, c.address, func(f *Config) { f.Mode = BindReceiver }).bound(t)
	if _, err := hears.Submit(t.Context(), hello("x")); !errors.Is(err, ErrForbidden) {
		t.Errorf("from a receiver: %v", err)
	}
	s, _, _ := hears.current()
	if _, err := s.request(t.Context(), PDU{Command: SubmitSM, Body: hello("x").message(Part{})}); err == nil || err.Status != BadBindState {
		t.Errorf("submit_sm of a receiver: %v", err)
	}
	if _, err := sends.Submit(t.Context(), hello("x")); err != nil {
		t.Error(err)
	}
	for range 3 {
		if _, err := c.Deliver(t.Context(), "acme", hello("y")); err != nil {
			t.Error(err)
		}
		within(t, hears.got, "message")
	}
	third := startClient(t, c.address, nil)
	for third.State() == nil || !strings.Contains(third.State().Error(), AlreadyBound.String()) {
		_, _, change := third.current()
		within(t, change, "refusal of the third")
	}
}

func TestABindComesBackWhateverHappens(t *testing.T) {
	t.Parallel()
	c := startCentre(t, nil)
	conns := make(chan net.Conn, 100)
	e := startClient(t, c.address, func(f *Config) {
		f.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				conns <- conn
			}
			return conn, err
		}
	})
	for range 5 {
		e.bound(t)
		_, _, change := e.current()
		if _, err := e.Submit(t.Context(), hello("x")); err != nil {
			t.Fatal(err)
		}
		within(t, c.got, "message")
		within(t, conns, "connection").Close()
		within(t, change, "end of the bind")
	}
}

func TestTheWindowHoldsHoweverManySubmit(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	peer := peerCentre(t, func(p PDU, answer func(PDU)) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.AfterFunc(time.Millisecond, func() {
			mu.Lock()
			now--
			mu.Unlock()
			answer(PDU{Command: p.Command.Answer(), Sequence: p.Sequence, Body: &MessageAnswer{MessageID: "1"}})
		})
	})
	e := startClient(t, peer, func(f *Config) { f.Window = 3 }).bound(t)
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			if _, err := e.Submit(t.Context(), hello("x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most != 3 {
		t.Errorf("%d at once", most)
	}
}

// peerCentre is a made-up centre that lets everybody in, and answers messages as a test likes.
func peerCentre(t *testing.T, message func(p PDU, answer func(PDU))) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go talk(conn, message)
		}
	}()
	return l.Addr().String()
}

// talk is a centre's side of a connection.
func talk(conn net.Conn, message func(p PDU, answer func(PDU))) {
	defer conn.Close()
	answer := func(p PDU) {
		b, _ := p.Encode()
		conn.Write(b)
	}
	for {
		p, err := read(conn)
		switch {
		case err != nil:
			return
		case p.Command == SubmitSM:
			message(p, answer)
		case p.Command.wantsAnswer():
			answer(PDU{Command: p.Command.Answer(), Sequence: p.Sequence})
		}
	}
}

func TestWhatIsNotAnsweredIsInDoubt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does func(p PDU, answer func(PDU))
		want Outcome
	}{
		"silence":          {func(PDU, func(PDU)) {}, InDoubt},
		"another's answer": {func(p PDU, answer func(PDU)) { answer(PDU{Command: p.Command.Answer(), Sequence: p.Sequence + 1}) }, InDoubt},
		"another command":  {func(p PDU, answer func(PDU)) { answer(PDU{Command: QuerySM.Answer(), Sequence: p.Sequence}) }, InDoubt},
		"a broken answer":  {func(p PDU, answer func(PDU)) { answer(broken(p)) }, InDoubt},
		"generic_nack":     {func(p PDU, answer func(PDU)) { answer(PDU{Command: GenericNack, Status: 3, Sequence: p.Sequence}) }, Permanent},
		"unknown status": {func(p PDU, answer func(PDU)) {
			answer(PDU{Command: p.Command.Answer(), Status: 0x401, Sequence: p.Sequence})
		}, Permanent},
		"unbind":             {func(_ PDU, answer func(PDU)) { answer(PDU{Command: Unbind, Sequence: 1}) }, InDoubt},
		"garbage":            {func(_ PDU, answer func(PDU)) { answer(PDU{Command: 0x4745, Sequence: 1, Body: garbage{}}) }, InDoubt},
		"an answer for two":  {func(p PDU, answer func(PDU)) { twice(p, answer) }, 0},
		"without identifier": {func(p PDU, answer func(PDU)) { answer(PDU{Command: p.Command.Answer(), Sequence: p.Sequence}) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startClient(t, peerCentre(t, c.does), func(f *Config) { f.Answer = 300 * time.Millisecond }).bound(t)
			_, err := e.Submit(t.Context(), hello("x"))
			if c.want == 0 && err != nil || c.want != 0 && OutcomeOf(err) != c.want {
				t.Errorf("%v", err)
			}
		})
	}
}

func twice(p PDU, answer func(PDU)) {
	for range 2 {
		answer(PDU{Command: p.Command.Answer(), Sequence: p.Sequence, Body: &MessageAnswer{MessageID: "1"}})
	}
}

// broken is an answer with an optional parameter that is cut short.
func broken(p PDU) PDU {
	return PDU{Command: p.Command.Answer(), Sequence: p.Sequence, Body: cut{}}
}

type cut struct{}

func (cut) fields(c *coder, _ Command) { c.b = append(c.b, 'x', 0, 1, 2, 3) }

type garbage struct{}

func (garbage) fields(c *coder, _ Command) { c.b = append(c.b, "GET / HTTP/1.1\r\n\r\n"...) }

func TestACallerThatGivesUpBeforeAnythingLeftMayTryAgain(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 2)
	e := startClient(t, peerCentre(t, func(PDU, func(PDU)) { arrived <- struct{}{} }), func(f *Config) { f.Window = 1 }).bound(t)
	first := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := e.Submit(ctx, hello("x"))
		first <- err
	}()
	within(t, arrived, "message")
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := e.Submit(short, hello("y")); outcome(t, err).Outcome != Retryable || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("what never left: %v", err)
	}
	cancel()
	if err := within(t, first, "end of the first"); outcome(t, err).Outcome != InDoubt {
		t.Errorf("what may have arrived: %v", err)
	}
}

func TestPeersThatDoNotSpeakSMPPHurtNobody(t *testing.T) {
	t.Parallel()
	c := startCentre(t, func(s *ServerConfig) { s.Login, s.Connections = 200*time.Millisecond, 3 })
	submit, _ := PDU{Command: SubmitSM, Sequence: 5, Body: hello("x").message(Part{})}.Encode()
	for _, say := range []string{"GET / HTTP/1.1\r\n\r\n", "", "\x00\x00\x00\x04", "\x00\x00\x00\x10\x00\x00", string(submit),
		strings.Repeat("\x00\x00\x00\x10\x00\x00\x00\x15\x00\x00\x00\x00\x00\x00\x00\x01", 1000)} {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, say)
		conn.SetReadDeadline(time.Now().Add(patience))
		var last PDU
		for {
			p, err := read(conn)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("who says %.20q is never sent away", say)
			}
			if err != nil {
				break
			}
			last = p
		}
		conn.Close()
		if say == string(submit) && (last.Command != SubmitSM.Answer() || last.Status != BadBindState) {
			t.Errorf("submit_sm before bind: %+v", last)
		}
	}
	select {
	case in := <-c.got:
		t.Errorf("%+v", in)
	default:
	}
	startClient(t, c.address, nil).bound(t)
}

func TestTLSIsSpokenOnlyWithWhomIsTrusted(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil) // for its certificate, which is example.com's
	server.StartTLS()
	defer server.Close()
	c := startCentre(t, func(s *ServerConfig) { s.TLS = server.TLS })
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	e := startClient(t, c.address, func(f *Config) { f.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com"} }).bound(t)
	if _, err := e.Submit(t.Context(), hello("secret")); err != nil {
		t.Fatal(err)
	}
	if in := within(t, c.got, "message"); in.Text != "secret" {
		t.Errorf("%+v", in)
	}
	for name, settings := range map[string]*tls.Config{"nobody knows": {}, "another name": {RootCAs: roots, ServerName: "example.net"}} {
		stranger := startClient(t, c.address, func(f *Config) { f.TLS = settings })
		_, _, change := stranger.current()
		within(t, change, "failure")
		var bad *tls.CertificateVerificationError
		if err := stranger.State(); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	c := startCentre(t, func(s *ServerConfig) { s.Connections = 1 })
	e := startClient(t, c.address, nil).bound(t)
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a second connection is kept")
	}
	if _, err := e.Submit(t.Context(), hello("x")); err != nil {
		t.Error(err)
	}
}

func TestACentreThatStopsUnbindsItsClients(t *testing.T) {
	t.Parallel()
	c := startCentre(t, nil)
	e := startClient(t, c.address, nil).bound(t)
	_, _, change := e.current()
	c.stop()
	within(t, change, "end of the bind")
	if err := e.State(); !errors.Is(err, ErrNotBound) {
		t.Errorf("%v", err)
	}
}
