package media

import (
	"bytes"
	"errors"
	"io"

	"github.com/pion/opus/pkg/oggreader"
)

// decodeOgg decodes Opus in Ogg (RFC 7845) to 16 kHz.
func decodeOgg(b []byte) ([]int16, int, error) {
	r, head, err := oggreader.NewWith(bytes.NewReader(b))
	if err != nil {
		return nil, 0, err
	}
	if head.Channels > 2 {
		return nil, 0, errors.New("more than two channels")
	}
	d, pcm := newOpusDecoder(), []int16(nil)
	for most := int(maxClipDuration.Seconds()) * 16000; len(pcm) <= most; {
		packet, _, err := r.ParseNextPacket()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && len(pcm) > 0 {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		if bytes.HasPrefix(packet, []byte("OpusTags")) {
			continue
		}
		pcm = d.decode(pcm, packet)
	}
	return pcm[min(len(pcm), int(head.PreSkip)/3):], 16000, nil
}
