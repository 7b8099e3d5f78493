package media

// A layout is how a recording's file holds its two channels.
type layout struct {
	encoding Encoding
	rate     int64
}

// layoutOf is G.711 at 8 kHz, or linear at 16 kHz for wide band.
func layoutOf(cfg RecordConfig) layout {
	if cfg.Wideband {
		return layout{PCM16, 16000}
	}
	return layout{cfg.Codec.encoding(), 8000}
}

// encoding is the G.711 law of a file; that of a codec that is none is µ-law.
func (c Codec) encoding() Encoding {
	if c == PCMA {
		return ALaw
	}
	return ULaw
}

// law is the file's code, PCMU for linear ones.
func (l layout) law() Codec {
	if l.encoding == ALaw {
		return PCMA
	}
	return PCMU
}

// width is the size of a sample of one channel in bytes.
func (l layout) width() int64 { return int64(l.encoding.sampleBytes()) }

// offset is where a position is in the file.
func (l layout) offset(at int64) int64 { return wavHeaderLen + 2*l.width()*at }

// header is that of a file with so many bytes of audio.
func (l layout) header(dataLen int64) [wavHeaderLen]byte {
	return wavHeader(l.encoding, 2, int(l.rate), dataLen)
}

// ms is a duration in samples.
func (l layout) ms(n int64) int64 { return n * l.rate / 1000 }

// samples is a duration in ns as samples.
func (l layout) samples(ns int64) int64 { return ns / 1000 * l.rate / 1_000_000 }
