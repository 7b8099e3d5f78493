package robot

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"soniq/media"
	"soniq/sip"
)

// Stranger gives somebody outside a telephone on a free loopback port: it calls the server without logging in, and shows a number.
func Stranger(ctx context.Context, number, server string, log *slog.Logger) (*Phone, error) {
	p := &Phone{account: Account{Registrar: server, Username: number, Domain: "127.0.0.1"}, log: log, Incoming: make(chan *Line, 1)}
	loopback := netip.MustParseAddr("127.0.0.1")
	var err error
	if p.audio, err = media.New(media.Config{Bind: loopback, Advertise: loopback, Loops: 1, Logger: log}); err != nil {
		return nil, fmt.Errorf("audio of a caller: %w", err)
	}
	if p.server, err = sip.Listen(ctx, sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}, Logger: log}, p); err != nil {
		p.audio.Close()
		return nil, fmt.Errorf("signalling of a caller: %w", err)
	}
	return p, nil
}

// Addr is where its calls come from.
func (p *Phone) Addr() netip.AddrPort { return p.server.Addr() }

// Play lets a clip be heard to its end.
func (l *Line) Play(ctx context.Context, c *media.Clip) {
	playing := l.stream.Play(c, media.PlayOptions{})
	select {
	case <-playing.Done():
	case <-l.over:
		playing.Stop()
	case <-ctx.Done():
		playing.Stop()
	}
}

// Press sends digits, as events where the other side takes them, else as tones.
func (l *Line) Press(ctx context.Context, digits string) error {
	return l.stream.SendDTMF(ctx, digits, media.DTMFOptions{Inband: !l.stream.TakesEvents()})
}
