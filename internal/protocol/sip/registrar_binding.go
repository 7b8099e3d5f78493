package sip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Registrar: REGISTER and the bindings of an account (RFC 3261 §10.3).

// Expires bounds (RFC 3261 §10.3 step 6).
const (
	minExpires     = 60
	maxExpires     = 3600
	defaultExpires = 3600
)

// accountLocks serialises the updates of one account's bindings.
type accountLocks [64]sync.Mutex

func (l *accountLocks) forAccount(k keyHasher, account string) *sync.Mutex {
	return &l[hashParts(k.a, []string{account})%uint64(len(l))]
}

// registerRequest holds the parts of a REGISTER that leave its shard.
type registerRequest struct {
	user           string // user part of the address of record
	from           string
	callID         string
	cseq           uint32
	contacts       []string
	expires        string
	path           []string
	userAgent      string
	authorizations []string
	uri            sipmsg.URI     // request URI
	source         netip.AddrPort // where it arrived from: the phone or its proxy
	client         netip.AddrPort // the phone: behind an edge as the edge saw it
	viaProxy       bool
	conn           *transport.Conn
	node           string // Config.Node
	outbound       bool   // the phone supports outbound flows (RFC 5626)
	unavailable    bool   // a browser that unregisters cannot take calls for now, such as without a microphone
}

// handleRegister hands a REGISTER to a goroutine that may query the database.
func (s *shard) handleRegister(m *received) {
	tx := s.newServerTx(m, s.txKey(m, "REGISTER"))
	tx.setResponseDeadline(s)
	head := m.AppendHead(nil, s.srv.statelessTag(m))
	to, _ := sipmsg.ParseURI(m.To.Addr.URI)
	from, _ := sipmsg.ParseURI(m.From.Addr.URI)
	r := &registerRequest{
		user: to.User, from: from.User, callID: m.CallID, cseq: m.CSeq,
		contacts: m.List(sipmsg.FieldContact), expires: m.Get(sipmsg.FieldExpires), path: m.List(sipmsg.FieldPath),
		userAgent: sipmsg.Readable(m.Get(sipmsg.FieldUserAgent)), authorizations: m.Authorizations(), source: m.flow.Addr,
		client: m.flow.Source(), conn: m.flow.Conn, node: s.srv.config.Node,
		outbound: m.HasOptionTag(sipmsg.FieldSupported, "outbound") || m.HasOptionTag(sipmsg.FieldRequire, "outbound"),
	}
	r.unavailable = r.conn.Transport().IsWebSocket() && hasUnavailableReason(m.List(sipmsg.FieldReason))
	r.uri, _ = sipmsg.ParseURI(m.URI)
	r.viaProxy = m.viaProxy()
	respond := func(status int, extra string) {
		s.enqueue(func(*shard) {
			s.buf = append(sipmsg.AppendStatus(s.buf[:0], status, ""), head...)
			s.buf = sipmsg.AppendBody(append(s.buf, extra...), "", nil)
			tx.respond(s, status, s.buf)
		})
	}
	s.srv.spawn(func() { s.srv.answerRegister(r, respond) })
}

// answerRegister answers one REGISTER (RFC 3261 §10.3).
func (s *Server) answerRegister(r *registerRequest, respond func(int, string)) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(p, debug.Stack())
			respond(500, "")
		}
	}()
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	acc, stale, ok, err := s.authenticate(ctx, claim{method: "REGISTER", from: r.from, uri: r.uri, logins: r.authorizations,
		source: r.client, conn: r.conn, viaProxy: r.viaProxy})
	switch {
	case errors.Is(err, errOtherURI):
		respond(400, otherURIWarning)
	case err != nil:
		s.logFailure("look up the account of a REGISTER", err)
		respond(503, s.retryAfter())
	case !ok:
		if len(r.authorizations) == 0 {
			s.countFutileRequest(r.client.Addr(), r.conn.Transport())
		}
		s.stats.challenges.Add(1)
		respond(401, "WWW-Authenticate: "+s.auth.Challenge(acc.hashes().Algorithm(), stale)+"\r\n")
	case acc.Barred || !s.ownsUser(r):
		respond(403, "") // RFC 3261 §10.3 steps 3 and 4: not allowed, or another user's address
	default:
		if r.conn != nil {
			r.conn.Prove()
		}
		status, extra, err := s.updateBindings(ctx, acc.ID, r)
		if err != nil {
			s.logFailure("store bindings", err)
			status, extra = 503, ""
		}
		respond(status, extra)
	}
}

