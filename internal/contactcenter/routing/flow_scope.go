package routing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/customer/contact"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// scope is what the texts that are filled in now can speak of. Who calls, and what is remembered of them, is looked up once where a text
// speaks of it.
func (w *walk) scope(ctx context.Context, texts ...string) flow.Scope {
	all := strings.Join(texts, " ")
	if w.trip.contact == nil && strings.Contains(all, "contact") {
		w.find(ctx, usualLookup)
	}
	if w.trip.memory == nil && strings.Contains(all, "memory") {
		w.remember(ctx)
	}
	i := w.v.Info()
	anonymous := i.From == call.Anonymous || i.From == ""
	return flow.Scope{Variables: w.trip.variables, Contact: known(w.trip.contact), Memory: known(w.trip.memory), Time: flow.MomentOf(w.s.Now().In(w.zone)),
		Caller: flow.Caller{Number: i.From, Name: i.FromName, Called: i.To, Anonymous: anonymous}}
}

func known(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// fill puts what is known into a text.
func (w *walk) fill(ctx context.Context, text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	t, err := flow.ParseTemplate(text)
	if err != nil { // it was read when the flow was published
		w.problem = err.Error()
		return ""
	}
	return t.Fill(w.scope(ctx, text))
}

const (
	usualLookup  = 200 * time.Millisecond
	longestThink = time.Second
)

// remember reads what is remembered of the caller.
func (w *walk) remember(ctx context.Context) {
	w.trip.memory = map[string]any{}
	i := w.v.Info()
	if w.s.Memory == nil || i.From == call.Anonymous {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestThink)
	defer cancel()
	m, err := w.s.Memory(ctx, w.org, i.From)
	if err != nil {
		w.problem = "the caller's memory could not be read"
		w.s.Log.Warn("memory of caller not read", "call", i.CallID, "err", err)
		return
	}
	w.trip.memory = m
}

// find looks up who calls, in own contacts and every connected system; false where nobody is known.
func (w *walk) find(ctx context.Context, limit time.Duration) bool {
	w.trip.contact = map[string]any{}
	i := w.v.Info()
	if i.From == call.Anonymous || i.From == "" {
		return false
	}
	ctx = w.asking(ctx)
	in := &contact.LookupIn{Phone: i.From, TimeoutMS: int(limit.Milliseconds())}
	out, err := w.s.Contacts.Lookup(ctx, in)
	if err != nil {
		if !missed(err) {
			w.problem = "the look-up failed"
			w.s.Log.Warn("caller not looked up", "call", i.CallID, "err", err)
		}
		return false
	}
	m, err := w.described(ctx, out.Body)
	if err != nil {
		w.s.Log.Warn("contact of caller not read", "call", i.CallID, "err", err)
	}
	w.trip.contact = m
	return true
}

// missed is an error that says no more than that there is nobody, or nothing that could be looked up.
func missed(err error) bool {
	var e *op.Error
	return errors.As(err, &e) && e.Status() < 500
}

// described is a contact as expressions see it: what is told of it by whatever system, and of one of ours all that is kept; own members
// have their names.
func (w *walk) described(ctx context.Context, found contact.ContactLookup) (map[string]any, error) {
	m := map[string]any{}
	if found.ContactID != nil {
		c, err := w.s.Contacts.Find(ctx, w.org, *found.ContactID)
		if err != nil && !db.IsNone(err) {
			return plain(m, found), err
		}
		for name, v := range c.Custom {
			m[name] = v
		}
		if err == nil {
			m = plain(m, c)
		}
	}
	return plain(m, found), nil
}

// plain adds the members of a record, as they are in JSON, to others.
func plain(to map[string]any, record any) map[string]any {
	b, err := json.Marshal(record)
	if err == nil {
		err = json.Unmarshal(b, &to)
	}
	if err != nil {
		panic(fmt.Errorf("a record that is no object: %w", err))
	}
	return to
}

// asking returns a context with the flow as the principal, for services that otherwise serve requests of the API.
func (w *walk) asking(ctx context.Context) context.Context {
	p := access.Principal{OrgID: w.org, KeyName: "flow " + w.p.FlowID, Environment: access.Live}
	if w.v.Info().Sandbox {
		p.Environment = access.Sandbox
	}
	return access.With(ctx, p)
}

// writeTimeout bounds a write of a flow's step.
const writeTimeout = 10 * time.Second

// writing returns a context for a write that a step has begun. The write is completed if the caller hangs up meanwhile.
func (w *walk) writing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(w.asking(ctx)), writeTimeout)
}
