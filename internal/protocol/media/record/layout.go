package record

import (
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/wav"
)

// A layout is the sample format of a recording file. While the recording runs, the file has two interleaved channels;
// a mono recording is mixed to one channel when it is finished.
type layout struct {
	encoding wav.Encoding
	rate     int64
	mono     bool
}

// layoutOf returns G.711 at 8 kHz, or 16-bit linear at 16 kHz for wide band.
func layoutOf(cfg Config) layout {
	if cfg.Wideband {
		return layout{wav.PCM16, 16000, cfg.Mono}
	}
	return layout{wavEncoding(cfg.Codec), 8000, cfg.Mono}
}

// channels returns the number of channels of the finished file. The header of a .part has the same number.
func (l layout) channels() int {
	if l.mono {
		return 1
	}
	return 2
}

// wavEncoding returns the WAV encoding of a G.711 law, and µ-law for other codecs.
func wavEncoding(c codec.Codec) wav.Encoding {
	if c == codec.PCMA {
		return wav.ALaw
	}
	return wav.ULaw
}

// law returns the G.711 law of the file, and PCMU for linear files.
func (l layout) law() codec.Codec {
	if l.encoding == wav.ALaw {
		return codec.PCMA
	}
	return codec.PCMU
}

// width returns the bytes per sample of one channel.
func (l layout) width() int64 { return int64(l.encoding.SampleBytes()) }

// fileOffset returns the byte offset of a position in the file.
func (l layout) fileOffset(at int64) int64 { return wav.HeaderLen + 2*l.width()*at }

// header returns the header of a file with dataLen bytes of audio.
func (l layout) header(dataLen int64) [wav.HeaderLen]byte {
	return wav.Header(l.encoding, l.channels(), int(l.rate), dataLen)
}

// ms converts milliseconds into samples.
func (l layout) ms(n int64) int64 { return n * l.rate / 1000 }

// samples converts nanoseconds into samples.
func (l layout) samples(ns int64) int64 { return ns / 1000 * l.rate / 1_000_000 }
