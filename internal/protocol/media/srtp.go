package media

import (
	"fmt"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

const (
	// srtpOverhead is the most that SRTP and SRTCP add to a packet: tag and index.
	sealRoom = 32
	// replayWindow is the size of the replay window in packets (RFC 3711 §3.3.2: at least 64).
	replayWindow = 256
	// maxSSRCs limits the SSRCs per key. Otherwise a peer with the key could exhaust our memory.
	maxSources = 64
	// oldKeyLifetime is how long packets under the previous key are accepted after a change, in ns.
	oldKeyTime = int64(2 * time.Second)
)

// An srtpEncryptor encrypts the packets to one leg. The stream's out.mu guards it.
type sealer struct {
	key    masterKey
	ctx    *srtp.Context
	header rtp.Header
	buf    [maxPacket + sealRoom]byte
}

func newSealer(k masterKey) (*sealer, error) {
	k.mkis = 0 // our packets carry no MKI
	ctx, err := k.context()
	if err != nil {
		return nil, fmt.Errorf("make SRTP context to send with: %w", err)
	}
	return &sealer{key: k, ctx: ctx}, nil
}

// encryptRTP returns b encrypted, in a buffer of the encryptor. b is unchanged.
func (s *sealer) rtp(b []byte) ([]byte, bool) {
	if len(b) > maxPacket {
		return nil, false
	}
	out, err := s.ctx.EncryptRTP(s.buf[:0], b, &s.header)
	return out, err == nil
}

func (s *sealer) rtcp(b []byte) ([]byte, bool) {
	if len(b) > maxPacket {
		return nil, false
	}
	out, err := s.ctx.EncryptRTCP(s.buf[:0], b, nil)
	return out, err == nil
}

// An srtpDecryptor authenticates and decrypts the packets from one leg and refuses replays. The stream's in.mu guards
// it.
type opener struct {
	key    masterKey
	ctx    *srtp.Context
	header rtp.Header

	sources [maxSources]uint32 // authenticated SSRCs
	known   int

	// During a change of keys: packets under the previous key are still in transit. The other side may continue its
	// roll-over counter (RFC 3711 §3.3.1) or restart it.
	before, counting *srtp.Context
	until            int64

	buf [maxPacket]byte
}

func newOpener(k masterKey) (*opener, error) {
	ctx, err := openContext(k)
	if err != nil {
		return nil, err
	}
	return &opener{key: k, ctx: ctx}, nil
}

func openContext(k masterKey) (*srtp.Context, error) {
	ctx, err := k.context(srtp.SRTPReplayProtection(replayWindow), srtp.SRTCPReplayProtection(replayWindow))
	if err != nil {
		return nil, fmt.Errorf("make SRTP context to receive with: %w", err)
	}
	return ctx, nil
}

// rekey changes to another key. ssrc is the source that is received at the moment.
func (o *opener) rekey(k masterKey, ssrc uint32, now int64) error {
	ctx, err := openContext(k)
	if err != nil {
		return err
	}
	o.counting = nil
	if roc, ok := o.ctx.ROC(ssrc); ok && roc > 0 {
		if o.counting, err = openContext(k); err != nil {
			return err
		}
		o.counting.SetROC(ssrc, roc)
	}
	o.before, o.ctx, o.key = o.ctx, ctx, k
	o.known, o.until = 0, now+oldKeyTime
	return nil
}

// decryptRTP returns b decrypted, in a buffer of the decryptor.
func (o *opener) rtp(b []byte, ssrc uint32, now int64) ([]byte, bool) {
	proved := o.proved(ssrc)
	if len(b) > maxPacket || !proved && o.known == maxSources {
		return nil, false
	}
	out, err := o.ctx.DecryptRTP(o.buf[:0], b, &o.header)
	if err != nil && (o.before != nil || o.counting != nil) {
		out, err = o.changing(b, now)
	}
	if err != nil {
		return nil, false
	}
	if !proved {
		o.sources[o.known] = ssrc
		o.known++
	}
	return out, true
}

// decryptDuringRekey tries the continued roll-over counter and the previous key while keys change.
func (o *opener) changing(b []byte, now int64) ([]byte, error) {
	if now > o.until {
		o.before = nil
	}
	if o.counting != nil {
		if out, err := o.counting.DecryptRTP(o.buf[:0], b, &o.header); err == nil {
			o.ctx, o.counting = o.counting, nil
			return out, nil
		}
	}
	if o.before == nil {
		o.counting = nil
		return nil, srtp.ErrFailedToVerifyAuthTag
	}
	return o.before.DecryptRTP(o.buf[:0], b, &o.header)
}

func (o *opener) rtcp(b []byte) ([]byte, bool) {
	if len(b) > maxPacket || len(b) < 8 {
		return nil, false
	}
	out, err := o.ctx.DecryptRTCP(o.buf[:0], b, nil)
	return out, err == nil
}

func (o *opener) proved(ssrc uint32) bool {
	for _, s := range o.sources[:o.known] {
		if s == ssrc {
			return true
		}
	}
	return false
}
