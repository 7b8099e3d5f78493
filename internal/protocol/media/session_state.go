package media

import "net/netip"

// A SessionState is what of a Session must outlive the process, so that another
// one can go on with the dialog. It can be written as JSON and holds no keys.
type SessionState struct {
	ID, Version uint64 // of o=
	Security    Security
	Required    Security // of the profile
	Lines       []SessionLine
	Audio       int
	Remote      SessionRemote
	Ours        Media
	Answered    bool // by us
}

// A SessionLine is one m= line of the session.
type SessionLine struct {
	Kind, Proto, Formats, Mid string
	Port                      uint16
}

// SessionRemote is what the other side said last.
type SessionRemote struct {
	Addr, RTCP netip.AddrPort
	Direction  Direction
	Formats    []Format
	Ptime      int
	Version    uint64
}

// Snapshot returns the state after the last completed exchange; false before the
// first. An offer under way is not part of it.
func (s *Session) Snapshot() (SessionState, bool) {
	if s.remote == nil {
		return SessionState{}, false
	}
	r := s.remote
	st := SessionState{ID: s.id, Version: s.version, Security: s.terms.agreed.security, Required: s.terms.profile.Security,
		Audio: s.audio, Ours: s.ours, Answered: s.answered,
		Remote: SessionRemote{r.Addr, r.RTCP, r.Direction, r.Formats, r.Ptime, r.Version}}
	for _, l := range s.lines {
		st.Lines = append(st.Lines, SessionLine{l.kind, l.proto, l.formats, l.mid, l.port})
	}
	return st, true
}

// RestoreSession goes on with a session of an earlier process on this stream.
// Its media is at another port now and its keys are new, so make an offer in a
// re-INVITE; its o= version is above any that was sent. Until that is answered,
// Apply points a leg without encryption at where it was; one with encryption
// stays silent. The error is an *SDPError with 400 when the state is none.
func (s *Stream) RestoreSession(st SessionState) (*Session, error) {
	if st.ID == 0 || st.Audio < 0 || st.Audio >= len(st.Lines) || len(st.Ours.Formats) == 0 {
		return nil, malformed("not the state of a session")
	}
	n := s.NewSession(Profile{Security: st.Required})
	n.id, n.version, n.core = st.ID, st.Version+restoredVersions, restoredCore
	n.audio, n.ours, n.answered = st.Audio, st.Ours, st.Answered
	for _, l := range st.Lines {
		n.lines = append(n.lines, mediaLine{kind: l.Kind, proto: l.Proto, formats: l.Formats, mid: l.Mid, port: l.Port})
	}
	r := st.Remote
	n.remote = &Description{Addr: r.Addr, RTCP: r.RTCP, Direction: r.Direction, Formats: r.Formats, Ptime: r.Ptime, Version: r.Version,
		lines: n.lines, audio: n.audio}
	n.terms.agreed = agreement{security: st.Security, again: true}
	return n, nil
}

// An offer that was not answered before the process ended is not in its
// snapshot but may have been seen: versions go on above it (RFC 3264 §8).
const restoredVersions = 16

// restoredCore differs from every body, so that the version rises with the first.
const restoredCore = " "
