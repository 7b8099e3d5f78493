package sdp

import (
	"net/netip"
)

// A SessionState holds the part of a Session that must survive a restart, so that another process can continue the
// dialog. It can be encoded as JSON and holds no keys.
type SessionState struct {
	ID, Version uint64 // of o=
	Security    Security
	Required    Security // of the profile
	Lines       []SessionLine
	Audio       int
	Remote      SessionRemote
	Ours        LocalMedia
	Answered    bool // we sent the answer
}

// A SessionLine is one m= line of the session.
type SessionLine struct {
	Kind, Proto, Formats, Mid string
	Port                      uint16
}

// SessionRemote is the other side's last description.
type SessionRemote struct {
	Addr, RTCP netip.AddrPort
	Direction  Direction
	Formats    []Format
	Ptime      int
	Version    uint64
}

// Snapshot returns the state after the last completed exchange, or false before the first. A pending offer is not
// part of it.
func (s *Session) Snapshot() (SessionState, bool) {
	if s.remote == nil {
		return SessionState{}, false
	}
	r := s.remote
	st := SessionState{ID: s.id, Version: s.version, Security: s.security.agreed.Security, Required: s.security.profile.Security,
		Audio: s.audio, Ours: s.ours, Answered: s.answeredByUs,
		Remote: SessionRemote{r.Addr, r.RTCP, r.Direction, r.Formats, r.Ptime, r.Version}}
	for _, l := range s.lines {
		st.Lines = append(st.Lines, SessionLine{l.kind, l.proto, l.formats, l.mid, l.port})
	}
	return st, true
}

// RestoreSession continues a session of an earlier process at another endpoint, with new keys. The first offer of the
// session has an o= version above all versions sent before. The error is an *Error with 400 if the state is
// invalid.
func RestoreSession(at Endpoint, st SessionState) (*Session, error) {
	if st.ID == 0 || st.Audio < 0 || st.Audio >= len(st.Lines) || len(st.Ours.Formats) == 0 {
		return nil, malformed("not the state of a session")
	}
	n := NewSecureSession(at, Profile{Security: st.Required})
	n.id, n.version, n.lastContent = st.ID, st.Version+restoredVersions, restoredCore
	n.audio, n.ours, n.answeredByUs = st.Audio, st.Ours, st.Answered
	for _, l := range st.Lines {
		n.lines = append(n.lines, mediaLine{kind: l.Kind, proto: l.Proto, formats: l.Formats, mid: l.Mid, port: l.Port})
	}
	r := st.Remote
	n.remote = &Description{Addr: r.Addr, RTCP: r.RTCP, Direction: r.Direction, Formats: r.Formats, Ptime: r.Ptime, Version: r.Version,
		lines: n.lines, audioLine: n.audio}
	n.security.agreed = Agreement{Security: st.Security, Restored: true}
	return n, nil
}

// restoredVersions is added to the version of a restored session. An offer that was pending when the process ended is
// not in its snapshot but may have been received. Versions must rise above it (RFC 3264 §8).
const restoredVersions = 16

// restoredCore differs from every body, so that the first body raises the version.
const restoredCore = " "
