package sip_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"soniq/sip"
)

// slowBook stores nothing until it is told to give up.
type slowBook struct {
	*book
	saving chan struct{}
}

func (b slowBook) Save(ctx context.Context, _ string, _ []sip.Binding) error {
	close(b.saving)
	<-ctx.Done()
	return ctx.Err()
}

func TestAServerThatClosesWhileAPhoneRegistersReportsNoError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	slow := slowBook{newBook().add("alice", "secret"), make(chan struct{})}
	config := sip.Config{Addr: "127.0.0.1:0", Accounts: slow, Bindings: slow, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	server, err := sip.Listen(t.Context(), config, &badSwitch{})
	if err != nil {
		t.Fatal(err)
	}
	phone := listen(t, sip.Config{})
	go func() {
		_, _ = phone.Register(t.Context(), sip.Registration{Registrar: sip.Target{Host: server.Addr().String()}, AOR: "sip:alice@" + server.Addr().String(),
			Credentials: sip.Credentials{Username: "alice", Password: "secret"}, Expires: time.Hour})
	}()
	select {
	case <-slow.saving:
	case <-time.After(patience):
		t.Fatal("nobody registers")
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("it reports\n%s", log.String())
	}
}
