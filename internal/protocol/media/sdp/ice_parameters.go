package sdp

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// ICEParameters holds the ICE parameters that both sides exchanged in SDP (RFC 8839).
type ICEParameters struct {
	Ufrag, Password string // local
	Controlling     bool
	TieBreaker      uint64

	RemoteUfrag, RemotePassword string
	Candidates                  []Candidate
	RemoteLite                  bool // the other side is an ICE-lite agent
}

// NewICEParameters returns random credentials.
func NewICEParameters() ICEParameters {
	var b [6 + 18 + 8]byte // 48 and 144 bits: RFC 8445 §5.3 requires 24 and 128
	_, _ = rand.Read(b[:]) // never fails
	e := base64.RawStdEncoding
	return ICEParameters{Ufrag: e.EncodeToString(b[:6]), Password: e.EncodeToString(b[6:24]), TieBreaker: binary.BigEndian.Uint64(b[24:])}
}

// withRemote returns a copy of our parameters completed by those of the other side.
func (t *ICEParameters) withRemote(p *protection) *ICEParameters {
	full := *t
	full.RemoteUfrag, full.RemotePassword, full.Candidates, full.RemoteLite = p.ufrag, p.pwd, p.candidates, p.lite
	return &full
}

// isRestart reports whether a body requests an ICE restart (RFC 8839 §4.4.1.1.1).
func (t *ICEParameters) isRestart(p *protection) bool {
	return p.ufrag != t.RemoteUfrag || p.pwd != t.RemotePassword
}

// hostPriority is the priority of our first candidate (RFC 8445 §5.1.2.1: host, component 1).
const hostPriority = 126<<24 | 65535<<8 | 255

// writeSDP appends our attributes to a body. It has all candidates; trickle ICE is not used. A browser on our own
// network may be unable to reach the address advertised to the Internet. Therefore the machine's own address is a
// second candidate.
func (t *ICEParameters) writeSDP(b *strings.Builder, local netip.AddrPort, own netip.Addr) {
	fmt.Fprintf(b, "a=ice-ufrag:%s\r\na=ice-pwd:%s\r\n", t.Ufrag, t.Password)
	writeCandidate(b, 1, hostPriority, local)
	if own.IsValid() && own != local.Addr() && own.Is4() == local.Addr().Is4() {
		writeCandidate(b, 2, hostPriority-1<<8, netip.AddrPortFrom(own, local.Port()))
	}
	b.WriteString("a=end-of-candidates\r\n")
}

func writeCandidate(b *strings.Builder, foundation, priority int, at netip.AddrPort) {
	fmt.Fprintf(b, "a=candidate:%d 1 udp %d %s %d typ host\r\n", foundation, priority, at.Addr(), at.Port())
}
