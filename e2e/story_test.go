package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// traced are the SIP messages of a call as the API shows them.
type traced struct {
	Messages []struct {
		Sent         bool
		Remote, Text string
	}
}

// exchanged returns the first message with a telephone that starts so and is of a method's transaction.
func (x traced) exchanged(port int, sent bool, start, method string) string {
	for _, m := range x.Messages {
		if m.Sent == sent && strings.HasSuffix(m.Remote, fmt.Sprintf(":%d", port)) && strings.HasPrefix(m.Text, start) &&
			strings.HasSuffix(rig.Field(m.Text, "CSeq"), method) {
			return m.Text
		}
	}
	return ""
}

// outline names the messages in their order.
func (x traced) outline() string {
	var b strings.Builder
	for _, m := range x.Messages {
		start, _, _ := strings.Cut(m.Text, "\r\n")
		fmt.Fprintf(&b, "\n%v %s %s", m.Sent, m.Remote, start)
	}
	return b.String()
}

// A liveEvent is an event as the live stream tells it.
type liveEvent struct{ id, kind, data string }

// A listener is a client that has the live stream open.
type listener struct {
	t      testing.TB
	answer *http.Response
	lines  *bufio.Scanner
	leave  func()
}

// listen opens the live stream for some kinds, or for all where none is named, behind the event with an id where that is not "".
func (s *site) listen(resume string, kinds ...string) *listener {
	s.T.Helper()
	ctx, leave := context.WithCancel(s.T.Context())
	s.T.Cleanup(leave)
	address := "http://" + s.Server.HTTP + s.Prefix + "/events/stream?events=" + strings.Join(kinds, ",")
	r, err := http.NewRequestWithContext(ctx, "GET", strings.TrimSuffix(address, "?events="), nil)
	if err != nil {
		s.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	if resume != "" {
		r.Header.Set("Last-Event-ID", resume)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	return &listener{s.T, answer, bufio.NewScanner(answer.Body), func() { leave(); _ = answer.Body.Close() }}
}

// next waits for the next event; ok is false where the stream has ended.
func (l *listener) next() (e liveEvent, ok bool) {
	for l.lines.Scan() {
		name, value, _ := strings.Cut(l.lines.Text(), ": ")
		switch name {
		case "":
			e = liveEvent{}
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
			return e, true
		}
	}
	return e, false
}

// stream reads the live stream until an event for which last is true, and returns all of it.
func (s *site) stream(resume string, opened func(), last func(liveEvent) bool) []liveEvent {
	s.T.Helper()
	l := s.listen(resume)
	defer l.leave()
	defer time.AfterFunc(60*time.Second, l.leave).Stop()
	opened()
	var all []liveEvent
	for {
		e, ok := l.next()
		if !ok {
			s.T.Fatalf("the stream ended (%d) after %v", l.answer.StatusCode, all)
		}
		if all = append(all, e); last(e) {
			return all
		}
	}
}

// first is the place of an event of a kind whose data holds a text; -1 where there is none.
func first(all []liveEvent, kind, text string) int {
	for i, e := range all {
		if e.kind == kind && strings.Contains(e.data, text) {
			return i
		}
	}
	return -1
}

func TestTheStoryOfACallIsToldLiveAndKept(t *testing.T) {
	t.Parallel()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
	o.ada, o.bob, o.carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Encrypt: "srtp-mand"})
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	o.carolPhone = o.phone(o.carol, carolTone, rig.PhoneOptions{Auto: true})
	path := ""
	told := o.stream("", func() {
		path = o.call()
		o.Want(200, "POST", path+"/hold", map[string]any{}, nil)
		o.Want(200, "POST", path+"/unhold", map[string]any{}, nil)
		o.Want(200, "POST", path+"/transfer", map[string]any{"to": o.carol.Extension}, nil)
		o.carolPhone.Wait("CALL_ESTABLISHED", "")
		o.bobPhone.Wait("CALL_CLOSED", "")
		o.adaPhone.Do("hangup", "")
	}, func(e liveEvent) bool { return e.kind == "call.ended" })
	held, done := first(told, "call.held", ""), first(told, "call.transfer", `"status":"completed"`)
	if held < 0 || done < held || first(told, "call.started", "") < 0 {
		t.Fatalf("the live stream told %v", told)
	}
	again := o.stream(told[held].id, func() {}, func(e liveEvent) bool { return e.kind == "call.ended" })
	if first(again, "call.held", "") >= 0 || first(again, "call.transfer", `"status":"completed"`) < 0 || len(again) != len(told)-held-1 {
		t.Errorf("resumed after the hold, the stream told %v; the first time it was %v", again, told)
	}
	o.record(o.ada.Extension)
	o.steps(path, "call.held", "transfer.started", "transfer.completed", "event.call.ended")
	o.signalling(path)
	o.Server.Stop()
	o.Server.Start()
	o.steps(path, "event.call.started", "webhook.call.started", "call.held", "event.call.ended", "webhook.call.ended")
	o.signalling(path)
}

