package smpp

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestSubmit_Window(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	peer := fakeSMSC(t, func(p PDU, answer func(PDU)) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.AfterFunc(time.Millisecond, func() {
			mu.Lock()
			now--
			mu.Unlock()
			answer(PDU{Command: p.Command.Response(), Sequence: p.Sequence, Body: &MessageResponse{MessageID: "1"}})
		})
	})
	e := startClient(t, peer, func(f *Config) { f.Window = 3 }).waitBound(t)
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			if _, err := e.Submit(t.Context(), newMessage("x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most != 3 {
		t.Errorf("%d at once", most)
	}
}

// fakeSMSC is an SMSC that accepts every bind and responds to messages as the test defines.
func fakeSMSC(t *testing.T, message func(p PDU, answer func(PDU))) string {
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
			go serveFake(conn, message)
		}
	}()
	return l.Addr().String()
}

// serveFake is the SMSC's side of a connection.
func serveFake(conn net.Conn, message func(p PDU, answer func(PDU))) {
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
		case p.Command.expectsResponse():
			answer(PDU{Command: p.Command.Response(), Sequence: p.Sequence})
		}
	}
}

func TestSubmit_OutcomeOfResponses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does func(p PDU, answer func(PDU))
		want Outcome
	}{
		"silence": {func(PDU, func(PDU)) {}, InDoubt},
		"another's answer": {func(p PDU, answer func(PDU)) {
			answer(PDU{Command: p.Command.Response(), Sequence: p.Sequence + 1})
		}, InDoubt},
		"another command": {func(p PDU, answer func(PDU)) { answer(PDU{Command: QuerySM.Response(), Sequence: p.Sequence}) }, InDoubt},
		"a broken answer": {func(p PDU, answer func(PDU)) { answer(truncatedResponse(p)) }, InDoubt},
		"generic_nack": {func(p PDU, answer func(PDU)) {
			answer(PDU{Command: GenericNack, Status: 3, Sequence: p.Sequence})
		}, Permanent},
		"unknown status": {func(p PDU, answer func(PDU)) {
			answer(PDU{Command: p.Command.Response(), Status: 0x401, Sequence: p.Sequence})
		}, Permanent},
		"unbind":             {func(_ PDU, answer func(PDU)) { answer(PDU{Command: Unbind, Sequence: 1}) }, InDoubt},
		"garbage":            {func(_ PDU, answer func(PDU)) { answer(PDU{Command: 0x4745, Sequence: 1, Body: garbageBody{}}) }, InDoubt},
		"an answer for two":  {func(p PDU, answer func(PDU)) { respondTwice(p, answer) }, 0},
		"without identifier": {func(p PDU, answer func(PDU)) { answer(PDU{Command: p.Command.Response(), Sequence: p.Sequence}) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startClient(t, fakeSMSC(t, c.does), func(f *Config) { f.ResponseTimeout = 300 * time.Millisecond }).waitBound(t)
			_, err := e.Submit(t.Context(), newMessage("x"))
			if c.want == 0 && err != nil || c.want != 0 && OutcomeOf(err) != c.want {
				t.Errorf("%v", err)
			}
		})
	}
}

func respondTwice(p PDU, answer func(PDU)) {
	for range 2 {
		answer(PDU{Command: p.Command.Response(), Sequence: p.Sequence, Body: &MessageResponse{MessageID: "1"}})
	}
}

// truncatedResponse returns a response with a truncated optional parameter.
func truncatedResponse(p PDU) PDU {
	return PDU{Command: p.Command.Response(), Sequence: p.Sequence, Body: truncatedBody{}}
}

type truncatedBody struct{}

func (truncatedBody) fields(c *coder, _ Command) { c.b = append(c.b, 'x', 0, 1, 2, 3) }

type garbageBody struct{}

func (garbageBody) fields(c *coder, _ Command) { c.b = append(c.b, "GET / HTTP/1.1\r\n\r\n"...) }

