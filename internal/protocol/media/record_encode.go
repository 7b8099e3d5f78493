package media

import "encoding/binary"

// fileEncoder converts the packets of one channel, in any codec, into samples of the recording file.
type fileEncoder struct {
	layout
	ssrc     uint32
	codec    Codec
	decoder  decoder // nil while G.711 code words are copied
	resample *resampler

	pcm, resampled []int16
	out            []byte
}

// convert returns the samples of a packet in the file's encoding. They are valid until the next call or until the
// frame is released. Packets must be passed in order of arrival.
func (s *fileEncoder) convert(f ringFrame) []byte {
	codec := Codec(f.kind)
	if codec.g711() && s.encoding != PCM16 {
		if codec != s.law() {
			transcodeG711(f.payload, &otherLawOf[f.kind]) // in the ring: the frame belongs to the consumer until it is released
		}
		s.decoder = nil
		return f.payload
	}
	if s.decoder == nil || s.codec != codec || s.ssrc != f.ssrc {
		s.codec, s.ssrc, s.decoder = codec, f.ssrc, newDecoder(codec)
		s.resample = newResampler(s.decoder.rate(), int(s.rate))
	}
	s.pcm = s.decoder.decode(s.pcm[:0], f.payload)
	s.resampled = s.resample.process(s.resampled[:0], s.pcm)
	return s.encode(s.resampled)
}

func (s *fileEncoder) encode(pcm []int16) []byte {
	s.out = s.out[:0]
	if s.encoding == PCM16 {
		for _, v := range pcm {
			s.out = binary.LittleEndian.AppendUint16(s.out, uint16(v))
		}
		return s.out
	}
	s.out = g711Coder{s.law()}.encode(s.out, pcm)
	return s.out
}
