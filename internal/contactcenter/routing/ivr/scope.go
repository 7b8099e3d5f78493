package ivr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/customer/contact"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// scope returns the values that templates and expressions can refer to. The contact and the memory of the caller are
// read once, and only if a text mentions them.
func (w *flowRun) scope(ctx context.Context, texts ...string) flow.Scope {
	all := strings.Join(texts, " ")
	if w.flowContext.Contact == nil && strings.Contains(all, "contact") {
		w.lookUpCaller(ctx, lookupTimeout)
	}
	if w.flowContext.Memory == nil && strings.Contains(all, "memory") {
		w.loadMemory(ctx)
	}
	i := w.v.Info()
	anonymous := i.From == call.Anonymous || i.From == ""
	return flow.Scope{Variables: w.flowContext.Variables, Contact: orEmptyMap(w.flowContext.Contact),
		Memory: orEmptyMap(w.flowContext.Memory), Budget: &w.flowContext.Budget, Time: flow.MomentOf(w.s.cfg.Clock.Now().In(w.zone)),
		Caller: flow.Caller{Number: i.From, Name: i.FromName, Called: i.To, Anonymous: anonymous}}
}

func orEmptyMap(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// fillTemplate replaces the placeholders of a text with values.
func (w *flowRun) fillTemplate(ctx context.Context, text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	t, err := flow.ParseTemplate(text)
	if err != nil { // does not happen: publishing parsed it
		w.problem = err.Error()
		return ""
	}
	return t.Fill(w.scope(ctx, text))
}

const (
	lookupTimeout = 200 * time.Millisecond
	memoryTimeout = time.Second
)

// loadMemory reads the memory of the caller.
func (w *flowRun) loadMemory(ctx context.Context) {
	w.flowContext.Memory = map[string]any{}
	i := w.v.Info()
	if i.From == call.Anonymous {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	m, err := w.s.cfg.Memory.CallerMemory(ctx, w.org, i.From)
	if err != nil {
		w.problem = "the caller's memory could not be read"
		w.s.cfg.Log.Warn("memory of caller not read", "call", i.CallID, "err", err)
		return
	}
	w.flowContext.Memory = m
}

// lookUpCaller looks up the caller in own contacts and in every connected system. It returns false if there is no
// match.
func (w *flowRun) lookUpCaller(ctx context.Context, limit time.Duration) bool {
	w.flowContext.Contact = map[string]any{}
	i := w.v.Info()
	if i.From == call.Anonymous || i.From == "" {
		return false
	}
	ctx = w.withFlowPrincipal(ctx)
	in := &contact.LookupIn{Phone: i.From, TimeoutMS: int(limit.Milliseconds())}
	out, err := w.s.cfg.Contacts.Lookup(ctx, in)
	if err != nil {
		if !isLookupMiss(err) {
			w.problem = "the look-up failed"
			w.s.cfg.Log.Warn("caller not looked up", "call", i.CallID, "err", err)
		}
		return false
	}
	m, err := w.contactFields(ctx, out.Body)
	if err != nil {
		w.s.cfg.Log.Warn("contact of caller not read", "call", i.CallID, "err", err)
	}
	w.flowContext.Contact = m
	return true
}

// isLookupMiss reports whether an error means only that there is no match, or that the number cannot be looked up (a
// 4xx status).
func isLookupMiss(err error) bool {
	var e *op.Error
	return errors.As(err, &e) && e.Status() < 500
}

// contactFields returns a contact in the form that expressions use: the fields from any connected system, and all
// stored fields of an own contact. Custom fields are at the top level under their names.
func (w *flowRun) contactFields(ctx context.Context, found contact.ContactLookup) (map[string]any, error) {
	m := map[string]any{}
	if found.ContactID != nil {
		c, err := w.s.cfg.Contacts.Find(ctx, w.org, *found.ContactID)
		if err != nil && !db.IsNone(err) {
			return mergeJSON(m, found), err
		}
		for name, v := range c.Custom {
			m[name] = v
		}
		if err == nil {
			m = mergeJSON(m, c)
		}
	}
	return mergeJSON(m, found), nil
}

// mergeJSON adds the JSON fields of a record to a map.
func mergeJSON(to map[string]any, record any) map[string]any {
	b, err := json.Marshal(record)
	if err == nil {
		err = json.Unmarshal(b, &to)
	}
	if err != nil {
		panic(fmt.Errorf("a record that is no object: %w", err))
	}
	return to
}

// withFlowPrincipal returns a context with the flow as the principal, for services that otherwise serve API requests.
func (w *flowRun) withFlowPrincipal(ctx context.Context) context.Context {
	p := access.Principal{OrgID: w.org, KeyName: "flow " + w.program.FlowID, Environment: access.Live}
	if w.v.Info().Sandbox {
		p.Environment = access.Sandbox
	}
	return access.With(ctx, p)
}

// writeContext returns a context for a write that a step has begun. The write is completed even if the caller hangs
// up meanwhile.
func (w *flowRun) writeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(w.withFlowPrincipal(ctx)), routing.WriteTimeout)
}
