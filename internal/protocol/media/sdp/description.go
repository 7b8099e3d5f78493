package sdp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"soniq/internal/protocol/media/codec"
)

// An Error is returned for a refused SDP body. It has the reason and the SIP status to answer with.
type Error struct {
	Status int // 400 malformed, 488 no media that can be carried
	Reason string
}

// Error returns the SIP status and the reason.
func (e *Error) Error() string { return fmt.Sprintf("SDP refused with %d: %s", e.Status, e.Reason) }

func malformed(format string, args ...any) error {
	return &Error{400, fmt.Sprintf(format, args...)}
}

func notAcceptable(format string, args ...any) error {
	return &Error{488, fmt.Sprintf(format, args...)}
}

// TelephoneEvent is the encoding name of RFC 4733 events.
const TelephoneEvent = "telephone-event"

// A Format is one payload type of an audio media line.
type Format struct {
	PT    uint8
	Name  string // as in rtpmap: upper case, except telephone-event
	Rate  int
	Param string // fmtp
}

// Codec returns the supported codec of the format, or false if it is not supported.
func (f Format) Codec() (codec.Codec, bool) {
	for c := range codec.Count {
		if f.Name == c.String() {
			return c, f.Rate == c.Clock()
		}
	}
	return codec.PCMU, false
}

// IsEvent reports whether the format is RFC 4733 events with the clock of the narrow-band codecs or of Opus.
func (f Format) IsEvent() bool {
	return f.Name == TelephoneEvent && (f.Rate == 8000 || f.Rate == 48000)
}

// supported reports whether the format can be used: a supported codec or events.
func (f Format) supported() bool {
	_, audio := f.Codec()
	return audio || f.IsEvent()
}

func (f Format) isOpus() bool {
	c, ok := f.Codec()
	return ok && c == codec.Opus
}

// rtpmapEncoding returns the encoding part of an rtpmap attribute (RFC 7587 §7 for Opus).
func (f Format) rtpmapEncoding() string {
	if f.isOpus() {
		return "opus/48000/2"
	}
	return fmt.Sprintf("%s/%d", f.Name, f.Rate)
}

func (f Format) same(o Format) bool { return f.Name == o.Name && f.Rate == o.Rate }

// A mediaLine is an m= line. It is kept so that answers repeat the lines of the offer.
type mediaLine struct {
	kind, proto, formats string
	mid                  string // RFC 5888 §4; "" if absent
	port                 uint16
}

// A Description holds the audio part of one parsed SDP body.
type Description struct {
	Addr      netip.AddrPort // destination for RTP to the sender of the body: unspecified for c=0.0.0.0, invalid if c= has a host name
	RTCP      netip.AddrPort // a=rtcp, or the port above
	Direction Direction      // c=0.0.0.0 counts as not receiving (RFC 3264 §8.4)
	Formats   []Format       // in order of preference, including unsupported ones
	Ptime     int            // ms, 0 if absent
	Version   uint64         // of o=

	lines     []mediaLine
	audioLine int // index of the audio line in lines

	security   Security // of the audio line
	protection protection
}

// Same reports whether two bodies of one leg ask for the same media, regardless of their o= versions. A re-INVITE
// with such a body is a session refresh.
func (d Description) Same(o Description) bool {
	return d.Addr == o.Addr && d.RTCP == o.RTCP && d.Direction == o.Direction && d.Ptime == o.Ptime &&
		slices.Equal(d.Formats, o.Formats) && slices.Equal(d.lines, o.lines) && d.protection.same(&o.protection)
}

// Held reports whether the sender put the other side on hold (sendonly, inactive or c=0.0.0.0).
func (d Description) Held() bool { return !d.Direction.Receives() }

// Codec returns the first supported codec among the formats, or false if there is none.
func (d Description) Codec() (codec.Codec, bool) {
	for _, f := range d.Formats {
		if c, ok := f.Codec(); ok {
			return c, true
		}
	}
	return codec.PCMU, false
}

func (d Description) find(f Format) (Format, bool) {
	return findFormat(d.Formats, f)
}

func findFormat(list []Format, f Format) (Format, bool) {
	i := slices.IndexFunc(list, f.same)
	if i < 0 {
		return Format{}, false
	}
	return list[i], true
}

// normalizeEncodingName returns the spelling that comparisons use, because encoding names are case-insensitive (RFC
// 8866 §6.6).
func normalizeEncodingName(s string) string {
	if strings.EqualFold(s, TelephoneEvent) {
		return TelephoneEvent
	}
	return strings.ToUpper(s)
}
