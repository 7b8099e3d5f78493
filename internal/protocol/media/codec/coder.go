package codec

// A Decoder decodes the packets of one source. It is not safe for concurrent use.
type Decoder interface {
	Rate() int                                  // sample rate of its output, Hz
	Decode(dst []int16, payload []byte) []int16 // appends to dst; it never fails: a payload that cannot be decoded becomes silence
}

// An Encoder encodes the packets of one destination. It is not safe for concurrent use.
type Encoder interface {
	Rate() int                             // sample rate of its input, Hz
	Encode(dst []byte, pcm []int16) []byte // appends one packet's payload; appends nothing on failure
}

// NewDecoder returns a decoder for the codec.
func NewDecoder(c Codec) Decoder {
	switch c {
	case G722:
		return newG722Decoder()
	case Opus:
		return NewOpusDecoder()
	}
	return g711Coder{c}
}

// NewEncoder returns an encoder for the codec. A codec that cannot be encoded on this machine gets a µ-law encoder.
func NewEncoder(c Codec) Encoder {
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

// Rate returns the sample rate, Hz.
func (l g711Coder) Rate() int { return 8000 }

// Decode appends the samples of a payload.
func (l g711Coder) Decode(dst []int16, payload []byte) []int16 {
	table := &LinearOfULaw
	if l.law == PCMA {
		table = &LinearOfALaw
	}
	for _, w := range payload {
		dst = append(dst, table[w])
	}
	return dst
}

// Encode appends the code words of samples.
func (l g711Coder) Encode(dst []byte, pcm []int16) []byte {
	table := &ULawOf
	if l.law == PCMA {
		table = &ALawOf
	}
	for _, v := range pcm {
		dst = append(dst, table[uint16(v)])
	}
	return dst
}
