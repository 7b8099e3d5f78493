package sip

import (
	"context"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// SUBSCRIBE: event packages, granting and refreshing subscriptions (RFC 6665).

// EventPackage is an event package that accounts may subscribe to (RFC 6665 §7.2).
type Topic struct {
	Event       string // "message-summary"
	ContentType string // of its NOTIFY bodies
	// ResolveSubject returns the subject of an account's subscription, which never changes afterwards; false if the
	// account has no such subject. nil means the subject is the account.
	Subject func(ctx context.Context, account string, resource URI) (subject string, ok bool, err error)
	// Body returns the whole state of a subject; false if the subject no longer exists. It runs on a goroutine of its
	// own.
	Body func(ctx context.Context, subject string, resource URI) (body []byte, ok bool, err error)
	// SetVersion writes the version into a body: the number of the NOTIFY within its subscription, from 0. nil for
	// event packages without versions.
	Number func(body []byte, n uint32) []byte
}

// resolveSubject returns the subject of an account's subscription.
func (t *Topic) subject(ctx context.Context, account string, resource URI) (string, bool, error) {
	if t.Subject == nil {
		return account, true, nil
	}
	return t.Subject(ctx, account, resource)
}

// initialState returns the subject and the body of the first NOTIFY.
func (t *Topic) state(ctx context.Context, account string, resource URI) (subject string, body []byte, ok bool, err error) {
	if subject, ok, err = t.subject(ctx, account, resource); err == nil && ok {
		body, ok, err = t.Body(ctx, subject, resource)
	}
	return subject, body, ok, err
}

const (
	minWatch     = 60   // seconds, the shortest subscription
	maxWatch     = 7200 // seconds, the longest
	defaultWatch = 3600 // RFC 3842 §3.4
)

// subscribeRequest holds the parts of a SUBSCRIBE that leave its shard.
type subscribing struct {
	callID, fromTag, toTag string
	from, to               string // values
	user                   string // of From
	resource               URI
	seq                    uint32
	event                  string // value of Event
	expires                string
	path                   path
	record                 string // Record-Route lines for the answer
	logins                 []string
	flow                   flow
}

// handleSubscribe hands a SUBSCRIBE to a goroutine that may query the database.
func (s *shard) subscribe(m *message) {
	tx := s.serve(m, s.txKey(m, "SUBSCRIBE"))
	tx.limit(s)
	r := &subscribing{
		callID: m.callID, fromTag: m.from.tag, toTag: m.to.tag, from: m.from.value, to: m.to.value, seq: m.cseq,
		event: m.get(fEvent), expires: m.get(fExpires), record: string(m.appendRecordRoute(nil)),
		path: path{target: contactURI(m), routes: m.list(fRecordRoute)}, logins: m.logins(), flow: m.flow,
	}
	from, _ := ParseURI(m.from.addr.uri)
	r.user = from.User
	r.resource, _ = ParseURI(m.uri)
	tag := r.toTag
	if tag == "" {
		tag = newTag()
	}
	head := m.appendHead(nil, tag)
	respond := func(status int, extra string) {
		s.post(func(*shard) {
			s.buf = append(appendStatus(s.buf[:0], status, ""), head...)
			s.buf = appendBody(append(s.buf, extra...), "", nil)
			tx.respond(s, status, s.buf)
		})
	}
	s.srv.spawn(func() { s.srv.subscribed(r, tag, respond) })
}

// answerSubscribe answers one SUBSCRIBE (RFC 6665 §4.2.1).
func (s *Server) subscribed(r *subscribing, tag string, respond func(int, string)) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(p, debug.Stack())
			respond(500, "")
		}
	}()
	ctx, cancel := context.WithTimeout(s.ctx, lookupLimit)
	defer cancel()
	acc, stale, ok, err := s.authenticate(ctx, "SUBSCRIBE", r.user, r.logins, r.flow.addr.Addr(), r.flow.conn)
	switch {
	case err != nil:
		s.failed("look up the account of a SUBSCRIBE", err)
		respond(503, s.retryAfter())
	case !ok:
		if len(r.logins) == 0 {
			s.suspect(r.flow.addr.Addr(), r.flow.transport())
		}
		s.stats.challenges.Add(1)
		respond(401, "WWW-Authenticate: "+s.auth.challenge(acc.algorithm(), stale)+"\r\n")
	case acc.Barred:
		respond(403, "")
	case r.toTag != "":
		s.refresh(acc.ID, r, respond)
	default:
		s.watch(ctx, acc.ID, r, tag, respond)
	}
}

