package media

// A Codec is an audio encoding the relay knows.
type Codec uint8

// The two laws of G.711, G.722 at 64 kbit/s (RFC 3551 §4.5.2) and Opus (RFC 6716).
const (
	PCMU Codec = iota
	PCMA
	G722
	Opus
	codecs
)

var codecNames = [codecs]string{"PCMU", "PCMA", "G722", "OPUS"}

// String is the name in upper case, as comparisons of rtpmap attributes use it.
func (c Codec) String() string { return codecNames[c&3] }

// clock is the codec's RTP clock in Hz. That of G.722 is 8000 although it
// carries 16 kHz, for historical reasons (RFC 3551 §4.5.2).
func (c Codec) clock() int {
	if c == Opus {
		return 48000
	}
	return 8000
}

// g711 reports whether the codec is one of the two laws.
func (c Codec) g711() bool { return c <= PCMA }

// encodes reports whether we can speak the codec here; hear we can all of them.
func (c Codec) encodes() bool { return c != Opus || libopus() != nil }
