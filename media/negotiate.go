package media

import "strings"

// Media is what we put into an offer or an answer of ours.
type Media struct {
	Formats   []Format
	Direction Direction
	Ptime     int // ms, 0 leaves it out
}

// OwnOffer is our own list (PCMU, PCMA, telephone-event), for calls we start
// and for INVITEs that come without an offer.
func OwnOffer() Media {
	return Media{Formats: []Format{
		{PT: 0, Name: "PCMU", Rate: 8000},
		{PT: 8, Name: "PCMA", Rate: 8000},
		{PT: 101, Name: telephoneEvent, Rate: 8000, Param: "0-16"},
	}, Ptime: 20}
}

// RelayOffer is what to offer one leg given what the other leg offered (or
// answered, when the first INVITE had no offer): its formats in its order and
// with its payload types, restricted to what the relay passes, and its direction.
func RelayOffer(other Description) Media {
	m := Media{Direction: other.Direction, Ptime: other.Ptime}
	for _, f := range other.Formats {
		if f.relayed() {
			f.Param = safeParam(f)
			m.Formats = append(m.Formats, f)
		}
	}
	return m
}

// RelayAnswer is what to answer the offerer given the other leg's answer: the
// codecs the other leg took, in its order, with the payload types of the offer.
// 488 when nothing but events is left.
func RelayAnswer(offer, answer Description) (Media, error) {
	m := Media{Direction: answer.Direction, Ptime: answer.Ptime}
	audio := false
	for _, f := range answer.Formats {
		o, ok := offer.find(f)
		if !ok || !o.relayed() {
			continue
		}
		audio = audio || !o.isEvent()
		o.Param = safeParam(f)
		m.Formats = append(m.Formats, o)
	}
	if !audio {
		return Media{}, notAcceptable("the two legs have no codec in common")
	}
	return m, nil
}

// LocalAnswer is the answer to an offer we serve ourselves (prompts, robot
// phones): its first G.711 format and telephone-event, in the reversed direction.
func LocalAnswer(offer Description) (Media, error) {
	m := Media{Direction: offer.Direction.Reverse(), Ptime: 20}
	audio, event := false, false
	for _, f := range offer.Formats {
		_, g711 := f.Codec()
		if g711 && !audio || f.isEvent() && !event {
			f.Param = safeParam(f)
			m.Formats = append(m.Formats, f)
		}
		audio, event = audio || g711, event || f.isEvent()
	}
	if !audio {
		return Media{}, notAcceptable("no G.711 among the formats")
	}
	return m, nil
}

// safeParam is the fmtp worth repeating to the other leg: the event list of
// RFC 4733 §2.4.1 and nothing else.
func safeParam(f Format) string {
	if !f.isEvent() {
		return ""
	}
	for _, c := range f.Param {
		if !strings.ContainsRune("0123456789-,", c) {
			return "0-15"
		}
	}
	if len(f.Param) > 32 {
		return "0-15"
	}
	return f.Param
}
