package sdp

import (
	"slices"
	"strings"

	"soniq/internal/protocol/media/codec"
)

// LocalMedia is the audio part of an offer or answer that we send.
type LocalMedia struct {
	Formats   []Format
	Direction Direction
	Ptime     int // ms; 0 omits the attribute
}

// SupportedFormats lists all supported formats, best first, with our preferred payload types.
var SupportedFormats = []Format{
	{PT: 111, Name: "OPUS", Rate: 48000},
	{PT: 9, Name: "G722", Rate: 8000},
	{PT: 0, Name: "PCMU", Rate: 8000},
	{PT: 8, Name: "PCMA", Rate: 8000},
	{PT: 101, Name: TelephoneEvent, Rate: 8000, Param: "0-16"},
	{PT: 110, Name: TelephoneEvent, Rate: 48000, Param: "0-16"},
}

// StaticG711 lists the static payload types that need no negotiation.
var StaticG711 = []Format{{PT: 0, Name: "PCMU", Rate: 8000}, {PT: 8, Name: "PCMA", Rate: 8000}}

// LocalOffer returns our own formats, wide band first: the codecs that can be encoded here, and DTMF events. It is
// for outgoing calls and for INVITEs without an offer.
func LocalOffer() LocalMedia {
	return LocalMedia{Formats: offerableFormats(), Ptime: 20}
}

func offerableFormats() []Format {
	list := make([]Format, 0, len(SupportedFormats))
	for _, f := range SupportedFormats {
		c, audio := f.Codec()
		if audio && c.CanEncode() || f.IsEvent() && (f.Rate == 8000 || codec.Opus.CanEncode()) {
			list = append(list, f)
		}
	}
	return list
}

// RelayedOffer returns the offer for one leg, given the offer of the other leg, or its answer if the first INVITE had
// no offer. The other leg's formats come first, in its order and with its payload types, so that no transcoding is
// needed. Then follow our formats that can be transcoded. The direction is the other leg's. If Opus cannot be encoded
// here, it comes last.
func RelayedOffer(other Description) LocalMedia {
	m := LocalMedia{Direction: other.Direction, Ptime: other.Ptime}
	var last []Format
	for _, f := range other.Formats {
		c, audio := f.Codec()
		if !f.IsEvent() && !audio || slices.ContainsFunc(m.Formats, f.same) {
			continue
		}
		f.Param = safeParam(f)
		if audio && !c.CanEncode() {
			last = append(last, f)
			continue
		}
		m.Formats = append(m.Formats, f)
	}
	for _, f := range offerableFormats() {
		if !slices.ContainsFunc(m.Formats, f.same) {
			m.Formats = addFormat(m.Formats, f)
		}
	}
	for _, f := range last {
		m.Formats = addFormat(m.Formats, f)
	}
	if !slices.ContainsFunc(m.Formats, Format.isOpus) {
		m.Formats = slices.DeleteFunc(m.Formats, func(f Format) bool { return f.IsEvent() && f.Rate != 8000 })
	}
	slices.SortStableFunc(m.Formats, eventsLast)
	return m
}

// addFormat appends f. If its payload type is taken, f gets a free dynamic one.
func addFormat(list []Format, f Format) []Format {
	taken := func(pt uint8) bool {
		return slices.ContainsFunc(list, func(o Format) bool { return o.PT == pt })
	}
	if taken(f.PT) {
		for f.PT = 96; f.PT < 127 && taken(f.PT); f.PT++ {
		}
	}
	return append(list, f)
}

// eventsLast orders audio before events, because some phones take the first format as it is.
func eventsLast(a, b Format) int {
	switch {
	case a.IsEvent() == b.IsEvent():
		return 0
	case a.IsEvent():
		return 1
	}
	return -1
}

// RelayedAnswer returns the answer to an offer, given the other leg's answer. It has the codecs that the other leg accepted, in its
// order, with the payload types of the offer. So packets can be relayed unchanged. If there are none, it has the first codec of the offer
// that can be transcoded. Events are included even if the other leg accepted none. If no codec can be transcoded either, the error is an
// *Error with 488.
func RelayedAnswer(offer, other Description) (LocalMedia, error) {
	m := LocalMedia{Direction: other.Direction, Ptime: other.Ptime}
	for _, f := range other.Formats {
		o, ok := offer.find(f)
		if _, audio := o.Codec(); ok && audio {
			o.Param = safeParam(f)
			m.Formats = append(m.Formats, o)
		}
	}
	if len(m.Formats) == 0 {
		f, err := firstEncodable(offer)
		if err != nil {
			return LocalMedia{}, err
		}
		m.Formats = []Format{f}
	}
	param := digitEvents // the other leg receives them as tones
	if i := slices.IndexFunc(other.Formats, Format.IsEvent); i >= 0 {
		param = safeParam(other.Formats[i])
	}
	m.Formats = append(m.Formats, eventFormat(offer, m.Formats[0], param)...)
	return m, nil
}

// digitEvents names the events that are digits (RFC 4733 §3.2).
const digitEvents = "0-15"

// LocalAnswer returns the answer to an offer that we serve ourselves (prompts, simulated phones). It has the first
// codec that can be encoded here and its events, in the reversed direction.
func LocalAnswer(offer Description) (LocalMedia, error) {
	m := LocalMedia{Direction: offer.Direction.Reverse(), Ptime: 20}
	f, err := firstEncodable(offer)
	if err != nil {
		return LocalMedia{}, err
	}
	m.Formats = append([]Format{f}, eventFormat(offer, f, "")...)
	return m, nil
}

// firstEncodable returns the first codec of an offer that can be both encoded and decoded here.
func firstEncodable(offer Description) (Format, error) {
	for _, f := range offer.Formats {
		if c, audio := f.Codec(); audio && c.CanEncode() {
			f.Param = safeParam(f)
			return f, nil
		}
	}
	return Format{}, notAcceptable("no codec among the formats that can be spoken here")
}

// eventFormat returns the events of an offer for use with a codec: those with its clock (RFC 4733 §2.1), else any.
// param is the event list to state; "" keeps the offer's own.
func eventFormat(offer Description, codec Format, param string) []Format {
	i := slices.IndexFunc(offer.Formats, func(f Format) bool { return f.IsEvent() && f.Rate == codec.Rate })
	if i < 0 {
		i = slices.IndexFunc(offer.Formats, Format.IsEvent)
	}
	if i < 0 {
		return nil
	}
	f := offer.Formats[i]
	if f.Param = safeParam(f); param != "" {
		f.Param = param
	}
	return []Format{f}
}

// safeParam returns the fmtp parameters that may be passed to the other leg: the event list of RFC 4733 §2.4.1 and
// the parameters of Opus (RFC 7587 §6.1).
func safeParam(f Format) string {
	c, _ := f.Codec()
	switch {
	case f.IsEvent() && onlyChars(f.Param, 32, "0123456789-,"):
		return f.Param
	case f.IsEvent():
		return digitEvents
	case c == codec.Opus && onlyChars(f.Param, 200, "abcdefghijklmnopqrstuvwxyz-=; 0123456789"):
		return f.Param
	}
	return ""
}

func onlyChars(s string, longest int, letters string) bool {
	return len(s) <= longest && !strings.ContainsFunc(s, func(c rune) bool { return !strings.ContainsRune(letters, c) })
}
