package codec

import (
	"errors"

	"github.com/pion/opus"
)

// opusDecoder decodes Opus to 16 kHz mono, in pure Go: untrusted packets never reach a C library.
type opusDecoder struct {
	d   opus.Decoder
	out [opusMaxSamples]int16
}

// opusMaxSamples is 120 ms at 16 kHz, the longest packet (RFC 6716 §2.1.4).
const opusMaxSamples = 1920

// NewOpusDecoder returns a decoder of one stream.
func NewOpusDecoder() *opusDecoder {
	o := &opusDecoder{}
	o.reset()
	return o
}

// Rate returns the sample rate of the output, Hz.
func (o *opusDecoder) Rate() int { return 16000 }

func (o *opusDecoder) reset() {
	o.d, _ = opus.NewDecoderWithOutput(16000, 1) // fails for other rates only
}

// Decode appends a packet's samples to dst. A packet that cannot be decoded becomes silence of the duration it
// states.
func (o *opusDecoder) Decode(dst []int16, payload []byte) []int16 {
	n, err := o.read(payload)
	if err != nil {
		n = opusSamples(payload)
		clear(o.out[:n])
	}
	return append(dst, o.out[:n]...)
}

var errOpus = errors.New("opus packet cannot be decoded")

func (o *opusDecoder) read(payload []byte) (n int, err error) {
	defer func() {
		if recover() != nil { // a malformed packet must not end the process
			o.reset()
			n, err = 0, errOpus
		}
	}()
	if len(payload) < 3 { // DTX: only a TOC byte
		return 0, errOpus
	}
	n, err = o.d.DecodeToInt16(payload, o.out[:])
	if err == nil && (n < 0 || n > opusMaxSamples) {
		return 0, errOpus
	}
	return n, err
}

// opusSamples returns the duration of a packet at 16 kHz (RFC 6716 §3.1), or 0 if it is malformed.
func opusSamples(payload []byte) int {
	if len(payload) == 0 {
		return 0
	}
	frames := 1
	switch payload[0] & 3 {
	case 1, 2:
		frames = 2
	case 3:
		if len(payload) < 2 {
			return 0
		}
		frames = int(payload[1] & 63)
	}
	if n := frames * opusFrame(payload[0]>>3); n <= opusMaxSamples {
		return n
	}
	return 0
}

// opusFrame returns the duration of a frame of a configuration at 16 kHz.
func opusFrame(config byte) int {
	switch {
	case config < 12: // SILK: 10, 20, 40, 60 ms
		return [4]int{160, 320, 640, 960}[config&3]
	case config < 16: // hybrid: 10, 20 ms
		return 160 << (config & 1)
	}
	return 40 << (config & 3) // CELT: 2.5, 5, 10, 20 ms
}