// eventPackage returns the event package of an Event value, or nil.
func (s *Server) topic(event string) *Topic {
	name, _, _ := strings.Cut(event, ";")
	for i := range s.config.Topics {
		if strings.EqualFold(strings.TrimSpace(name), s.config.Topics[i].Event) {
			return &s.config.Topics[i]
		}
	}
	return nil
}

// grantedDuration returns the granted duration of a subscription, or status 423 if the requested one is too short
// (RFC 6665 §4.2.1.1).
func (r *subscribing) lasts() (time.Duration, int) {
	seconds := defaultWatch
	if r.expires != "" {
		seconds = readSeconds(r.expires)
	}
	if seconds > 0 && seconds < minWatch {
		return 0, 423
	}
	return time.Duration(min(seconds, maxWatch)) * time.Second, 200
}

// startSubscription starts a subscription. With Expires 0 it sends one NOTIFY only.
func (s *Server) watch(ctx context.Context, account string, r *subscribing, tag string, respond func(int, string)) {
	t := s.topic(r.event)
	if t == nil {
		respond(489, "Allow-Events: "+s.allowEvents+"\r\n")
		return
	}
	lasts, status := r.lasts()
	if status != 200 {
		respond(status, "Min-Expires: "+strconv.Itoa(minWatch)+"\r\n")
		return
	}
	if r.path.target == "" || strings.ContainsAny(r.event, "\r\n") {
		respond(400, "")
		return
	}
	subject, body, ok, err := t.state(ctx, account, r.resource)
	if err != nil {
		s.failed("look up the state of a subscription", err, "event", t.Event)
		respond(500, "")
		return
	}
	if !ok {
		respond(404, "")
		return
	}
	w := &watcher{srv: s, topic: t, account: account, subject: subject, resource: r.resource, event: r.event, callID: r.callID, tag: tag, remoteTag: r.fromTag,
		local: r.to + ";tag=" + tag, remote: r.from, contact: s.contact(r.resource.String(), r.flow), remoteSeq: r.seq, path: r.path, flow: r.flow,
		ends: s.config.Now().Add(lasts)}
	if lasts > 0 {
		s.watchers.add(w, s.limits.Subscriptions)
	}
	respond(200, r.granted(w, lasts))
	if lasts == 0 {
		w.finish("timeout")
	}
	w.tell(body)
}

// acceptFields returns the header lines of a 200 to a SUBSCRIBE.
func (r *subscribing) granted(w *watcher, lasts time.Duration) string {
	return r.record + "Contact: " + w.contact + "\r\nExpires: " + strconv.Itoa(int(lasts/time.Second)) + "\r\n"
}

// refreshSubscription extends or ends a subscription (RFC 6665 §4.2.1.4, §4.1.2.3).
func (s *Server) refresh(account string, r *subscribing, respond func(int, string)) {
	w := s.watchers.find(r.callID, r.toTag)
	if w == nil || w.account != account || w.remoteTag != r.fromTag {
		respond(481, "")
		return
	}
	lasts, status := r.lasts()
	if status != 200 {
		respond(status, "Min-Expires: "+strconv.Itoa(minWatch)+"\r\n")
		return
	}
	if !w.renew(r, s.config.Now().Add(lasts)) {
		respond(500, "") // RFC 3261 §12.2.2: out of order
		return
	}
	respond(200, r.granted(w, lasts))
	if lasts == 0 {
		w.finish("timeout")
	}
	w.tell(nil)
}

// NotifySubscribers sends the current state of a subject to all its subscribers and returns their addresses.
func (s *Server) Changed(event, subject string) []netip.AddrPort {
	all := s.watchers.of(event, subject)
	sources := make([]netip.AddrPort, len(all))
	for i, w := range all {
		sources[i] = w.source()
		w.tell(nil)
	}
	return sources
}

// SubscriberAddrs returns the addresses of the subscribers to a subject.
func (s *Server) Watched(event, subject string) []netip.AddrPort {
	all := s.watchers.of(event, subject)
	sources := make([]netip.AddrPort, len(all))
	for i, w := range all {
		sources[i] = w.source()
	}
	return sources
}

// expireSubscriptions ends subscriptions that were not refreshed, until the server closes.
func (s *Server) endWatching() {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, w := range s.watchers.expired(s.config.Now()) {
				w.finish("timeout")
				w.tell(nil)
			}
		case <-s.done:
			return
		}
	}
}

const watchTick = time.Second