// ownsUser reports whether a device registers its own user name, the only one it may register.
func (s *Server) ownsUser(r *registerRequest) bool {
	l, found := s.ownAuthorization(r.authorizations)
	if !found && r.conn != nil {
		return strings.EqualFold(r.conn.Token.Username, r.user)
	}
	return l.Username == r.user
}

// updateBindings changes the account's bindings and returns the response.
func (s *Server) updateBindings(ctx context.Context, account string, r *registerRequest) (int, string, error) {
	lock := s.accountLocks.forAccount(s.hasher, account)
	lock.Lock()
	defer lock.Unlock()
	all, err := s.config.Bindings.Load(ctx, account)
	if err != nil {
		return 0, "", fmt.Errorf("load bindings of %s: %w", account, err)
	}
	now := s.config.Now()
	live := s.liveBindings(all, now)
	if len(r.contacts) == 0 { // a query
		return 200, bindingFields(live, r, now), nil
	}
	next, status := r.applyContacts(live, now, s.limits.Contacts)
	for i := range next {
		next[i].Account = account
	}
	if status == 423 {
		return 423, "Min-Expires: " + strconv.Itoa(minExpires) + "\r\n", nil
	}
	if status != 200 {
		return status, "", nil
	}
	if err := s.saveBindings(ctx, account, r, next, now); err != nil {
		return 0, "", fmt.Errorf("save bindings of %s: %w", account, err)
	}
	s.natKeepalives.replace(all, s.ownBindings(next))
	s.notePhone(r, account, next)
	s.noteBrowser(r, account)
	return 200, bindingFields(next, r, now), nil
}

// notePhone tells the guard until when a user name is registered from the source of a REGISTER.
func (s *Server) notePhone(r *registerRequest, account string, all []Binding) {
	until := time.Duration(0)
	for _, b := range all {
		if b.Source.Addr() == r.client.Addr() || b.CallID == r.callID {
			until = max(until, b.Expires.Sub(s.startedAt))
		}
	}
	s.guard.SetPhone(r.client, r.user, account, until, s.clock())
}

// RestoreRegistrations tells the guard of the phones that registered in an earlier process, and resumes their NAT
// keep-alives. The user part of the Contact stands for the user name.
func (s *Server) RestoreRegistrations(all []Binding) {
	now := s.clock()
	for _, b := range all {
		if u, err := sipmsg.ParseURI(b.Contact); err == nil && b.Source.IsValid() && !s.isEdge(b.Source.Addr()) {
			s.guard.Trust(b.Source.Addr(), now)
			s.guard.SetPhone(b.Source, u.User, b.Account, b.Expires.Sub(s.startedAt), now)
		}
	}
	s.natKeepalives.replace(nil, s.ownBindings(all))
}

// contactChange is one Contact value of a REGISTER.
type contactChange struct {
	Binding
	removes bool // expires=0
	known   bool // it names an old binding
}