func TestSubmit_CanceledBeforeSendIsRetryable(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 2)
	e := startClient(t, fakeSMSC(t, func(PDU, func(PDU)) { arrived <- struct{}{} }), func(f *Config) { f.Window = 1 }).waitBound(t)
	first := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := e.Submit(ctx, newMessage("x"))
		first <- err
	}()
	within(t, arrived, "message")
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := e.Submit(short, newMessage("y")); asError(t, err).Outcome != Retryable || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("what never left: %v", err)
	}
	cancel()
	if err := within(t, first, "end of the first"); asError(t, err).Outcome != InDoubt {
		t.Errorf("what may have arrived: %v", err)
	}
}

func TestServer_InvalidPeers(t *testing.T) {
	t.Parallel()
	c := startServer(t, func(s *ServerConfig) { s.LoginTimeout, s.Connections = 200*time.Millisecond, 6 })
	submit, _ := PDU{Command: SubmitSM, Sequence: 5, Body: newMessage("x").message(Part{})}.Encode()
	for _, say := range []string{"GET / HTTP/1.1\r\n\r\n", "", "\x00\x00\x00\x04", "\x00\x00\x00\x10\x00\x00", string(submit),
		strings.Repeat("\x00\x00\x00\x10\x00\x00\x00\x15\x00\x00\x00\x00\x00\x00\x00\x01", 1000)} {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, say)
		conn.SetReadDeadline(time.Now().Add(waitTimeout))
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
		if say == string(submit) && (last.Command != SubmitSM.Response() || last.Status != BadBindState) {
			t.Errorf("submit_sm before bind: %+v", last)
		}
	}
	select {
	case in := <-c.got:
		t.Errorf("%+v", in)
	default:
	}
	startClient(t, c.address, nil).waitBound(t)
}

func TestServer_FloodAnswered(t *testing.T) {
	t.Parallel()
	c := startServer(t, nil)
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const flood = 20 * outboxSize
	go func() {
		var all []byte
		for i := range flood {
			b, _ := PDU{Command: EnquireLink, Sequence: uint32(i)}.Encode()
			all = append(all, b...)
		}
		conn.Write(all)
	}()
	conn.SetReadDeadline(time.Now().Add(waitTimeout))
	for i := range flood {
		if p, err := read(conn); err != nil || p.Sequence != uint32(i) {
			t.Fatalf("answer %d: %+v %v", i, p, err)
		}
	}
}

// oneLetter is a body that no request has.
type oneLetter struct{}

func (oneLetter) fields(c *coder, _ Command) { c.b = append(c.b, 'x') }

func TestServer_MalformedRequestKeepsBind(t *testing.T) {
	t.Parallel()
	conn, _ := pipeServer(t, "odd", nil)
	for _, c := range []struct {
		p    PDU
		want PDU
	}{
		{PDU{Command: SubmitSM, Sequence: 3, Body: oneLetter{}}, PDU{Command: SubmitSM.Response(), Status: BadMessageLength, Sequence: 3,
			Body: &MessageResponse{}}},
		{PDU{Command: 0x999, Sequence: 4, Body: oneLetter{}}, PDU{Command: GenericNack, Status: BadCommand, Sequence: 4}},
		{PDU{Command: SubmitSM, Sequence: 5, Body: &Message{}}, PDU{Command: SubmitSM.Response(), Status: BadDestination, Sequence: 5,
			Body: &MessageResponse{}}},
	} {
		if got := requestPDU(t, conn, c.p); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %+v", c.p, got)
		}
	}
	for _, unanswered := range []PDU{{Command: AlertNotification, Body: &Alert{}}, {Command: Outbind, Body: &OutbindRequest{}},
		{Command: SubmitSM.Response(), Sequence: 9, Body: &MessageResponse{}}, {Command: GenericNack, Status: BadCommand},
		{Command: DeliverSM.Response(), Body: truncatedBody{}}} {
		sendPDU(t, conn, unanswered)
	}
	if got := requestPDU(t, conn, PDU{Command: EnquireLink, Sequence: 10}); got.Sequence != 10 {
		t.Errorf("%+v", got)
	}
}

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Address{"+4930123": {1, 1, "4930123"}, " 72345 ": {0, 1, "72345"}, "Soniq": {5, 0, "Soniq"}, "*100#": {0, 1, "*100#"}} {
		if got := ParseAddress(text); got != want || got.String() != strings.TrimSpace(text) {
			t.Errorf("%q: %+v, %s", text, got, got)
		}
	}
}
