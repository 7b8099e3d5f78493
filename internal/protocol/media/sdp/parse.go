package sdp

import (
	"net/netip"
	"strconv"
	"strings"

	"soniq/internal/protocol/media/codec"
)

// Limits on received bodies. A body beyond them is malformed.
const (
	maxBody       = 16 << 10
	maxMediaLines = 16
	maxFormats    = 48
)

// ParseOffer parses an offer. The error is an *Error: 400 if the body is malformed, 488 if it has no audio over a
// supported transport in a supported codec.
func ParseOffer(body []byte) (Description, error) { return parseSDP(body) }

// ParseAnswer parses an answer. It returns the errors of ParseOffer.
func ParseAnswer(body []byte) (Description, error) { return parseSDP(body) }

func parseSDP(body []byte) (Description, error) {
	if len(body) > maxBody {
		return Description{}, malformed("longer than %d bytes", maxBody)
	}
	var p parser
	for n, line := range strings.Split(string(body), "\n") {
		if line = strings.TrimRight(line, "\r"); line == "" {
			continue
		}
		if !p.version && line != "v=0" {
			return Description{}, malformed("does not begin with v=0")
		}
		if err := p.line(n+1, line); err != nil && !p.isFaultOfSection(line, err) {
			return Description{}, err
		}
	}
	return p.finish()
}

// isFaultOfSection reports whether a line below an m= line has an error, and records that. It matters only if the section is
// the audio of the call, because all others are refused.
func (p *parser) isFaultOfSection(line string, err error) bool {
	if len(p.media) == 0 || strings.HasPrefix(line, "m=") {
		return false
	}
	if s := &p.media[len(p.media)-1]; s.fault == nil {
		s.fault = err
	}
	return true
}

// parser collects the session level and all media sections.
type parser struct {
	version, origin bool
	originVersion   uint64
	top             section
	media           []section
}

// section is the session level, or one m= line with its attributes.
type section struct {
	mediaLine
	pts       []uint8
	fault     error // the first error of its lines
	conn      netip.Addr
	hasConn   bool
	connError error
	direction Direction
	hasDir    bool
	rtcp      netip.AddrPort
	maps      map[uint8]Format
	params    map[uint8]string
	ptime     int
	protection
}

func (p *parser) line(n int, line string) error {
	if len(line) < 2 || line[1] != '=' {
		return malformed("line %d is not x=value", n)
	}
	kind, value, s := line[0], line[2:], &p.top
	if n := len(p.media); n > 0 {
		s = &p.media[n-1]
	}
	switch kind {
	case 'v':
		if p.version {
			return malformed("second v=")
		}
		p.version = true
	case 'o':
		return p.originLine(value)
	case 'c':
		s.conn, s.connError = connection(value)
		s.hasConn = true
	case 'm':
		return p.mediaLine(value)
	case 'a':
		s.attribute(value)
	}
	return nil
}

// originLine parses o=<user> <id> <version> IN IP4|IP6 <host> (RFC 8866 §5.2).
func (p *parser) originLine(v string) error {
	f := strings.Fields(v)
	if len(f) != 6 || p.origin {
		return malformed("bad o= line")
	}
	p.origin = true
	// Some phones send versions beyond 64 bits. The version is not used to compare bodies.
	p.originVersion, _ = strconv.ParseUint(f[2], 10, 64)
	return nil
}

// connection parses c=IN IP4|IP6 <address>[/ttl]. A host name yields the zero address, because names of untrusted
// peers are not resolved; the latch learns the source.
func connection(v string) (netip.Addr, error) {
	f := strings.Fields(v)
	if len(f) != 3 || f[0] != "IN" || f[1] != "IP4" && f[1] != "IP6" {
		return netip.Addr{}, malformed("bad c= line")
	}
	host, _, _ := strings.Cut(f[2], "/")
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, nil
	}
	if a = a.Unmap().WithZone(""); a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return netip.Addr{}, notAcceptable("multicast address")
	}
	return a, nil
}

// mediaLine begins a section. The error is one of the whole body: the answer needs the kind and the protocol of each line.
func (p *parser) mediaLine(v string) error {
	f := strings.Fields(v)
	if len(f) == 0 || !printable(f[:1]) || len(f) > 2 && !printable(f[2:3]) {
		return malformed("bad m= line")
	}
	if len(p.media) == maxMediaLines {
		return malformed("too many media lines")
	}
	s := section{mediaLine: mediaLine{kind: f[0], proto: "RTP/AVP", formats: "0"}}
	s.fault = s.mediaFields(f)
	p.media = append(p.media, s)
	return nil
}

