package record

import (
	"encoding/binary"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/rtp"
	"soniq/internal/protocol/media/wav"
)

// fileEncoder converts the packets of one channel, in any codec, into samples of the recording file.
type fileEncoder struct {
	layout
	ssrc     uint32
	codec    codec.Codec
	decoder  codec.Decoder // nil while G.711 code words are copied
	resample *dsp.Resampler

	pcm, resampled []int16
	out            []byte
}

// convert returns the samples of a packet in the file's encoding. They are valid until the next call or until the
// frame is released. Packets must be passed in order of arrival.
func (s *fileEncoder) convert(f rtp.Frame) []byte {
	c := codec.Codec(f.Kind)
	if c.IsG711() && s.encoding != wav.PCM16 {
		if c != s.law() {
			codec.TranscodeG711(f.Payload, &codec.OtherLawOf[f.Kind]) // in the ring: the frame belongs to the consumer until it is released
		}
		s.decoder = nil
		return f.Payload
	}
	if s.decoder == nil || s.codec != c || s.ssrc != f.SSRC {
		s.codec, s.ssrc, s.decoder = c, f.SSRC, codec.NewDecoder(c)
		s.resample = dsp.NewResampler(s.decoder.Rate(), int(s.rate))
	}
	s.pcm = s.decoder.Decode(s.pcm[:0], f.Payload)
	s.resampled = s.resample.Process(s.resampled[:0], s.pcm)
	return s.encode(s.resampled)
}

func (s *fileEncoder) encode(pcm []int16) []byte {
	s.out = s.out[:0]
	if s.encoding == wav.PCM16 {
		for _, v := range pcm {
			s.out = binary.LittleEndian.AppendUint16(s.out, uint16(v))
		}
		return s.out
	}
	s.out = s.law().Encode(s.out, pcm)
	return s.out
}
