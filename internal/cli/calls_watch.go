package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// watched are the kinds that tell how calls go.
const watched = "call.started,call.ringing,call.answered,call.held,call.unheld,call.transfer,call.dtmf,call.missed,call.ended,call.recording,call.transcription"

// watch shows what happens to a call until it ends, or to all calls until the context ends.
func (r *remote) watch(ctx context.Context, id string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan error, 1)
	looked := false
	ready := func() { // the stream is open: whatever happens from here on is on it
		if id == "" || looked {
			return
		}
		looked = true
		if ended, err := r.look(ctx, id); ended || err != nil {
			over <- err
			cancel()
		}
	}
	err := r.follow(ctx, url.Values{"events": {watched}}, ready, func(m message) error { return r.happened(m, id) })
	select {
	case err := <-over:
		return err
	default:
		return err
	}
}

// look shows where the call is now, and reports whether it is over.
func (r *remote) look(ctx context.Context, id string) (ended bool, err error) {
	var raw json.RawMessage
	var c callFacts
	if err := r.do(ctx, "GET", "/calls/"+url.PathEscape(id), nil, &raw); err != nil {
		return false, err
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return false, err
	}
	if r.json {
		return c.Ended != "", r.line(raw)
	}
	_, err = fmt.Fprintf(r.out, "%s  %-18s %s  %s → %s  %s %s\n", time.Now().Format("15:04:05"), "now", c.ID, c.From, c.To, c.Status, c.EndReason)
	return c.Ended != "", err
}

// happened shows an event of the call; its end ends it all.
func (r *remote) happened(m message, id string) error {
	var e map[string]any
	if err := json.Unmarshal([]byte(m.data), &e); err != nil {
		return fmt.Errorf("an event of the stream cannot be read: %w", err)
	}
	if id != "" && e["call_id"] != id {
		return nil
	}
	if err := r.tellStep(m, e); err != nil {
		return err
	}
	if id != "" && m.event == "call.ended" {
		return errEnough
	}
	return nil
}

func (r *remote) tellStep(m message, e map[string]any) error {
	if r.json {
		return r.line(map[string]any{"event": m.event, "sequence": json.RawMessage(cmp.Or(m.id, "null")), "data": json.RawMessage(m.data)})
	}
	call, _ := e["call_id"].(string)
	_, err := fmt.Fprintf(r.out, "%s  %-18s %s  %s\n", time.Now().Format("15:04:05"), m.event, call, step(m.event, e))
	return err
}

// step says in a few words what an event of a call tells.
func step(kind string, e map[string]any) string {
	of := func(names ...string) string {
		var all []string
		for _, n := range names {
			if v := e[n]; v != nil && v != "" {
				all = append(all, tidy(fmt.Sprint(v)))
			}
		}
		return strings.Join(all, " ")
	}
	switch kind {
	case "call.started":
		return of("from_number") + " → " + of("to_number") + "  " + of("direction")
	case "call.ringing":
		return of("number")
	case "call.answered":
		return of("answered_by", "agent_name")
	case "call.held", "call.unheld":
		return "by " + of("held_by")
	case "call.transfer":
		return of("mode", "to", "status", "failure_reason")
	case "call.dtmf":
		return of("digit")
	case "call.missed":
		return of("missed_reason")
	case "call.ended":
		return fmt.Sprintf("%s  %v s of talk", of("status", "end_reason"), e["talk_duration_seconds"])
	}
	return of("status")
}
