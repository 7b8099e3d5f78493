package sip

import (
	"context"
	"errors"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// SUBSCRIBE: event packages, granting and refreshing subscriptions (RFC 6665).

// EventPackage is an event package that accounts may subscribe to (RFC 6665 §7.2).
type EventPackage interface {
	// Event returns the name of the event package, such as "message-summary".
	Event() string
	// ContentType returns the type of the NOTIFY bodies.
	ContentType() string
	// ResolveSubject returns the subject of an account's subscription, which never changes afterwards; false if the
	// account has no such subject.
	ResolveSubject(ctx context.Context, account string, resource sipmsg.URI) (subject string, ok bool, err error)
	// Body returns the whole state of a subject; false if the subject no longer exists. It runs on a goroutine of its
	// own.
	Body(ctx context.Context, subject string, resource sipmsg.URI) (body []byte, ok bool, err error)
	// SetVersion writes the version into a body: the number of the NOTIFY within its subscription, from 0. Event
	// packages without versions return the body.
	SetVersion(body []byte, n uint32) []byte
}

// initialState returns the subject and the body of the first NOTIFY of a subscription.
func initialState(
	ctx context.Context, t EventPackage, account string, resource sipmsg.URI,
) (subject string, body []byte, ok bool, err error) {
	if subject, ok, err = t.ResolveSubject(ctx, account, resource); err == nil && ok {
		body, ok, err = t.Body(ctx, subject, resource)
	}
	return subject, body, ok, err
}

const (
	minSubscriptionSeconds     = 60   // seconds, the shortest subscription
	maxSubscriptionSeconds     = 7200 // seconds, the longest
	defaultSubscriptionSeconds = 3600 // RFC 3842 §3.4
)

// subscribeRequest holds the parts of a SUBSCRIBE that leave its shard.
type subscribeRequest struct {
	callID, fromTag, toTag string
	from, to               string // values
	user                   string // of From
	resource               sipmsg.URI
	seq                    uint32
	event                  string // value of Event
	expires                string
	route                  dialogRoute
	recordRoute            string // Record-Route lines for the answer
	authorizations         []string
	viaProxy               bool
	flow                   transport.Flow
}

// handleSubscribe hands a SUBSCRIBE to a goroutine that may query the database.
func (s *shard) handleSubscribe(m *received) {
	tx := s.newServerTx(m, s.txKey(m, "SUBSCRIBE"))
	tx.setResponseDeadline(s)
	r := &subscribeRequest{
		callID: m.CallID, fromTag: m.From.Tag, toTag: m.To.Tag, from: m.From.Value, to: m.To.Value, seq: m.CSeq,
		event: m.Get(sipmsg.FieldEvent), expires: m.Get(sipmsg.FieldExpires), recordRoute: string(m.AppendRecordRoute(nil)),
		route:          dialogRoute{target: contactURI(&m.Message), routes: m.List(sipmsg.FieldRecordRoute)},
		authorizations: m.Authorizations(), viaProxy: m.viaProxy(), flow: m.flow,
	}
	from, _ := sipmsg.ParseURI(m.From.Addr.URI)
	r.user = from.User
	r.resource, _ = sipmsg.ParseURI(m.URI)
	tag := r.toTag
	if tag == "" {
		tag = sipmsg.NewTag()
	}
	head := m.AppendHead(nil, tag)
	respond := func(status int, extra string) {
		s.enqueue(func(*shard) {
			s.buf = append(sipmsg.AppendStatus(s.buf[:0], status, ""), head...)
			s.buf = sipmsg.AppendBody(append(s.buf, extra...), "", nil)
			tx.respond(s, status, s.buf)
		})
	}
	s.srv.spawn(func() { s.srv.answerSubscribe(r, tag, respond) })
}

// answerSubscribe answers one SUBSCRIBE (RFC 6665 §4.2.1).
func (s *Server) answerSubscribe(r *subscribeRequest, tag string, respond func(int, string)) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(p, debug.Stack())
			respond(500, "")
		}
	}()
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	acc, stale, ok, err := s.authenticate(ctx, claim{method: "SUBSCRIBE", from: r.user, uri: r.resource, logins: r.authorizations,
		source: r.flow.Source(), conn: r.flow.Conn, viaProxy: r.viaProxy})
	switch {
	case errors.Is(err, errOtherURI):
		respond(400, otherURIWarning)
	case err != nil:
		s.logFailure("look up the account of a SUBSCRIBE", err)
		respond(503, s.retryAfter())
	case !ok:
		if len(r.authorizations) == 0 {
			s.countFutileRequest(r.flow.Source().Addr(), r.flow.Transport())
		}
		s.stats.challenges.Add(1)
		respond(401, "WWW-Authenticate: "+s.auth.Challenge(acc.hashes().Algorithm(), stale)+"\r\n")
	case acc.Barred:
		respond(403, "")
	case r.toTag != "":
		s.refreshSubscription(acc.ID, r, respond)
	default:
		s.startSubscription(ctx, acc.ID, r, tag, respond)
	}
}

