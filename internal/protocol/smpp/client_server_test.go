package smpp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestSubmit_LongTextWithReceipt(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 39) + "Grüße € 😀"
	for name, way := range map[string]TextSettings{"udh8": {}, "udh16": {Long: UDH16}, "sar": {Long: SAR}, "payload": {Long: Payload}, "packed": {Default: GSMPacked}, "latin1": {Default: Latin1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startServer(t, func(s *ServerConfig) { s.Text = way })
			e := startClient(t, c.address, func(f *Config) { f.Text = way }).waitBound(t)
			o := newMessage(text)
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
				if got := within(t, e.receipts, "receipt"); got.MessageID != id || got.State != Delivered || got.From != in.To ||
					got.Done.IsZero() {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}

func TestDeliver_RefusedMessagesRetried(t *testing.T) {
	t.Parallel()
	c := startServer(t, nil)
	full := make(chan error, 10)
	var kept []string
	e := startClient(t, c.address, func(f *Config) {
		clientOf(f).message = func(_ context.Context, in Incoming) error {
			err := <-full
			if err == nil {
				kept = append(kept, in.Text)
			}
			return err
		}
	}).waitBound(t)
	full <- errors.New("the disk is full")
	_, err := c.Deliver(t.Context(), "acme", newMessage("one"))
	if got := asError(t, err); got.Status != TemporaryAppError || got.Outcome != Retryable {
		t.Errorf("%v", err)
	}
	full <- RejectedAppError
	_, err = c.Deliver(t.Context(), "acme", newMessage("two"))
	if got := asError(t, err); got.Status != RejectedAppError || got.Outcome != Permanent {
		t.Errorf("%v", err)
	}
	long := newMessage(strings.Repeat("long ", 60))
	full <- errors.New("the disk is full")
	r, err := c.Deliver(t.Context(), "acme", long)
	if got := asError(t, err); got.Part != 2 || got.Outcome != Retryable || len(r.MessageIDs) != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	full <- nil
	long.Reference, long.Sent = r.Reference, r.MessageIDs // only the missing parts
	if _, err = c.Deliver(t.Context(), "acme", long); err != nil {
		t.Fatal(err)
	}
	e.stop()
	if len(kept) != 1 || kept[0] != long.Text {
		t.Errorf("%q", kept)
	}
}

// fullPartStore refuses every part.
type fullPartStore struct{ PartStore }

func (fullPartStore) Add(context.Context, Fragment) (AddResult, error) {
	return AddResult{}, errors.New("no place")
}

func TestDeliver_UnstoredPartNotAcknowledged(t *testing.T) {
	t.Parallel()
	c := startServer(t, nil)
	startClient(t, c.address, func(f *Config) { f.Parts = fullPartStore{NewMemoryPartStore()} }).waitBound(t)
	r, err := c.Deliver(t.Context(), "acme", newMessage(strings.Repeat("long ", 60)))
	if got := asError(t, err); got.Part != 1 || got.Status != TemporaryAppError || len(r.MessageIDs) != 0 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestServer_ErrorResponses(t *testing.T) {
	t.Parallel()
	refuse := make(chan error, 10)
	c := startServer(t, func(s *ServerConfig) {
		handlerOf(s).message = func(context.Context, Incoming) error { return <-refuse }
		handlerOf(s).query = func(_ context.Context, account, id string) (QueryResponse, error) {
			if id != "17" || account != "acme" {
				return QueryResponse{}, errors.New("unknown")
			}
			return QueryResponse{State: Delivered}, nil
		}
	})
	e := startClient(t, c.address, nil).waitBound(t)
	for _, r := range []struct {
		err  error
		want Error
	}{
		{BadDestination, Error{Outcome: Permanent, Status: BadDestination}},
		{errors.New("oh"), Error{Outcome: Retryable, Status: SystemError}},
		{QueueFull, Error{Outcome: Retryable, Status: QueueFull}},
	} {
		refuse <- r.err
		_, err := e.Submit(t.Context(), newMessage("x"))
		if got := asError(t, err); got.Outcome != r.want.Outcome || got.Status != r.want.Status || got.Part != 1 {
			t.Errorf("%v: %v", r.err, err)
		}
	}
	if a, err := e.Query(t.Context(), "17", Address{}); err != nil || a.State != Delivered || a.MessageID != "17" {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := e.Query(t.Context(), "18", Address{}); asError(t, err).Status != QueryFailed {
		t.Errorf("%v", err)
	}
	s, _, _ := e.current()
	for command, want := range map[Command]Status{CancelSM: CancelFailed, ReplaceSM: ReplaceFailed, SubmitMulti: BadCommand,
		DeliverSM: BadCommand, BindReceiver: AlreadyBound, 0x777: BadCommand} {
		_, err := s.request(t.Context(), PDU{Command: command, Body: newBody(command)})
		if err == nil || err.Status != want {
			t.Errorf("%s: %v", command, err)
		}
	}
	bad := newMessage("x")
	bad.To.Digits = strings.Repeat("1", 21)
	if _, err := e.Submit(t.Context(), bad); asError(t, err).Outcome != Permanent {
		t.Errorf("%v", err)
	}
	refuse <- nil
	if _, err := s.request(t.Context(), PDU{Command: DataSM, Body: &Message{Destination: ParseAddress("+1"),
		TLVs: TLVs{{TagMessagePayload, []byte("hi")}}}}); err != nil {
		t.Errorf("data_sm: %v", err)
	}
}

func TestBind_WrongPasswordRefused(t *testing.T) {
	t.Parallel()
	c := startServer(t, nil)
	tries := make(chan struct{}, 1000)
	e := startClient(t, c.address, func(f *Config) {
		f.Password = "wrong"
		f.Dialer = dialFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
			tries <- struct{}{}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		})
	})
	for range 3 {
		within(t, tries, "try")
	}
	if err := e.State(); !errors.Is(err, ErrNotBound) {
		t.Errorf("%v", err)
	}
	if _, err := e.Submit(t.Context(), newMessage("x")); asError(t, err).Outcome != Retryable {
		t.Errorf("%v", err)
	}
	if n := c.BindCount("acme"); n != 0 {
		t.Errorf("%d binds", n)
	}
}

func TestBind_ModesAndLimits(t *testing.T) {
	t.Parallel()
	c := startServer(t, func(s *ServerConfig) {
		let := handlerOf(s).authenticate
		handlerOf(s).authenticate = func(ctx context.Context, l Login) (Account, error) {
			a, err := let(ctx, l)
			a.MaxBinds = 2
			return a, err
		}
	})
	sends := startClient(t, c.address, func(f *Config) { f.Mode = BindTransmitter }).waitBound(t)
	if _, err := c.Deliver(t.Context(), "acme", newMessage("x")); asError(t, err).Err != ErrNotBound {
		t.Errorf("to a transmitter: %v", err)
	}
	hears := startClient(t, c.address, func(f *Config) { f.Mode = BindReceiver }).waitBound(t)
	if _, err := hears.Submit(t.Context(), newMessage("x")); !errors.Is(err, ErrForbidden) {
		t.Errorf("from a receiver: %v", err)
	}
	s, _, _ := hears.current()
	if _, err := s.request(t.Context(), PDU{Command: SubmitSM, Body: newMessage("x").message(Part{})}); err == nil ||
		err.Status != BadBindState {
		t.Errorf("submit_sm of a receiver: %v", err)
	}
	if _, err := sends.Submit(t.Context(), newMessage("x")); err != nil {
		t.Error(err)
	}
	for range 3 {
		if _, err := c.Deliver(t.Context(), "acme", newMessage("y")); err != nil {
			t.Error(err)
		}
		within(t, hears.got, "message")
	}
	third := startClient(t, c.address, nil)
	for third.State() == nil || !strings.Contains(third.State().Error(), AlreadyBound.String()) {
		_, change, _ := third.current()
		within(t, change, "refusal of the third")
	}
}

func TestClient_Reconnects(t *testing.T) {
	t.Parallel()
	c := startServer(t, nil)
	conns := make(chan net.Conn, 100)
	e := startClient(t, c.address, func(f *Config) {
		f.Dialer = dialFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				conns <- conn
			}
			return conn, err
		})
	})
	for range 5 {
		e.waitBound(t)
		_, change, _ := e.current()
		if _, err := e.Submit(t.Context(), newMessage("x")); err != nil {
			t.Fatal(err)
		}
		within(t, c.got, "message")
		within(t, conns, "connection").Close()
		within(t, change, "end of the bind")
	}
}