// applyContacts computes the new bindings from the old ones, all or nothing (RFC 3261 §10.3). Contacts of one request
// are compared with the old bindings only, so that their order does not matter.
func (r *registerRequest) applyContacts(old []Binding, now time.Time, most int) ([]Binding, int) {
	if slices.Contains(r.contacts, "*") {
		return r.removeAll(old)
	}
	changes := make([]contactChange, 0, len(r.contacts))
	for _, value := range r.contacts {
		b, seconds, status := r.newBinding(value, now)
		if status != 200 {
			return nil, status
		}
		changes = append(changes, contactChange{b, seconds == 0, slices.ContainsFunc(old, b.names)})
	}
	var next []Binding
	for _, b := range old {
		if !changesBinding(changes, b) {
			next = append(next, b)
			continue
		}
		// Step 7: requests of one Call-ID must arrive in the order of their CSeq.
		if b.CallID == r.callID && r.cseq <= b.CSeq {
			return nil, 500
		}
	}
	next = append(next, addedBindings(changes)...)
	if over := len(next) - most; over > 0 {
		next = next[over:] // remove those refreshed longest ago
	}
	return next, 200
}

// changesBinding reports whether a request removes or replaces an old binding. A Contact that removes, changes only
// the binding that it names. A refresh also leaves other bindings as they are, except an older form of its flow.
func changesBinding(changes []contactChange, old Binding) bool {
	return slices.ContainsFunc(changes, func(c contactChange) bool {
		return c.names(old) || !c.removes && (c.sameFlow(old) || !c.known && c.supersedes(old))
	})
}

// addedBindings returns the new bindings of a request. The last value of a Contact or of a flow counts.
func addedBindings(changes []contactChange) []Binding {
	var added []Binding
	for _, c := range changes {
		added = slices.DeleteFunc(added, func(b Binding) bool { return c.names(b) || !c.removes && c.sameFlow(b) })
		if !c.removes {
			added = append(added, c.Binding)
		}
	}
	return added
}

// removeAll handles Contact "*". It must be the only contact, with Expires 0.
func (r *registerRequest) removeAll(old []Binding) ([]Binding, int) {
	if len(r.contacts) != 1 || r.expires != "0" {
		return nil, 400
	}
	for _, b := range old {
		if b.CallID == r.callID && r.cseq <= b.CSeq {
			return nil, 500
		}
	}
	return nil, 200
}

// newBinding parses one Contact value. It returns the binding, its granted seconds and a status.
func (r *registerRequest) newBinding(value string, now time.Time) (Binding, int, int) {
	a, err := sipmsg.ReadAddress(value)
	u, err2 := sipmsg.ParseURI(a.URI)
	if err != nil || err2 != nil || !u.IsSIP() {
		return Binding{}, 0, 400
	}
	seconds := defaultExpires
	if r.expires != "" {
		seconds = parseExpires(r.expires, defaultExpires, maxExpires)
	}
	if v, ok := sipmsg.ParamOf(a.Params, "expires"); ok {
		seconds = parseExpires(v, defaultExpires, maxExpires)
	}
	if seconds > 0 && seconds < minExpires {
		return Binding{}, 0, 423 // RFC 3261 §10.2.8
	}
	b := Binding{
		Contact: u.String(), Source: r.source, Transport: sipmsg.UDP, Path: r.pathURIs(),
		Node: r.node, CallID: r.callID, CSeq: r.cseq, UserAgent: r.userAgent, Priority: 1000,
		Expires: now.Add(time.Duration(min(seconds, maxExpires)) * time.Second), Registered: now,
	}
	if r.conn != nil {
		b.Transport, b.Flow = r.conn.Transport(), r.conn.ID
	}
	if id, ok := sipmsg.ParamOf(a.Params, "+sip.instance"); ok {
		reg, _ := sipmsg.ParamOf(a.Params, "reg-id")
		b.Instance = id + ";" + reg
	}
	if q, ok := sipmsg.ParamOf(a.Params, "q"); ok {
		f, _ := strconv.ParseFloat(q, 64)
		b.Priority = int(max(0, min(f, 1)) * 1000)
	}
	return b, seconds, 200
}

// parseExpires parses seconds, up to most. An unreadable value counts as the default (RFC 3261 §20.19).
func parseExpires(s string, otherwise, most int) int {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return otherwise
	}
	return int(min(n, uint64(most)))
}

