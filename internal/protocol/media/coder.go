package media

// A decoder decodes the packets of one source. It is not safe for concurrent use.
type decoder interface {
	rate() int                                  // sample rate of its output, Hz
	decode(dst []int16, payload []byte) []int16 // appends to dst; it never fails: a payload that cannot be decoded becomes silence
}

// An encoder encodes the packets of one destination. It is not safe for concurrent use.
type encoder interface {
	rate() int                             // sample rate of its input, Hz
	encode(dst []byte, pcm []int16) []byte // appends one packet's payload; appends nothing on failure
}

func newDecoder(c Codec) decoder {
	switch c {
	case G722:
		return newG722Decoder()
	case Opus:
		return newOpusDecoder()
	}
	return g711Coder{c}
}

// newEncoder returns an encoder for the codec. A codec that cannot be encoded on this machine gets a µ-law encoder.
func newEncoder(c Codec) encoder {
	switch c {
	case G722:
		return newG722Encoder()
	case Opus:
		if e := newOpusEncoder(); e != nil {
			return e
		}
		return g711Coder{PCMU}
	}
	return g711Coder{c}
}

// g711Coder encodes and decodes G.711. It has no state.
type g711Coder struct{ law Codec }

func (l g711Coder) rate() int { return 8000 }

func (l g711Coder) decode(dst []int16, payload []byte) []int16 {
	table := &linearOfULaw
	if l.law == PCMA {
		table = &linearOfALaw
	}
	for _, w := range payload {
		dst = append(dst, table[w])
	}
	return dst
}

func (l g711Coder) encode(dst []byte, pcm []int16) []byte {
	table := &ulawOf
	if l.law == PCMA {
		table = &alawOf
	}
	for _, v := range pcm {
		dst = append(dst, table[uint16(v)])
	}
	return dst
}
