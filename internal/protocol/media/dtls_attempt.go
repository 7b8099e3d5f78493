package media

import (
	stdcontext "context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/logging"
	pion "github.com/pion/srtp/v3"
	"github.com/pion/transport/v4/packetio"

	"soniq/internal/protocol/media/srtp"
)

const (
	handshakeTimeout = 30 * time.Second
	// handshakeFlight is the retransmission time of an unanswered flight. RFC 6347 §4.2.4.1 proposes one second,
	// which a caller with a lossy network would hear.
	handshakeFlight = 200 * time.Millisecond
	// maxHandshakeQueue limits the unread bytes of the other side's handshake.
	maxHandshakeQueue = 64 << 10
)

// A dtlsAttempt is one handshake, and the association that follows it.
type dtlsAttempt struct {
	l      *dtlsAssociation
	from   netip.AddrPort   // the other side; zero for the RTP destination of the stream
	in     *packetio.Buffer // filled by the packet loop
	cancel stdcontext.CancelFunc
}

// run waits for the path, and serves the attempt until it ends.
func (a *dtlsAttempt) run(ctx stdcontext.Context) {
	l := a.l
	defer l.forget(a)
	defer a.cancel()
	defer a.in.Close()
	if l.pathReady != nil {
		select {
		case <-l.pathReady:
		case <-ctx.Done():
			return
		}
	}
	if err := a.serve(ctx); err != nil && ctx.Err() == nil {
		l.s.engine.log.Warn("media encryption failed", "local", l.s.local, "peer", a.from, "err", err)
	}
}

// serve runs the handshake, puts the SRTP keys into force and reads until the association is closed.
func (a *dtlsAttempt) serve(ctx stdcontext.Context) error {
	conn, err := a.newConn()
	if err != nil {
		return fmt.Errorf("begin DTLS: %w", err)
	}
	defer conn.Close()
	soon, cancel := stdcontext.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(soon); err != nil {
		return fmt.Errorf("DTLS handshake: %w", err)
	}
	in, out, err := a.l.exportKeys(conn)
	if err != nil {
		return fmt.Errorf("take keys from DTLS: %w", err)
	}
	if !a.l.succeed(a) {
		return nil
	}
	a.l.s.setKeys(in, out)
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

func (a *dtlsAttempt) newConn() (*dtls.Conn, error) {
	l := a.l
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
		return dtls.ClientWithOptions(a, peer, client...)
	}
	server := []dtls.ServerOption{dtls.WithClientAuth(dtls.RequireAnyClientCert), dtls.WithInsecureSkipVerifyHello(true)}
	for _, o := range options {
		server = append(server, o)
	}
	return dtls.ServerWithOptions(a, peer, server...)
}

// exportKeys returns the SRTP master keys of both directions (RFC 5764 §4.2).
func (l *dtlsAssociation) exportKeys(conn *dtls.Conn) (in, out srtp.MasterKey, err error) {
	profile, _ := conn.SelectedSRTPProtectionProfile()
	s, ok := srtp.SuiteOfProfile(pion.ProtectionProfile(profile))
	state, ok2 := conn.ConnectionState()
	if !ok || !ok2 {
		return in, out, errors.New("no protection profile agreed")
	}
	raw, err := state.ExportKeyingMaterial("EXTRACTOR-dtls_srtp", nil, 2*(s.KeyLen()+s.SaltLen()))
	if err != nil {
		return in, out, err
	}
	client, server := srtp.MasterKey{Suite: s}, srtp.MasterKey{Suite: s}
	for _, part := range [][]byte{client.Key[:s.KeyLen()], server.Key[:s.KeyLen()], client.Salt[:s.SaltLen()], server.Salt[:s.SaltLen()]} {
		raw = raw[copy(part, raw):]
	}
	if l.active {
		return server, client, nil
	}
	return client, server, nil
}

// A dtlsAttempt implements net.PacketConn for the DTLS library.

// ReadFrom reads a packet that the other side sent.
func (a *dtlsAttempt) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := a.in.Read(b)
	return n, &net.UDPAddr{}, err
}

// WriteTo sends a packet to the other side.
func (a *dtlsAttempt) WriteTo(b []byte, _ net.Addr) (int, error) {
	s, to := a.l.s, a.from
	if !to.IsValid() {
		s.out.mu.Lock()
		to = s.out.to
		s.out.mu.Unlock()
	}
	s.sendRaw(b, to)
	return len(b), nil
}

// Close is called when the association ends. The socket stays open, because it belongs to the stream.
func (a *dtlsAttempt) Close() error { return a.in.Close() }

// LocalAddr returns the local RTP address of the stream.
func (a *dtlsAttempt) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(a.l.s.local) }

// SetDeadline is SetReadDeadline, because writes never block.
func (a *dtlsAttempt) SetDeadline(t time.Time) error { return a.SetReadDeadline(t) }

// SetReadDeadline sets the deadline of ReadFrom.
func (a *dtlsAttempt) SetReadDeadline(t time.Time) error { return a.in.SetReadDeadline(t) }

// SetWriteDeadline does nothing, because writes never block.
func (a *dtlsAttempt) SetWriteDeadline(time.Time) error { return nil }
