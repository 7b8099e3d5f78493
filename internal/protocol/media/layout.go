package media

// A layout is how a recording's file holds its two channels: by turns while it
// is made; a mono one is folded into one channel when it is finished.
type layout struct {
	encoding Encoding
	rate     int64
	mono     bool
}

// layoutOf is G.711 at 8 kHz, or linear at 16 kHz for wide band.
func layoutOf(cfg RecordConfig) layout {
	if cfg.Wideband {
		return layout{PCM16, 16000, cfg.Mono}
	}
	return layout{cfg.Codec.encoding(), 8000, cfg.Mono}
}

// channels is how many the finished file has. The header of a .part says so too.
func (l layout) channels() int {
	if l.mono {
		return 1
	}
	return 2
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
	return wavHeader(l.encoding, l.channels(), int(l.rate), dataLen)
}

// ms is a duration in samples.
func (l layout) ms(n int64) int64 { return n * l.rate / 1000 }

// samples is a duration in ns as samples.
func (l layout) samples(ns int64) int64 { return ns / 1000 * l.rate / 1_000_000 }
