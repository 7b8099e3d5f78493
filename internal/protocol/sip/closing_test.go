package sip_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// slowDirectory blocks in Save, or in Credentials, until the context ends.
type slowBook struct {
	*book
	asked   chan struct{}
	forWhom bool
}

func (b slowBook) wait(ctx context.Context) error {
	close(b.asked)
	<-ctx.Done()
	return ctx.Err()
}

func (b slowBook) Save(ctx context.Context, _ string, _ []sip.Binding) error { return b.wait(ctx) }

func (b slowBook) Credentials(ctx context.Context, user string) (sip.Account, bool, error) {
	if b.forWhom {
		return sip.Account{}, false, b.wait(ctx)
	}
	return b.book.Credentials(ctx, user)
}

func TestAServerThatClosesWhileAPhoneRegistersReportsNoError(t *testing.T) {
	t.Parallel()
	for name, forWhom := range map[string]bool{"whose it is is looked up": true, "it is stored": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closesWhileOneRegisters(t, slowBook{newBook().add("alice", "secret"), make(chan struct{}), forWhom})
		})
	}
}

func closesWhileOneRegisters(t *testing.T, slow slowBook) {
	var log bytes.Buffer
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
	case <-slow.asked:
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
