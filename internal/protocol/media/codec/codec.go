// Package codec encodes and decodes the audio of RTP: G.711, G.722 and Opus. PCM is 16-bit linear.
package codec

// A Codec identifies an audio encoding that the media engine supports.
type Codec uint8

// The two laws of G.711, G.722 at 64 kbit/s (RFC 3551 §4.5.2) and Opus (RFC 6716).
const (
	PCMU Codec = iota
	PCMA
	G722
	Opus
	Count
)

// Names lists the encoding names in upper case.
var Names = [Count]string{"PCMU", "PCMA", "G722", "OPUS"}

// String returns the name in upper case, as comparisons of rtpmap attributes use it.
func (c Codec) String() string { return Names[c&3] }

// Clock returns the codec's RTP clock in Hz. G.722 has a clock of 8000 Hz although it carries 16 kHz, for historical
// reasons (RFC 3551 §4.5.2).
func (c Codec) Clock() int {
	if c == Opus {
		return 48000
	}
	return 8000
}

// IsG711 reports whether the codec is one of the two laws of G.711.
func (c Codec) IsG711() bool { return c <= PCMA }

// CanEncode reports whether this machine can encode the codec. All codecs can be decoded; encoding Opus needs
// libopus.
func (c Codec) CanEncode() bool { return c != Opus || libopus() != nil }
