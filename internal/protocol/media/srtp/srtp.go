// Package srtp encrypts and decrypts the packets of one leg (RFC 3711).
package srtp

import (
	"fmt"
	"time"

	"github.com/pion/rtp"
	pion "github.com/pion/srtp/v3"
)

const (
	// overhead is the most that SRTP and SRTCP add to a packet: tag and index.
	overhead = 32
	// maxPacket is the largest packet that is encrypted or decrypted; the packet loops read no larger ones.
	maxPacket = 2048
	// replayWindow is the size of the replay window in packets (RFC 3711 §3.3.2: at least 64).
	replayWindow = 256
	// MaxSSRCs limits the SSRCs per key. Otherwise a peer with the key could exhaust our memory.
	MaxSSRCs = 64
	// oldKeyLifetime is how long packets under the previous key are accepted after a change, in ns.
	oldKeyLifetime = int64(2 * time.Second)
)

// An Encryptor encrypts the packets to one leg. The stream's out.mu guards it.
type Encryptor struct {
	Key    MasterKey
	ctx    *pion.Context
	header rtp.Header
	buf    [maxPacket + overhead]byte
}

// NewEncryptor returns an encryptor with a key. It fails if the key has the wrong length.
func NewEncryptor(k MasterKey) (*Encryptor, error) {
	k.mkiLen = 0 // our packets carry no MKI
	ctx, err := k.Context()
	if err != nil {
		return nil, fmt.Errorf("make SRTP context to send with: %w", err)
	}
	return &Encryptor{Key: k, ctx: ctx}, nil
}

// EncryptRTP returns b encrypted, in a buffer of the encryptor. b is unchanged.
func (s *Encryptor) EncryptRTP(b []byte) ([]byte, bool) {
	if len(b) > maxPacket {
		return nil, false
	}
	out, err := s.ctx.EncryptRTP(s.buf[:0], b, &s.header)
	return out, err == nil
}

// EncryptRTCP is EncryptRTP for RTCP.
func (s *Encryptor) EncryptRTCP(b []byte) ([]byte, bool) {
	if len(b) > maxPacket {
		return nil, false
	}
	out, err := s.ctx.EncryptRTCP(s.buf[:0], b, nil)
	return out, err == nil
}

// A Decryptor authenticates and decrypts the packets from one leg and refuses replays. The stream's in.mu guards
// it.
type Decryptor struct {
	Key    MasterKey
	ctx    *pion.Context
	header rtp.Header

	sources     [MaxSSRCs]uint32 // authenticated SSRCs
	sourceCount int

	// During a change of keys: packets under the previous key are still in transit. The other side may continue its
	// roll-over counter (RFC 3711 §3.3.1) or restart it.
	previous, continued *pion.Context
	previousUntil       int64

	buf [maxPacket]byte
}

// NewDecryptor returns a decryptor with a key. It fails if the key has the wrong length.
func NewDecryptor(k MasterKey) (*Decryptor, error) {
	ctx, err := newDecryptContext(k)
	if err != nil {
		return nil, err
	}
	return &Decryptor{Key: k, ctx: ctx}, nil
}

func newDecryptContext(k MasterKey) (*pion.Context, error) {
	ctx, err := k.Context(pion.SRTPReplayProtection(replayWindow), pion.SRTCPReplayProtection(replayWindow))
	if err != nil {
		return nil, fmt.Errorf("make SRTP context to receive with: %w", err)
	}
	return ctx, nil
}

// Rekey changes to another key. ssrc is the source that is received at the moment.
func (o *Decryptor) Rekey(k MasterKey, ssrc uint32, now int64) error {
	ctx, err := newDecryptContext(k)
	if err != nil {
		return err
	}
	o.continued = nil
	if roc, ok := o.ctx.ROC(ssrc); ok && roc > 0 {
		if o.continued, err = newDecryptContext(k); err != nil {
			return err
		}
		o.continued.SetROC(ssrc, roc)
	}
	o.previous, o.ctx, o.Key = o.ctx, ctx, k
	o.sourceCount, o.previousUntil = 0, now+oldKeyLifetime
	return nil
}

// DecryptRTP returns b decrypted, in a buffer of the decryptor.
func (o *Decryptor) DecryptRTP(b []byte, ssrc uint32, now int64) ([]byte, bool) {
	proved := o.isProved(ssrc)
	if len(b) > maxPacket || !proved && o.sourceCount == MaxSSRCs {
		return nil, false
	}
	out, err := o.ctx.DecryptRTP(o.buf[:0], b, &o.header)
	if err != nil && (o.previous != nil || o.continued != nil) {
		out, err = o.decryptDuringRekey(b, now)
	}
	if err != nil {
		return nil, false
	}
	if !proved {
		o.sources[o.sourceCount] = ssrc
		o.sourceCount++
	}
	return out, true
}

// decryptDuringRekey tries the continued roll-over counter and the previous key while keys change.
func (o *Decryptor) decryptDuringRekey(b []byte, now int64) ([]byte, error) {
	if now > o.previousUntil {
		o.previous = nil
	}
	if o.continued != nil {
		if out, err := o.continued.DecryptRTP(o.buf[:0], b, &o.header); err == nil {
			o.ctx, o.continued = o.continued, nil
			return out, nil
		}
	}
	if o.previous == nil {
		o.continued = nil
		return nil, pion.ErrFailedToVerifyAuthTag
	}
	return o.previous.DecryptRTP(o.buf[:0], b, &o.header)
}

// DecryptRTCP is DecryptRTP for RTCP.
func (o *Decryptor) DecryptRTCP(b []byte) ([]byte, bool) {
	if len(b) > maxPacket || len(b) < 8 {
		return nil, false
	}
	out, err := o.ctx.DecryptRTCP(o.buf[:0], b, nil)
	return out, err == nil
}

func (o *Decryptor) isProved(ssrc uint32) bool {
	for _, s := range o.sources[:o.sourceCount] {
		if s == ssrc {
			return true
		}
	}
	return false
}