// mediaFields parses m=<kind> <port>[/n] <proto> <fmt> ... (RFC 8866 §5.14).
func (s *section) mediaFields(f []string) error {
	if len(f) > 2 {
		s.proto = f[2]
	}
	if len(f) < 4 {
		return malformed("bad m= line")
	}
	number, _, _ := strings.Cut(f[1], "/")
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		s.port = 1 // its sender did not refuse it
		return malformed("bad media port")
	}
	s.port = uint16(port)
	if len(f)-3 > maxFormats || !printable(f[3:]) {
		return malformed("too many formats, or a bad one")
	}
	s.formats = strings.Join(f[3:], " ")
	if !token(f[0]) || !token(f[2]) {
		return malformed("bad m= line")
	}
	for _, t := range f[3:] {
		if !token(t) {
			return malformed("bad media format")
		}
		if pt, err := strconv.ParseUint(t, 10, 7); err == nil {
			s.pts = append(s.pts, uint8(pt))
		}
	}
	return nil
}

// printable reports whether words can be repeated in a line that refuses a section, although they may be no tokens.
func printable(words []string) bool {
	for _, w := range words {
		for i := range len(w) {
			if w[i] <= ' ' || w[i] >= 0x7F {
				return false
			}
		}
	}
	return true
}

// token reports whether s can be repeated safely in a line that we send (RFC 8866 §9 token, and "/").
func token(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7F || strings.IndexByte(`"(),:;<=>?@[\]`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

func (s *section) attribute(v string) {
	name, value, _ := strings.Cut(strings.TrimSpace(v), ":")
	if d, ok := parseDirection(name); ok {
		s.direction, s.hasDir = d, true
		return
	}
	switch name {
	case "rtpmap":
		s.rtpmap(value)
	case "fmtp":
		s.fmtp(value)
	case "ptime":
		// RFC 8866 §6.4; some phones send 20.0.
		whole, _, _ := strings.Cut(strings.TrimSpace(value), ".")
		if n, err := strconv.Atoi(whole); err == nil && n >= 1 && n <= 200 {
			s.ptime = n
		}
	case "rtcp":
		s.rtcpLine(value)
	case "mid":
		if value = strings.TrimSpace(value); token(value) && len(value) <= 64 {
			s.mid = value
		}
	default:
		s.protection.attribute(name, value)
	}
}

// rtpmap parses a=rtpmap:<pt> <name>/<rate>[/<channels>]. One that cannot be read leaves its payload type without a name, so that only
// this format is lost. Of two for one payload type, the first that is supported counts.
func (s *section) rtpmap(v string) {
	number, rest, _ := strings.Cut(strings.TrimSpace(v), " ")
	pt, err := strconv.ParseUint(number, 10, 7)
	part := strings.Split(strings.TrimSpace(rest), "/")
	if err != nil || len(part) < 2 || len(s.maps) >= maxFormats {
		return
	}
	if first, ok := s.maps[uint8(pt)]; ok && first.supported() {
		return
	}
	rate, err := strconv.Atoi(part[1])
	name := normalizeEncodingName(part[0])
	if err != nil || rate < 1 || len(part) == 3 && part[2] != "1" && name != codec.Names[codec.Opus] {
		rate = 0 // several channels are not supported
	}
	if name == codec.Names[codec.G722] && rate == 16000 {
		rate = codec.G722.Clock() // some phones state the sampling rate; the clock is 8000 (RFC 3551 §4.5.2)
	}
	if s.maps == nil {
		s.maps = map[uint8]Format{}
	}
	s.maps[uint8(pt)] = Format{PT: uint8(pt), Name: name, Rate: rate}
}

func (s *section) fmtp(v string) {
	number, rest, _ := strings.Cut(strings.TrimSpace(v), " ")
	pt, err := strconv.ParseUint(number, 10, 7)
	if err != nil || len(s.params) >= maxFormats {
		return
	}
	if s.params == nil {
		s.params = map[uint8]string{}
	}
	s.params[uint8(pt)] = strings.TrimSpace(rest)
}

// rtcpLine parses a=rtcp:<port> [IN IP4|IP6 <address>] (RFC 3605 §2.1).
func (s *section) rtcpLine(v string) {
	number, rest, _ := strings.Cut(strings.TrimSpace(v), " ")
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return
	}
	addr, err := connection(rest)
	if err != nil {
		addr = netip.Addr{}
	}
	s.rtcp = netip.AddrPortFrom(addr, uint16(port))
}
