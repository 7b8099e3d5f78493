package sip

import (
	"context"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Subscriptions and their NOTIFY requests (RFC 6665).

// subscriptionTable holds the subscriptions of a server by dialog, by account and by subject.
type watchers struct {
	mu        sync.Mutex // guards the fields below
	byDialog  map[string]*watcher
	byAccount map[string][]*watcher // oldest first
	bySubject map[about][]*watcher
}

type about struct{ event, subject string }

func (w *watcher) about() about { return about{w.topic.Event, w.subject} }

// add stores a subscription. It removes an older one of the same phone, which the phone lost in a restart, and the
// oldest one of an account that has too many.
func (a *watchers) add(w *watcher, most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byDialog == nil {
		a.byDialog, a.byAccount, a.bySubject = map[string]*watcher{}, map[string][]*watcher{}, map[about][]*watcher{}
	}
	for _, old := range slices.Clone(a.byAccount[w.account]) {
		if old.topic == w.topic && old.source() == w.source() && old.resource == w.resource {
			a.drop(old)
		}
	}
	if all := a.byAccount[w.account]; len(all) >= most {
		a.drop(all[0])
	}
	a.byDialog[w.callID+" "+w.tag] = w
	a.byAccount[w.account] = append(a.byAccount[w.account], w)
	a.bySubject[w.about()] = append(a.bySubject[w.about()], w)
}

func (a *watchers) remove(w *watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(w)
}

// drop removes a subscription. The caller holds the lock.
func (a *watchers) drop(w *watcher) {
	if a.byDialog[w.callID+" "+w.tag] != w {
		return
	}
	delete(a.byDialog, w.callID+" "+w.tag)
	without(a.byAccount, w.account, w)
	without(a.bySubject, w.about(), w)
}

// removeSubscription removes a subscription from one of the lists.
func without[K comparable](lists map[K][]*watcher, key K, w *watcher) {
	lists[key] = slices.DeleteFunc(lists[key], func(x *watcher) bool { return x == w })
	if len(lists[key]) == 0 {
		delete(lists, key)
	}
}

func (a *watchers) find(callID, tag string) *watcher {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byDialog[callID+" "+tag]
}

// forSubject returns the subscriptions to a subject.
func (a *watchers) of(event, subject string) []*watcher {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.bySubject[about{event, subject}])
}

func (a *watchers) expired(now time.Time) (all []*watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.byDialog {
		if !w.until().After(now) {
			all = append(all, w)
		}
	}
	return all
}

// eventSubscription is one subscription to an event package, and its dialog. One NOTIFY is in progress at a time, so
// that they arrive in order.
type watcher struct {
	srv                    *Server
	topic                  *Topic
	account, subject       string
	resource               URI
	event                  string // value of Event, including its id
	callID, tag, remoteTag string
	local, remote, contact string // values of From, To and Contact

	mu        sync.Mutex // guards the fields below
	path      path
	flow      flow
	remoteSeq uint32
	localSeq  uint32
	ends      time.Time
	reason    string // why it ended; "": it has not
	told      bool   // the final NOTIFY was sent
	busy      bool
	again     bool // the state changed while a NOTIFY was in progress
}

func (w *watcher) source() netip.AddrPort {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flow.addr
}

func (w *watcher) until() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ends
}

// renew applies a refresh. It returns false for one that arrived out of order.
func (w *watcher) renew(r *subscribing, ends time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.seq <= w.remoteSeq || w.reason != "" {
		return false
	}
	w.remoteSeq, w.flow, w.ends = r.seq, r.flow, ends
	if r.path.target != "" {
		w.path.target = r.path.target
	}
	return true
}

// end ends the subscription. The next NOTIFY reports the end and is the last.
func (w *watcher) finish(reason string) {
	w.mu.Lock()
	if w.reason == "" {
		w.reason = reason
	}
	w.mu.Unlock()
	w.srv.watchers.remove(w)
}

// notifyState sends the state. If body is nil, the state is looked up when the NOTIFY leaves.
func (w *watcher) tell(body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told {
		return
	}
	if w.busy {
		w.again = true
		return
	}
	w.busy = true
	w.srv.workers.Go(func() { w.run(body) }) // at most one per subscription: not counted as a lookup
}

// sendNotifies sends NOTIFY requests until the state has not changed meanwhile.
func (w *watcher) run(body []byte) {
	defer func() {
		if p := recover(); p != nil {
			w.srv.panicked(p, debug.Stack())
			w.finish("deactivated")
		}
	}()
	for {
		w.send(body)
		body = nil
		w.mu.Lock()
		w.busy = w.again && !w.told
		w.again = false
		if !w.busy {
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
	}
}

// sendNotify sends one NOTIFY. If it is refused or not answered, the subscription ends (RFC 6665 §4.2.2).
func (w *watcher) send(body []byte) {
	ctx, cancel := context.WithTimeout(w.srv.ctx, patience)
	defer cancel()
	if body == nil {
		fresh, ok, err := w.topic.Body(ctx, w.subject, w.resource)
		if err != nil {
			w.srv.failed("look up the state of a subscription", err, "event", w.topic.Event)
			return
		}
		if !ok {
			w.finish("noresource")
		}
		body = fresh
	}
	res, err := w.srv.exchange(ctx, w.notify(body))
	if err != nil || res.status > 299 {
		w.finish("deactivated")
		w.mu.Lock()
		w.told = true
		w.mu.Unlock()
	}
}

// buildNotify builds the next NOTIFY.
func (w *watcher) notify(body []byte) *errand {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := "active;expires=" + strconv.Itoa(max(1, int(w.ends.Sub(w.srv.config.Now())/time.Second)))
	if w.reason != "" {
		state, w.told = "terminated;reason="+w.reason, true
	}
	if len(body) > 0 && w.topic.Number != nil {
		body = w.topic.Number(body, w.localSeq)
	}
	w.localSeq++
	uri, routes := w.path.ahead()
	e := &errand{method: "NOTIFY", uri: uri, callID: w.callID, seq: w.localSeq, flow: w.flow, from: w.local, to: w.remote, body: body}
	if len(body) > 0 {
		e.contentType = w.topic.ContentType
	}
	for _, r := range routes {
		e.extra += "Route: " + r + "\r\n"
	}
	e.extra += "Contact: " + w.contact + "\r\nEvent: " + w.event + "\r\nSubscription-State: " + state + "\r\n"
	return e
}
