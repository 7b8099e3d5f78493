package sip

import (
	"context"
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

// Subscriptions and their NOTIFY requests (RFC 6665); NOTIFY outside a subscription.

// subscriptionTable holds the subscriptions of a server by dialog, by account and by subject.
type subscriptionTable struct {
	mu        sync.Mutex // guards the fields below
	byDialog  map[string]*eventSubscription
	byAccount map[string][]*eventSubscription // oldest first
	bySubject map[subjectKey][]*eventSubscription
}

type subjectKey struct{ event, subject string }

func (w *eventSubscription) subjectKey() subjectKey {
	return subjectKey{w.eventPackage.Event(), w.subject}
}

// add stores a subscription. It removes an older one of the same phone, which the phone lost in a restart. It also removes the oldest one
// of an account that has too many.
func (a *subscriptionTable) add(w *eventSubscription, most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byDialog == nil {
		a.byDialog, a.byAccount, a.bySubject = map[string]*eventSubscription{}, map[string][]*eventSubscription{},
			map[subjectKey][]*eventSubscription{}
	}
	for _, old := range slices.Clone(a.byAccount[w.account]) {
		if old.eventPackage == w.eventPackage && old.source() == w.source() && old.resource == w.resource {
			a.drop(old)
		}
	}
	if all := a.byAccount[w.account]; len(all) >= most {
		a.drop(all[0])
	}
	a.byDialog[w.callID+" "+w.tag] = w
	a.byAccount[w.account] = append(a.byAccount[w.account], w)
	a.bySubject[w.subjectKey()] = append(a.bySubject[w.subjectKey()], w)
}

func (a *subscriptionTable) remove(w *eventSubscription) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(w)
}

// drop removes a subscription. The caller holds the lock.
func (a *subscriptionTable) drop(w *eventSubscription) {
	if a.byDialog[w.callID+" "+w.tag] != w {
		return
	}
	delete(a.byDialog, w.callID+" "+w.tag)
	removeSubscription(a.byAccount, w.account, w)
	removeSubscription(a.bySubject, w.subjectKey(), w)
}

// removeSubscription removes a subscription from one of the lists.
func removeSubscription[K comparable](lists map[K][]*eventSubscription, key K, w *eventSubscription) {
	lists[key] = slices.DeleteFunc(lists[key], func(x *eventSubscription) bool { return x == w })
	if len(lists[key]) == 0 {
		delete(lists, key)
	}
}

func (a *subscriptionTable) find(callID, tag string) *eventSubscription {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byDialog[callID+" "+tag]
}

// forSubject returns the subscriptions to a subject.
func (a *subscriptionTable) forSubject(event, subject string) []*eventSubscription {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.bySubject[subjectKey{event, subject}])
}

func (a *subscriptionTable) expired(now time.Time) (all []*eventSubscription) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.byDialog {
		if !w.expiry().After(now) {
			all = append(all, w)
		}
	}
	return all
}

// eventSubscription is one subscription to an event package, and its dialog. One NOTIFY is in progress at a time, so
// that they arrive in order.
type eventSubscription struct {
	srv                    *Server
	eventPackage           EventPackage
	account, subject       string
	resource               sipmsg.URI
	event                  string // value of Event, including its id
	callID, tag, remoteTag string
	local, remote, contact string // values of From, To and Contact

	mu               sync.Mutex // guards the fields below
	route            dialogRoute
	flow             transport.Flow
	remoteSeq        uint32
	localSeq         uint32
	expiresAt        time.Time
	reason           string // why it ended; "": it has not
	finalSent        bool   // the final NOTIFY was sent
	notifyPending    bool
	changedMeanwhile bool // the state changed while a NOTIFY was in progress
}

func (w *eventSubscription) source() netip.AddrPort {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flow.Addr
}

func (w *eventSubscription) expiry() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.expiresAt
}

// renew applies a refresh. It returns false for one that arrived out of order.
func (w *eventSubscription) renew(r *subscribeRequest, ends time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.seq <= w.remoteSeq || w.reason != "" {
		return false
	}
	w.remoteSeq, w.flow, w.expiresAt = r.seq, r.flow, ends
	if r.route.target != "" {
		w.route.target = r.route.target
	}
	return true
}

// end ends the subscription. The next NOTIFY reports the end and is the last.
func (w *eventSubscription) end(reason string) {
	w.mu.Lock()
	if w.reason == "" {
		w.reason = reason
	}
	w.mu.Unlock()
	w.srv.subscriptions.remove(w)
}