func (r *registerRequest) pathURIs() []string {
	var out []string
	for _, p := range r.path {
		if a, err := sipmsg.ReadAddress(p); err == nil {
			out = append(out, a.URI)
		}
	}
	return out
}

// names reports whether both bindings have the same Contact (RFC 3261 §19.1.4) and are the same phone. Flows of one
// phone differ by their reg-id (RFC 5626 §6). Phones behind several routers may have the same private address: then
// their instances and public addresses differ.
func (b Binding) names(old Binding) bool {
	switch {
	case !sipmsg.SameURI(b.Contact, old.Contact):
		return false
	case b.Instance == "" || old.Instance == "":
		return true
	case b.sameInstance(old):
		return b.Instance == old.Instance || !b.isFlow() || !old.isFlow()
	}
	return b.Source.Addr() == old.Source.Addr()
}

// isFlow reports whether the binding has an instance and a reg-id, the key of RFC 5626 §6.
func (b Binding) isFlow() bool { return b.Instance != "" && !strings.HasSuffix(b.Instance, ";") }

// sameFlow reports whether both bindings are the same flow of one phone.
func (b Binding) sameFlow(old Binding) bool { return b.isFlow() && b.Instance == old.Instance }

// sameInstance reports whether both bindings have the same instance, with any reg-id.
func (b Binding) sameInstance(old Binding) bool {
	return b.Instance != "" && b.instanceID() == old.instanceID()
}

// supersedes reports whether b is a newer form of old: the same phone by its instance (RFC 5626 §6), the same user at the
// same source, or the same address, whose INVITEs reach one phone.
func (b Binding) supersedes(old Binding) bool {
	if b.Instance != "" && b.Instance == old.Instance || b.sameAddress(old) {
		return true
	}
	if b.Instance != "" && old.Instance != "" {
		return false
	}
	bu, _ := sipmsg.ParseURI(b.Contact)
	ou, _ := sipmsg.ParseURI(old.Contact)
	return len(b.Path) == 0 && b.Source == old.Source && b.Transport == old.Transport && bu.User == ou.User
}

// sameAddress reports whether both Contacts name one place: the same user, host, port and transport behind the same public address.
// Other URI parameters, such as rinstance, change with every start or installation of a phone. The instance decides only
// together with a reg-id: flows of one phone are distinct.
func (b Binding) sameAddress(old Binding) bool {
	if b.isFlow() && old.isFlow() && b.sameInstance(old) {
		return false
	}
	u, err := sipmsg.ParseURI(b.Contact)
	v, err2 := sipmsg.ParseURI(old.Contact)
	return err == nil && err2 == nil && u.SamePlace(v) && b.Transport == old.Transport &&
		b.Source.Addr() == old.Source.Addr() && slices.Equal(b.Path, old.Path)
}

// bindingFields returns the Contact lines of all current bindings (RFC 3261 §10.3 step 8), and those for outbound
// and Path.
func bindingFields(all []Binding, r *registerRequest, now time.Time) string {
	var b []byte
	for _, x := range all {
		left := int64(x.Expires.Sub(now) / time.Second)
		b = append(append(append(b, "Contact: <"...), x.Contact...), ">;expires="...)
		b = append(sipmsg.AppendInt(b, left), "\r\n"...)
	}
	if r.keepsFlow() {
		b = sipmsg.AppendField(b, "Require", "outbound") // RFC 5626 §6
		b = append(sipmsg.AppendInt(append(b, "Flow-Timer: "...), int64(flowTimer/time.Second)), "\r\n"...)
	}
	for _, p := range r.path {
		b = sipmsg.AppendField(b, "Path", p) // RFC 3327 §5.3
	}
	if len(r.path) > 0 {
		b = sipmsg.AppendField(b, "Supported", "path")
	}
	return string(b)
}
