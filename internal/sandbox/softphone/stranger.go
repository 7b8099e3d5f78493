package softphone

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
)

// Stranger gives somebody outside a telephone on a free loopback port: it calls the server without logging in, and shows a number.
func Stranger(ctx context.Context, number, server string, log *slog.Logger) (*Phone, error) {
	return StrangerAt(ctx, netip.MustParseAddr("127.0.0.1"), number, server, log)
}

// StrangerAt is Stranger for one whose telephone is at an address of this machine, such as that of a trunk.
func StrangerAt(ctx context.Context, at netip.Addr, number, server string, log *slog.Logger) (*Phone, error) {
	p := &Phone{account: Account{Registrar: server, Username: number, Domain: at.String()}, log: log, Incoming: make(chan *Line, 1)}
	var err error
	if p.audio, err = media.New(media.Config{Bind: at, Advertise: at, Loops: 1, Logger: log}); err != nil {
		return nil, fmt.Errorf("audio of a caller: %w", err)
	}
	if p.server, err = sip.Listen(ctx, sip.Config{Addr: netip.AddrPortFrom(at, 0).String(), Accounts: sip.AnySource{}, Logger: log}, p); err != nil {
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

// Listen has f told what the other side says, at 8 kHz, 20 ms at a time; nil: nobody. It must not wait.
func (l *Line) Listen(f func(pcm []int16)) { l.stream.OnAudio(f) }

// Press sends digits, as events where the other side takes them, else as tones.
func (l *Line) Press(ctx context.Context, digits string) error {
	return l.stream.SendDTMF(ctx, digits, media.DTMFOptions{Inband: !l.stream.TakesEvents()})
}