// notifyState sends the state. If body is nil, the state is looked up when the NOTIFY leaves.
func (w *eventSubscription) notifyState(body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finalSent {
		return
	}
	if w.notifyPending {
		w.changedMeanwhile = true
		return
	}
	w.notifyPending = true
	w.srv.workers.Go(func() { w.sendNotifies(body) }) // at most one per subscription: not counted as a lookup
}

// sendNotifies sends NOTIFY requests until the state has not changed meanwhile.
func (w *eventSubscription) sendNotifies(body []byte) {
	defer func() {
		if p := recover(); p != nil {
			w.srv.logPanic(p, debug.Stack())
			w.end("deactivated")
		}
	}()
	for {
		w.sendNotify(body)
		body = nil
		w.mu.Lock()
		w.notifyPending = w.changedMeanwhile && !w.finalSent
		w.changedMeanwhile = false
		if !w.notifyPending {
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
	}
}

// sendNotify sends one NOTIFY. If it is refused or not answered, the subscription ends (RFC 6665 §4.2.2).
func (w *eventSubscription) sendNotify(body []byte) {
	ctx, cancel := context.WithTimeout(w.srv.ctx, txTimeout)
	defer cancel()
	if body == nil {
		fresh, ok, err := w.eventPackage.Body(ctx, w.subject, w.resource)
		if err != nil {
			w.srv.logFailure("look up the state of a subscription", err, "event", w.eventPackage.Event())
			return
		}
		if !ok {
			w.end("noresource")
		}
		body = fresh
	}
	res, err := w.srv.sendOutOfDialog(ctx, w.buildNotify(body))
	if err != nil || res.status > 299 {
		w.end("deactivated")
		w.mu.Lock()
		w.finalSent = true
		w.mu.Unlock()
	}
}

// buildNotify builds the next NOTIFY.
func (w *eventSubscription) buildNotify(body []byte) *outOfDialogRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := "active;expires=" + strconv.Itoa(max(1, int(w.expiresAt.Sub(w.srv.config.Now())/time.Second)))
	if w.reason != "" {
		state, w.finalSent = "terminated;reason="+w.reason, true
	}
	if len(body) > 0 {
		body = w.eventPackage.SetVersion(body, w.localSeq)
	}
	w.localSeq++
	uri, routes := w.route.uriAndRoutes()
	e := &outOfDialogRequest{method: "NOTIFY", uri: uri, callID: w.callID, seq: w.localSeq, flow: w.flow, from: w.local, to: w.remote,
		body: body}
	if len(body) > 0 {
		e.contentType = w.eventPackage.ContentType()
	}
	for _, r := range routes {
		e.extraFields += "Route: " + r + "\r\n"
	}
	e.extraFields += "Contact: " + w.contact + "\r\nEvent: " + w.event + "\r\nSubscription-State: " + state + "\r\n"
	return e
}

// Notify sends a registered phone a NOTIFY outside any subscription, such as check-sync, which makes phones fetch
// their configuration again. event is the value of the Event field. It returns the status of the response; a status
// together with an error means that there was no response.
func (s *Server) Notify(ctx context.Context, b Binding, aor, event string) (status int, err error) {
	return s.NotifyWithBody(ctx, b, aor, event, "", nil)
}

// NotifyWithBody is Notify with a body, such as the state of a mailbox for a phone that never subscribed to it.
func (s *Server) NotifyWithBody(ctx context.Context, b Binding, aor, event, contentType string, body []byte) (status int, err error) {
	u, err := sipmsg.ParseURI(b.Contact)
	if err != nil || strings.ContainsAny(aor+event+contentType, "\r\n") {
		return 0, fmt.Errorf("sip: notify %s: %w", b.Contact, err)
	}
	f, extra := s.bindingFlow(&b), ""
	for _, p := range b.Path {
		extra += "Route: <" + strings.Trim(p, "<>") + ">\r\n"
	}
	res, err := s.sendOutOfDialog(ctx, &outOfDialogRequest{
		method: "NOTIFY", uri: u.String(), callID: sipmsg.NewCallID(), seq: 1, flow: f,
		from: "<" + aor + ">;tag=" + sipmsg.NewTag(), to: "<" + aor + ">",
		extraFields: extra + "Contact: " + s.layer.ContactValue("", f) + "\r\nEvent: " + event + "\r\nSubscription-State: terminated\r\n",
		contentType: contentType, body: body,
	})
	if err != nil {
		return 0, fmt.Errorf("sip: notify %s: %w", b.Contact, err)
	}
	if !res.fromPeer {
		return res.status, fmt.Errorf("sip: notify %s: %w", b.Contact, &StatusError{Method: "NOTIFY", Status: res.status,
			Reason: res.reason})
	}
	return res.status, nil
}