// eventPackage returns the event package of an Event value, or nil.
func (s *Server) eventPackage(event string) EventPackage {
	name, _, _ := strings.Cut(event, ";")
	for _, t := range s.config.EventPackages {
		if strings.EqualFold(strings.TrimSpace(name), t.Event()) {
			return t
		}
	}
	return nil
}

// grantedDuration returns the granted duration of a subscription, or status 423 if the requested one is too short
// (RFC 6665 §4.2.1.1).
func (r *subscribeRequest) grantedDuration() (time.Duration, int) {
	seconds := defaultSubscriptionSeconds
	if r.expires != "" {
		seconds = parseExpires(r.expires, defaultSubscriptionSeconds, maxSubscriptionSeconds)
	}
	if seconds > 0 && seconds < minSubscriptionSeconds {
		return 0, 423
	}
	return time.Duration(min(seconds, maxSubscriptionSeconds)) * time.Second, 200
}

// startSubscription starts a subscription. With Expires 0 it sends one NOTIFY only.
func (s *Server) startSubscription(ctx context.Context, account string, r *subscribeRequest, tag string, respond func(int, string)) {
	t := s.eventPackage(r.event)
	if t == nil {
		respond(489, "Allow-Events: "+s.allowEvents+"\r\n")
		return
	}
	lasts, status := r.grantedDuration()
	if status != 200 {
		respond(status, "Min-Expires: "+strconv.Itoa(minSubscriptionSeconds)+"\r\n")
		return
	}
	if r.route.target == "" || strings.ContainsAny(r.event, "\r\n") {
		respond(400, "")
		return
	}
	subject, body, ok, err := initialState(ctx, t, account, r.resource)
	if err != nil {
		s.logFailure("look up the state of a subscription", err, "event", t.Event())
		respond(500, "")
		return
	}
	if !ok {
		respond(404, "")
		return
	}
	w := &eventSubscription{srv: s, eventPackage: t, account: account, subject: subject, resource: r.resource, event: r.event,
		callID: r.callID, tag: tag, remoteTag: r.fromTag,
		local: r.to + ";tag=" + tag, remote: r.from, contact: s.layer.ContactValue(r.resource.String(), r.flow),
		remoteSeq: r.seq, route: r.route, flow: r.flow,
		expiresAt: s.config.Now().Add(lasts)}
	if lasts > 0 {
		s.subscriptions.add(w, s.limits.Subscriptions)
	}
	respond(200, r.acceptFields(w, lasts))
	if lasts == 0 {
		w.end("timeout")
	}
	w.notifyState(body)
}

// acceptFields returns the header lines of a 200 to a SUBSCRIBE.
func (r *subscribeRequest) acceptFields(w *eventSubscription, lasts time.Duration) string {
	return r.recordRoute + "Contact: " + w.contact + "\r\nExpires: " + strconv.Itoa(int(lasts/time.Second)) + "\r\n"
}

// refreshSubscription extends or ends a subscription (RFC 6665 §4.2.1.4, §4.1.2.3).
func (s *Server) refreshSubscription(account string, r *subscribeRequest, respond func(int, string)) {
	w := s.subscriptions.find(r.callID, r.toTag)
	if w == nil || w.account != account || w.remoteTag != r.fromTag {
		respond(481, "")
		return
	}
	lasts, status := r.grantedDuration()
	if status != 200 {
		respond(status, "Min-Expires: "+strconv.Itoa(minSubscriptionSeconds)+"\r\n")
		return
	}
	if !w.renew(r, s.config.Now().Add(lasts)) {
		respond(500, "") // RFC 3261 §12.2.2: out of order
		return
	}
	respond(200, r.acceptFields(w, lasts))
	if lasts == 0 {
		w.end("timeout")
	}
	w.notifyState(nil)
}

// NotifySubscribers sends the current state of a subject to all its subscribers and returns their addresses.
func (s *Server) NotifySubscribers(event, subject string) []netip.AddrPort {
	all := s.subscriptions.forSubject(event, subject)
	sources := make([]netip.AddrPort, len(all))
	for i, w := range all {
		sources[i] = w.source()
		w.notifyState(nil)
	}
	return sources
}

// SubscriberAddrs returns the addresses of the subscribers to a subject.
func (s *Server) SubscriberAddrs(event, subject string) []netip.AddrPort {
	all := s.subscriptions.forSubject(event, subject)
	sources := make([]netip.AddrPort, len(all))
	for i, w := range all {
		sources[i] = w.source()
	}
	return sources
}

// expireSubscriptions ends subscriptions that were not refreshed, until the server closes.
func (s *Server) expireSubscriptions() {
	tick := time.NewTicker(subscriptionSweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, w := range s.subscriptions.expired(s.config.Now()) {
				w.end("timeout")
				w.notifyState(nil)
			}
		case <-s.done:
			return
		}
	}
}

const subscriptionSweepInterval = time.Second
