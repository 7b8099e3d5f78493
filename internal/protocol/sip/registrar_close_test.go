package sip_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
)

// slowDirectory blocks in Save, or in Credentials, until the context ends.
type slowDirectory struct {
	*fakeDirectory
	called     chan struct{}
	slowLookup bool
}

func (b slowDirectory) block(ctx context.Context) error {
	close(b.called)
	<-ctx.Done()
	return ctx.Err()
}

func (b slowDirectory) Save(ctx context.Context, _ string, _ []sip.Binding) error {
	return b.block(ctx)
}

func (b slowDirectory) Credentials(ctx context.Context, user string) (sip.Account, bool, error) {
	if b.slowLookup {
		return sip.Account{}, false, b.block(ctx)
	}
	return b.fakeDirectory.Credentials(ctx, user)
}

func TestClose_DuringRegisterLogsNoError(t *testing.T) {
	t.Parallel()
	for name, forWhom := range map[string]bool{"whose it is is looked up": true, "it is stored": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closeWhileRegistering(t, slowDirectory{newFakeDirectory().addAccount("alice", "secret"), make(chan struct{}), forWhom})
		})
	}
}

func closeWhileRegistering(t *testing.T, slow slowDirectory) {
	var log bytes.Buffer
	config := sip.Config{Addr: "127.0.0.1:0", Accounts: slow, Bindings: slow, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	server, err := sip.Listen(t.Context(), config, &panickingHandler{})
	if err != nil {
		t.Fatal(err)
	}
	phone := newTestServer(t, sip.Config{})
	go func() {
		_, _ = phone.Register(t.Context(), sip.RegistrationConfig{Registrar: resolve.Target{Host: server.Addr().String()},
			AOR: "sip:alice@" + server.Addr().String(), Credentials: digest.Credentials{Username: "alice", Password: "secret"},
			Expires: time.Hour})
	}()
	select {
	case <-slow.called:
	case <-time.After(testTimeout):
		t.Fatal("nobody registers")
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("it reports\n%s", log.String())
	}
}
