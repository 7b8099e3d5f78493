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
	handshakeTimeout = 30 * time.Second
	// handshakeFlight is the retransmission time of an unanswered flight. RFC 6347 §4.2.4.1 proposes one second,
	// which a caller with a lossy network would hear.
	handshakeFlight = 200 * time.Millisecond
	// maxHandshakeQueue limits the unread bytes of the other side's handshake.
	maxHandshakeQueue = 64 << 10
)

// A dtlsAssociation is the DTLS association that provides the SRTP keys of a leg (RFC 5764). Its goroutine ends with
// the stream, or when the other side closes the association.
type dtlsAssociation struct {
	s            *Stream
	fingerprints []fingerprint
	active       bool
	pathReady    <-chan struct{} // closed when ICE has found a path; nil if packets can be sent at once

	in     *packetio.Buffer // filled by the packet loop
	cancel stdcontext.CancelFunc
	done   chan struct{}
}

func startDTLS(s *Stream, a *securityAgreement, path <-chan struct{}) *dtlsAssociation {
	ctx, cancel := stdcontext.WithCancel(stdcontext.Background())
	l := &dtlsAssociation{s: s, fingerprints: a.fingerprints, active: a.dtlsActive, pathReady: path, in: packetio.NewBuffer(), cancel: cancel, done: make(chan struct{})}
	l.in.SetLimitSize(maxHandshakeQueue)
	go l.run(ctx)
	return l
}

// stop closes the association with a close_notify alert if it is established, and waits for its goroutine.
func (l *dtlsAssociation) stop() {
	l.cancel()
	<-l.done
}

func (l *dtlsAssociation) run(ctx stdcontext.Context) {
	defer close(l.done)
	defer l.in.Close()
	if l.pathReady != nil {
		select {
		case <-l.pathReady:
		case <-ctx.Done():
			return
		}
	}
	if err := l.serve(ctx); err != nil && ctx.Err() == nil {
		l.s.engine.log.Warn("media encryption failed", "local", l.s.local, "err", err)
	}
}

// serve runs the handshake, puts the SRTP keys into force and reads until the association is closed.
func (l *dtlsAssociation) serve(ctx stdcontext.Context) error {
	conn, err := l.newConn()
	if err != nil {
		return fmt.Errorf("begin DTLS: %w", err)
	}
	defer conn.Close()
	soon, cancel := stdcontext.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(soon); err != nil {
		return fmt.Errorf("DTLS handshake: %w", err)
	}
	in, out, err := l.exportKeys(conn)
	if err != nil {
		return fmt.Errorf("take keys from DTLS: %w", err)
	}
	l.s.setKeys(in, out)
	stop := stdcontext.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	for b := make([]byte, maxPacket); ; { // the read loop answers retransmissions of the peer's last flight; application data is ignored
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

func (l *dtlsAssociation) newConn() (*dtls.Conn, error) {
	peer := &net.UDPAddr{} // a placeholder: the stream knows the real address
	silent := &logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled}
	options := []dtls.Option{
		dtls.WithCertificates(l.s.engine.certificate.tls),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AEAD_AES_256_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80),
		dtls.WithFlightInterval(handshakeFlight),
		dtls.WithInsecureSkipVerify(true), // certificates are verified by their fingerprint
		dtls.WithVerifyPeerCertificate(func(raw [][]byte, _ [][]*x509.Certificate) error { return verifyCertificate(l.fingerprints, raw) }),
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

// exportKeys returns the SRTP master keys of both directions (RFC 5764 §4.2).
func (l *dtlsAssociation) exportKeys(conn *dtls.Conn) (in, out masterKey, err error) {
	profile, _ := conn.SelectedSRTPProtectionProfile()
	s, ok := suiteOfProfile(srtp.ProtectionProfile(profile))
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

// matches reports whether an agreement asks for this association, by the signalled fingerprints.
func (l *dtlsAssociation) matches(a *securityAgreement) bool {
	return slices.Equal(l.fingerprints, a.fingerprints)
}

// receive queues a packet from the packet loop. A packet that does not fit is dropped.
func (l *dtlsAssociation) receive(b []byte) { _, _ = l.in.Write(b) }

// A dtlsAssociation implements net.PacketConn for the DTLS library.

// ReadFrom reads a packet that the other side sent.
func (l *dtlsAssociation) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := l.in.Read(b)
	return n, &net.UDPAddr{}, err
}

// WriteTo sends a packet to the current RTP destination of the stream.
func (l *dtlsAssociation) WriteTo(b []byte, _ net.Addr) (int, error) {
	l.s.out.mu.Lock()
	to := l.s.out.to
	l.s.out.mu.Unlock()
	l.s.sendRaw(b, to)
	return len(b), nil
}

// Close is called when the association ends. The socket stays open, because it belongs to the stream.
func (l *dtlsAssociation) Close() error { return l.in.Close() }

// LocalAddr returns the local RTP address of the stream.
func (l *dtlsAssociation) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(l.s.local) }

// SetDeadline is SetReadDeadline, because writes never block.
func (l *dtlsAssociation) SetDeadline(t time.Time) error { return l.SetReadDeadline(t) }

// SetReadDeadline sets the deadline of ReadFrom.
func (l *dtlsAssociation) SetReadDeadline(t time.Time) error { return l.in.SetReadDeadline(t) }

// SetWriteDeadline does nothing, because writes never block.
func (l *dtlsAssociation) SetWriteDeadline(time.Time) error { return nil }

// receiveNonRTP handles STUN and DTLS packets (RFC 7983 §7). The caller holds in.mu.
func (s *Stream) receiveNonRTP(b []byte, from netip.AddrPort, now int64) {
	in := &s.in
	switch {
	case len(b) == 0:
	case b[0] < 4 && in.ice != nil:
		if !in.ice.receive(b, from, now) {
			in.ignored++
		}
		return
	case b[0] >= 20 && b[0] < 64 && in.dtls != nil:
		if !s.acceptsDTLS(from) {
			in.ignored++
			return
		}
		if in.ice == nil { // answers of the handshake go to its source
			s.out.setDestination(from)
		}
		in.dtls.receive(b)
		return
	}
	in.malformed++
}

// acceptsDTLS reports whether DTLS packets from this source are processed. Without ICE only known hosts qualify,
// because packets of an unknown source could break the phone's handshake.
func (s *Stream) acceptsDTLS(from netip.AddrPort) bool {
	if s.in.ice != nil {
		return s.in.ice.isProved(from)
	}
	l := &s.in.latch
	return from == l.source || l.rankOf(from) >= rankKnownHost
}
