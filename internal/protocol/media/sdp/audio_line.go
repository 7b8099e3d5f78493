package sdp

import "net/netip"

// finish selects the first audio line over a supported transport, without a fault and with a known codec, and returns its Description.
// Without such a line the error is that of the first one.
func (p *parser) finish() (Description, error) {
	if !p.version || !p.origin {
		return Description{}, malformed("no v= or o= line")
	}
	d := Description{Version: p.originVersion, audioLine: -1}
	var refused error
	for i := range p.media {
		s := &p.media[i]
		s.inherit(&p.top.protection)
		d.lines = append(d.lines, s.mediaLine)
		if d.audioLine >= 0 || !s.isSupported() {
			continue
		}
		err := s.usable()
		switch {
		case err == nil:
			d.audioLine = i
		case refused == nil:
			refused = err
		}
	}
	switch {
	case d.audioLine >= 0:
		return d, d.fill(&p.top, &p.media[d.audioLine])
	case refused == nil:
		refused = notAcceptable("no audio over RTP that we can carry")
	}
	return Description{}, refused
}

// usable returns the reason why a section cannot be the audio of the call: a fault, or no known codec.
func (s *section) usable() error {
	if s.fault != nil {
		return s.fault
	}
	if _, ok := (Description{Formats: s.formatList()}).Codec(); !ok {
		return notAcceptable("no codec we know among the formats")
	}
	return nil
}

// isSupported reports whether the section is audio over a supported transport.
func (s *section) isSupported() bool {
	_, ok := s.security(s.proto)
	return s.kind == "audio" && s.port != 0 && ok
}

func (d *Description) fill(top, s *section) error {
	conn, err := s.conn, s.connError
	if !s.hasConn {
		if conn, err = top.conn, top.connError; !top.hasConn {
			return malformed("no c= line for the audio") // RFC 8866 §5.7
		}
	}
	if err != nil {
		return err
	}
	d.Addr = netip.AddrPortFrom(conn, s.port)
	d.RTCP = s.rtcpAddr(conn)
	d.Ptime = s.ptime
	d.protection = s.protection
	d.security, _ = s.security(s.proto)
	d.Formats = s.formatList()
	d.Direction = top.direction
	if s.hasDir {
		d.Direction = s.direction
	}
	// RFC 3264 §8.4: the old form of hold; browsers also send it, with ICE candidates instead of an address
	if conn.IsUnspecified() && s.ufrag == "" {
		d.Direction = directionOf(d.Direction.Sends(), false)
	}
	return nil
}

// rtcpAddr returns the address for the section's RTCP: a=rtcp, else the port above (RFC 3550 §11).
func (s *section) rtcpAddr(conn netip.Addr) netip.AddrPort {
	if s.rtcp.Port() == 0 {
		return netip.AddrPortFrom(conn, s.port+1)
	}
	if s.rtcp.Addr().IsValid() {
		return s.rtcp
	}
	return netip.AddrPortFrom(conn, s.rtcp.Port())
}

// formatList combines payload types, rtpmap, fmtp and the static table of RFC 3551 §6.
func (s *section) formatList() []Format {
	list := make([]Format, 0, len(s.pts))
	for _, pt := range s.pts {
		f, ok := s.maps[pt]
		if !ok {
			if f, ok = staticFormat(pt); !ok {
				continue
			}
		}
		f.Param = s.params[pt]
		list = append(list, f)
	}
	return list
}

func staticFormat(pt uint8) (Format, bool) {
	switch pt {
	case 0:
		return Format{PT: 0, Name: "PCMU", Rate: 8000}, true
	case 8:
		return Format{PT: 8, Name: "PCMA", Rate: 8000}, true
	case 9:
		return Format{PT: 9, Name: "G722", Rate: 8000}, true
	case 13:
		return Format{PT: 13, Name: "CN", Rate: 8000}, true
	case 18:
		return Format{PT: 18, Name: "G729", Rate: 8000}, true
	}
	return Format{}, false
}
