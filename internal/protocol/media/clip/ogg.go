package clip

import (
	"bytes"
	"errors"
	"io"

	"github.com/pion/opus/pkg/oggreader"

	"soniq/internal/protocol/media/codec"
)

// Limits of packets. An Opus packet holds at most 120 ms (RFC 6716 §3.2.5); packets without sound cost time too.
const (
	maxOpusPacket   = 64 << 10 // bytes
	packetsPerPiece = 50
)

// oggDecoder decodes Opus in Ogg (RFC 7845) to 16 kHz.
type oggDecoder struct {
	packets *oggreader.OggReader
	codec   codec.Decoder
	skip    int // samples at the beginning that are not played
	begun   bool
	pcm     []int16
}

func newOggDecoder(f io.Reader) (decoder, error) {
	r, head, err := oggreader.NewWith(f)
	if err != nil {
		return nil, err
	}
	if head.Channels > 2 {
		return nil, errors.New("more than two channels")
	}
	return &oggDecoder{packets: r, codec: codec.NewOpusDecoder(), skip: int(head.PreSkip) / 3}, nil
}

func (d *oggDecoder) rate() int { return 16000 }

func (d *oggDecoder) next() ([]int16, error) {
	d.pcm = d.pcm[:0]
	for range packetsPerPiece {
		packet, _, err := d.packets.ParseNextPacket()
		if errors.Is(err, io.ErrUnexpectedEOF) && (d.begun || len(d.pcm) > 0) {
			err = io.EOF
		}
		if err != nil {
			return d.played(), err
		}
		if len(packet) > maxOpusPacket {
			return nil, errors.New("a packet is too large")
		}
		if !bytes.HasPrefix(packet, []byte("OpusTags")) {
			d.pcm = d.codec.Decode(d.pcm, packet)
		}
	}
	return d.played(), nil
}

// played returns the samples without those to skip.
func (d *oggDecoder) played() []int16 {
	n := min(d.skip, len(d.pcm))
	d.skip -= n
	d.begun = d.begun || len(d.pcm) > 0
	return d.pcm[n:]
}
