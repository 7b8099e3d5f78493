package softphone

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/sip"
)

// OutsideCaller opens a phone of an outside caller on a free loopback port. It calls the server without registration and
// shows a number.
func OutsideCaller(ctx context.Context, number, server string, log *slog.Logger) (*Phone, error) {
	return OutsideCallerAt(ctx, netip.MustParseAddr("127.0.0.1"), number, server, log)
}

// OutsideCallerAt opens the phone of an outside caller at an address of this machine, such as that of a trunk.
func OutsideCallerAt(ctx context.Context, at netip.Addr, number, server string, log *slog.Logger) (*Phone, error) {
	p := &Phone{account: Account{Registrar: server, Username: number, Domain: at.String()}, log: log, Incoming: make(chan *ActiveCall, 1)}
	var err error
	if p.audio, err = media.New(media.Config{Bind: at, Advertise: at, Loops: 1, Logger: log}); err != nil {
		return nil, fmt.Errorf("audio of a caller: %w", err)
	}
	if p.server, err = sip.Listen(ctx, sip.Config{Addr: netip.AddrPortFrom(at, 0).String(), Accounts: sip.AnySource{}, Logger: log},
		p); err != nil {
		p.audio.Close()
		return nil, fmt.Errorf("signalling of a caller: %w", err)
	}
	return p, nil
}

// Addr returns the address from which the phone sends.
func (p *Phone) Addr() netip.AddrPort { return p.server.Addr() }

// Play plays a clip to its end.
func (l *ActiveCall) Play(ctx context.Context, c *clip.Clip) {
	playing := l.stream.Play(c, media.PlayOptions{})
	select {
	case <-playing.Done():
	case <-l.over:
		playing.Stop()
	case <-ctx.Done():
		playing.Stop()
	}
}

// Listen calls f with each 20 ms of received audio at 8 kHz. Nil stops it. f must not block.
func (l *ActiveCall) Listen(f func(pcm []int16)) { l.stream.OnAudio(f) }

// Feed returns audio of 8 kHz that is sent as it is written. Silence is sent while there is none.
func (l *ActiveCall) Feed() *media.InjectedAudio {
	f := media.NewInjectedAudio(8000)
	l.stream.PlayInjected(f)
	return f
}

// Press sends digits: as RFC 4733 events if the other side accepts them, else as tones.
func (l *ActiveCall) Press(ctx context.Context, digits string) error {
	return l.stream.SendDTMF(ctx, digits, media.DTMFOptions{Inband: !l.stream.TakesEvents()})
}