// kinds are the steps in the timeline of a call.
func (o *office) kinds(path string) (all []string) {
	o.T.Helper()
	var page struct {
		Data []struct{ Kind string }
	}
	o.Want(200, "GET", path+"/events?limit=200", nil, &page)
	for _, step := range page.Data {
		all = append(all, step.Kind)
	}
	return all
}

// steps fails unless these kinds are in the timeline of a call, in this order.
func (o *office) steps(path string, want ...string) {
	o.T.Helper()
	kinds, next := o.kinds(path), 0
	for _, kind := range kinds {
		if next < len(want) && kind == want[next] {
			next++
		}
	}
	if next < len(want) {
		o.T.Errorf("there is no %s in its place of the timeline: %v", want[next], kinds)
	}
}

// signalling checks the trace of a call: all three telephones from INVITE to the answer to the last BYE, and no secret.
func (o *office) signalling(path string) {
	o.T.Helper()
	var trace traced
	missing := func() string {
		o.Want(200, "GET", path+"/trace", nil, &trace)
		for _, p := range []struct {
			phone *rig.Phone
			ours  bool // we call, and hang up
		}{{o.adaPhone, false}, {o.bobPhone, true}, {o.carolPhone, true}} {
			if trace.exchanged(p.phone.Port, p.ours, "INVITE ", "INVITE") == "" || trace.exchanged(p.phone.Port, p.ours, "BYE ", "BYE") == "" ||
				trace.exchanged(p.phone.Port, !p.ours, "SIP/2.0 200", "BYE") == "" {
				return fmt.Sprintf("the trace lacks INVITE, BYE or its answer of the telephone at port %d: %s", p.phone.Port, trace.outline())
			}
		}
		return ""
	}
	lacks := missing()
	if lacks != "" { // the last answer is a moment later than the record
		rig.Until(o.T, lacks, 5*time.Second, func() bool { return missing() == "" })
	}
	credentials, keys := 0, 0
	for _, m := range trace.Messages {
		for line := range strings.SplitSeq(m.Text, "\n") {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(strings.ToLower(line), "proxy-authorization:") || strings.HasPrefix(strings.ToLower(line), "authorization:") {
				credentials++
				if _, response, _ := strings.Cut(line, `response="`); hexadecimal(strings.Split(response, `"`)[0]) >= 32 {
					o.T.Errorf("the trace shows a response: %s", line)
				}
			}
			if _, key, ok := strings.Cut(line, "inline:"); ok {
				keys++
				if len(strings.Split(key, "|")[0]) >= 40 {
					o.T.Errorf("the trace shows a key: %s", line)
				}
			}
		}
	}
	if credentials == 0 || keys == 0 {
		o.T.Errorf("the trace has %d lines with credentials and %d with keys, so that nothing is proven", credentials, keys)
	}
}

// hexadecimal is how many characters a text begins with that are hexadecimal digits.
func hexadecimal(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789abcdef")) }
