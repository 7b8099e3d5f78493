package media

import (
	"fmt"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

const (
	// sealRoom is the most that SRTP and SRTCP add to a packet: tag and index.
	sealRoom = 32
	// replayWindow is how many packets may be overtaken (RFC 3711 §3.3.2: at least 64).
	replayWindow = 256
	// maxSources is how many SSRCs one key is used with before further ones are
	// refused: who has the key could otherwise fill our memory.
	maxSources = 64
	// oldKeyTime is how long packets under the key before a change are still taken.
	oldKeyTime = int64(2 * time.Second)
)

// A sealer encrypts what one leg is sent. It is guarded by the stream's out.mu.
type sealer struct {
	key    masterKey
	ctx    *srtp.Context
	header rtp.Header
	buf    [maxPacket + sealRoom]byte
}

func newSealer(k masterKey) (*sealer, error) {
	k.mkis = 0 // ours name no key identifier
	ctx, err := k.context()
	if err != nil {
		return nil, fmt.Errorf("make SRTP context to send with: %w", err)
	}
	return &sealer{key: k, ctx: ctx}, nil
}

// rtp returns b encrypted, in a buffer of the sealer; b stays as it is.
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

// An opener decrypts what one leg sends, after it has proved that the packet is
// the leg's and no repetition. It is guarded by the stream's in.mu.
type opener struct {
	key    masterKey
	ctx    *srtp.Context
	header rtp.Header

	sources [maxSources]uint32 // that have proved themselves
	known   int

	// During a change of keys: packets of the key before are under way still, and
	// the other side may go on counting roll-overs (RFC 3711 §3.3.1) or begin anew.
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

// rekey changes to another key; ssrc is who is heard at the moment.
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

// rtp returns b decrypted, in a buffer of the opener.
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

// changing tries what else may be right while keys change.
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
