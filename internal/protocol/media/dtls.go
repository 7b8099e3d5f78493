package media

import (
	stdcontext "context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/logging"
	"github.com/pion/srtp/v3"
	"github.com/pion/transport/v4/packetio"
)

const (
	handshakeTime = 30 * time.Second
	// handshakeFlight is how long an unanswered flight waits. RFC 6347 §4.2.4.1
	// proposes a second, which the caller of a lossy browser would hear.
	handshakeFlight = 200 * time.Millisecond
	// maxWaiting is how much of the other side's handshake waits to be read.
	maxWaiting = 64 << 10
)

// A dtlsLink is the DTLS association that gives a leg its SRTP keys (RFC 5764).
// Its goroutine ends with the stream, or when the other side closes.
type dtlsLink struct {
	s      *Stream
	prints []fingerprint
	active bool
	path   <-chan struct{} // closed when packets have a way to go; nil is at once

	in     *packetio.Buffer // from the packet loop
	cancel stdcontext.CancelFunc
	done   chan struct{}
}

func startDTLS(s *Stream, a *agreement, path <-chan struct{}) *dtlsLink {
	ctx, cancel := stdcontext.WithCancel(stdcontext.Background())
	l := &dtlsLink{s: s, prints: a.prints, active: a.active, path: path, in: packetio.NewBuffer(), cancel: cancel, done: make(chan struct{})}
	l.in.SetLimitSize(maxWaiting)
	go l.run(ctx)
	return l
}

// stop ends the association, telling the other side where it stood.
func (l *dtlsLink) stop() {
	l.cancel()
	<-l.done
}

func (l *dtlsLink) run(ctx stdcontext.Context) {
	defer close(l.done)
	defer l.in.Close()
	if l.path != nil {
		select {
		case <-l.path:
		case <-ctx.Done():
			return
		}
	}
	if err := l.serve(ctx); err != nil && ctx.Err() == nil {
		l.s.engine.log.Warn("media encryption failed", "local", l.s.local, "err", err)
	}
}

// serve shakes hands, puts the keys in force and keeps the association until it is closed.
func (l *dtlsLink) serve(ctx stdcontext.Context) error {
	conn, err := l.open()
	if err != nil {
		return fmt.Errorf("begin DTLS: %w", err)
	}
	defer conn.Close()
	soon, cancel := stdcontext.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if err := conn.HandshakeContext(soon); err != nil {
		return fmt.Errorf("DTLS handshake: %w", err)
	}
	in, out, err := l.keys(conn)
	if err != nil {
		return fmt.Errorf("take keys from DTLS: %w", err)
	}
	l.s.setKeys(in, out)
	stop := stdcontext.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	for b := make([]byte, maxPacket); ; { // a late repetition of their last flight is answered; data is not for us
		if _, err := conn.Read(b); errors.Is(err, io.EOF) || errors.Is(err, dtls.ErrConnClosed) || ctx.Err() != nil {
			return nil
		} else if err != nil && isClosed(err) {
			return nil
		}
	}
}

func isClosed(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

func (l *dtlsLink) open() (*dtls.Conn, error) {
	peer := &net.UDPAddr{} // who it is the stream knows
	silent := &logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled}
	options := []dtls.Option{
		dtls.WithCertificates(l.s.engine.certificate.tls),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AEAD_AES_256_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80),
		dtls.WithFlightInterval(handshakeFlight),
		dtls.WithInsecureSkipVerify(true), // the fingerprint says whose it is
		dtls.WithVerifyPeerCertificate(func(raw [][]byte, _ [][]*x509.Certificate) error { return verify(l.prints, raw) }),
		dtls.WithLoggerFactory(silent),
	}
	if l.active {
		client := make([]dtls.ClientOption, 0, len(options))
		for _, o := range options {
			client = append(client, o)
		}
		return dtls.ClientWithOptions(l, peer, client...)
	}
	server := []dtls.ServerOption{dtls.WithClientAuth(dtls.RequireAnyClientCert), dtls.WithInsecureSkipVerifyHello(true)}
	for _, o := range options {
		server = append(server, o)
	}
	return dtls.ServerWithOptions(l, peer, server...)
}

// keys are both directions' (RFC 5764 §4.2).
func (l *dtlsLink) keys(conn *dtls.Conn) (in, out masterKey, err error) {
	profile, _ := conn.SelectedSRTPProtectionProfile()
	s, ok := suiteOf(srtp.ProtectionProfile(profile))
	state, ok2 := conn.ConnectionState()
	if !ok || !ok2 {
		return in, out, errors.New("no protection profile agreed")
	}
	raw, err := state.ExportKeyingMaterial("EXTRACTOR-dtls_srtp", nil, 2*(s.keyLen()+s.saltLen()))
	if err != nil {
		return in, out, err
	}
	client, server := masterKey{suite: s}, masterKey{suite: s}
	for _, part := range [][]byte{client.key[:s.keyLen()], server.key[:s.keyLen()], client.salt[:s.saltLen()], server.salt[:s.saltLen()]} {
		raw = raw[copy(part, raw):]
	}
	if l.active {
		return server, client, nil
	}
	return client, server, nil
}

// serves reports whether the association is the one an agreement asks for.
func (l *dtlsLink) serves(a *agreement) bool { return slices.Equal(l.prints, a.prints) }

// receive takes a packet from the loop. What does not fit is lost, as on the wire.
func (l *dtlsLink) receive(b []byte) { _, _ = l.in.Write(b) }

// A dtlsLink is the net.PacketConn of its association.

// ReadFrom reads a packet of the other side's.
func (l *dtlsLink) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := l.in.Read(b)
	return n, &net.UDPAddr{}, err
}

// WriteTo sends a packet the way media goes.
func (l *dtlsLink) WriteTo(b []byte, _ net.Addr) (int, error) {
	l.s.out.mu.Lock()
	to := l.s.out.to
	l.s.out.mu.Unlock()
	l.s.sendRaw(b, to)
	return len(b), nil
}

// Close is called when the association ends; the socket is the stream's.
func (l *dtlsLink) Close() error { return l.in.Close() }

// LocalAddr is the stream's.
func (l *dtlsLink) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(l.s.local) }

// SetDeadline is SetReadDeadline: writing never waits.
func (l *dtlsLink) SetDeadline(t time.Time) error { return l.SetReadDeadline(t) }

// SetReadDeadline bounds ReadFrom.
func (l *dtlsLink) SetReadDeadline(t time.Time) error { return l.in.SetReadDeadline(t) }

// SetWriteDeadline does nothing.
func (l *dtlsLink) SetWriteDeadline(time.Time) error { return nil }

// receiveOther handles what is not RTP (RFC 7983 §7); in.mu is held.
func (s *Stream) receiveOther(b []byte, from netip.AddrPort, now int64) {
	in := &s.in
	switch {
	case len(b) == 0:
	case b[0] < 4 && in.ice != nil:
		if !in.ice.receive(b, from, now) {
			in.ignored++
		}
		return
	case b[0] >= 20 && b[0] < 64 && in.link != nil:
		if !s.mayShake(from) {
			in.ignored++
			return
		}
		if in.ice == nil { // where the handshake comes from its answer goes
			s.out.route(from)
		}
		in.link.receive(b)
		return
	}
	in.malformed++
}

// mayShake reports whether DTLS from this source is looked at: without ICE only
// that of hosts we know, for a stranger's could spoil the handshake of the phone.
func (s *Stream) mayShake(from netip.AddrPort) bool {
	if s.in.ice != nil {
		return s.in.ice.knows(from)
	}
	l := &s.in.latch
	return from == l.source || l.rankOf(from) >= known
}
