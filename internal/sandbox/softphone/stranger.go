package softphone

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
)

// OutsideCaller opens an outside caller on a free loopback port. It calls the server without registering and shows a
// caller ID.
func Stranger(ctx context.Context, number, server string, log *slog.Logger) (*Phone, error) {
	return StrangerAt(ctx, netip.MustParseAddr("127.0.0.1"), number, server, log)
}

// OutsideCallerAt is OutsideCaller with another local address of this machine, such as that of a trunk.
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

// Addr returns the source address of the phone's calls.
func (p *Phone) Addr() netip.AddrPort { return p.server.Addr() }

// Play plays a clip to its end.
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

// Listen calls f with the audio of the other side at 8 kHz, 20 ms at a time. f must not block. A nil f ends the
// calls.
func (l *Line) Listen(f func(pcm []int16)) { l.stream.OnAudio(f) }

// Press sends digits, as events if the other side takes them, else as tones.
func (l *Line) Press(ctx context.Context, digits string) error {
	return l.stream.SendDTMF(ctx, digits, media.DTMFOptions{Inband: !l.stream.TakesEvents()})
}