func TestTLS_CertificateVerified(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil) // for its certificate, which is for example.com
	server.StartTLS()
	defer server.Close()
	c := startServer(t, func(s *ServerConfig) { s.TLS = server.TLS })
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	e := startClient(t, c.address, func(f *Config) { f.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com"} }).waitBound(t)
	if _, err := e.Submit(t.Context(), newMessage("secret")); err != nil {
		t.Fatal(err)
	}
	if in := within(t, c.got, "message"); in.Text != "secret" {
		t.Errorf("%+v", in)
	}
	for name, settings := range map[string]*tls.Config{"nobody knows": {}, "another name": {RootCAs: roots, ServerName: "example.net"}} {
		stranger := startClient(t, c.address, func(f *Config) { f.TLS = settings })
		_, change, _ := stranger.current()
		within(t, change, "failure")
		var bad *tls.CertificateVerificationError
		if err := stranger.State(); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServer_ConnectionLimit(t *testing.T) {
	t.Parallel()
	for most, fit := range map[int]int{1: 0, 4: 1} { // in addition to that of the client; half of them from one address
		c := startServer(t, func(s *ServerConfig) { s.Connections = most })
		e := startClient(t, c.address, nil).waitBound(t)
		for i := range fit + 1 {
			conn, err := net.Dial("tcp", c.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			b, _ := PDU{Command: EnquireLink, Sequence: 1}.Encode()
			conn.Write(b)
			conn.SetReadDeadline(time.Now().Add(waitTimeout))
			if _, err := read(conn); (err == nil) != (i < fit) || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%d connections, number %d more: %v", most, i+1, err)
			}
		}
		if _, err := e.Submit(t.Context(), newMessage("x")); err != nil {
			t.Error(err)
		}
	}
}

func TestServer_StopUnbindsClients(t *testing.T) {
	t.Parallel()
	c := startServer(t, nil)
	e := startClient(t, c.address, nil).waitBound(t)
	_, change, _ := e.current()
	c.stop()
	within(t, change, "end of the bind")
	if err := e.State(); !errors.Is(err, ErrNotBound) {
		t.Errorf("%v", err)
	}
}
