package media

// A decoder hears one source. It is not safe for concurrent use.
type decoder interface {
	rate() int                                  // of the samples it makes, Hz
	decode(dst []int16, payload []byte) []int16 // appends; never fails: what cannot be read is silence
}

// An encoder speaks to one listener.
type encoder interface {
	rate() int                             // of the samples it takes, Hz
	encode(dst []byte, pcm []int16) []byte // appends one packet's payload; nothing on failure
}

func newDecoder(c Codec) decoder {
	switch c {
	case G722:
		return newG722Decoder()
	case Opus:
		return newOpusDecoder()
	}
	return lawCoder{c}
}

// newEncoder is for codecs that encode here; for others it speaks µ-law.
func newEncoder(c Codec) encoder {
	switch c {
	case G722:
		return newG722Encoder()
	case Opus:
		if e := newOpusEncoder(); e != nil {
			return e
		}
		return lawCoder{PCMU}
	}
	return lawCoder{c}
}

// lawCoder is G.711, which has no memory.
type lawCoder struct{ law Codec }

func (l lawCoder) rate() int { return 8000 }

func (l lawCoder) decode(dst []int16, payload []byte) []int16 {
	table := &linearOfULaw
	if l.law == PCMA {
		table = &linearOfALaw
	}
	for _, w := range payload {
		dst = append(dst, table[w])
	}
	return dst
}

func (l lawCoder) encode(dst []byte, pcm []int16) []byte {
	table := &ulawOf
	if l.law == PCMA {
		table = &alawOf
	}
	for _, v := range pcm {
		dst = append(dst, table[uint16(v)])
	}
	return dst
}
