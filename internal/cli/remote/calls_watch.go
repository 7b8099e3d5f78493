package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

// progressEvents are the kinds of events that show the progress of a call.
const progressEvents = "call.started,call.ringing,call.answered,call.held,call.unheld,call.transfer,call.dtmf,call.missed,call.ended,call.recording,call.transcription"

type callsWatchOptions struct{ client }

func newCallsWatch() *cobra.Command {
	var o callsWatchOptions
	cmd := &cobra.Command{
		Use: "watch [CALL]", Short: "show the progress of one call until it ends, or of all calls",
		Example: "  soniq calls watch\n  soniq calls watch call_…",
		Args:    command.Words("[CALL]"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, strings.Join(args, "")) },
	}
	o.addFlags(cmd, "live")
	return cmd
}

func (o *callsWatchOptions) run(cmd *cobra.Command, id string) error {
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	return o.watch(cmd.Context(), id)
}

// watch prints the progress of a call until it ends, or of all calls until the context ends if id is "".
func (c *client) watch(ctx context.Context, id string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan error, 1)
	shown := false
	ready := func() { // the stream is open: it has all events from here on
		if id == "" || shown {
			return
		}
		shown = true
		if ended, err := c.printState(ctx, id); ended || err != nil {
			over <- err
			cancel()
		}
	}
	err := c.follow(ctx, url.Values{"events": {progressEvents}}, ready, func(m streamEvent) error { return c.printEvent(m, id) })
	select {
	case err := <-over:
		return err
	default:
		return err
	}
}

// printState prints the present state of a call, and reports whether it has ended.
func (c *client) printState(ctx context.Context, id string) (ended bool, err error) {
	var raw json.RawMessage
	var call callFields
	if err := c.do(ctx, "GET", callPath(id), nil, &raw); err != nil {
		return false, err
	}
	if err := json.Unmarshal(raw, &call); err != nil {
		return false, err
	}
	if c.json {
		return call.Ended != "", c.printJSON(raw)
	}
	_, err = fmt.Fprintf(c.out, "%s  %-18s %s  %s → %s  %s %s\n", time.Now().Format("15:04:05"), "now", call.ID, call.From, call.To,
		call.Status, call.EndReason)
	return call.Ended != "", err
}

// printEvent prints an event of the call id, or of any call if id is "". It returns errStop after the end of the call.
func (c *client) printEvent(m streamEvent, id string) error {
	var e map[string]any
	if err := json.Unmarshal([]byte(m.data), &e); err != nil {
		return fmt.Errorf("an event of the stream cannot be read: %w", err)
	}
	if id != "" && e["call_id"] != id {
		return nil
	}
	if err := c.printProgress(m, e); err != nil {
		return err
	}
	if id != "" && m.event == "call.ended" {
		return errStop
	}
	return nil
}

func (c *client) printProgress(m streamEvent, e map[string]any) error {
	if c.json {
		return c.printJSON(map[string]any{"event": m.event, "sequence": json.RawMessage(cmp.Or(m.id, "null")),
			"data": json.RawMessage(m.data)})
	}
	call, _ := e["call_id"].(string)
	_, err := fmt.Fprintf(c.out, "%s  %-18s %s  %s\n", time.Now().Format("15:04:05"), m.event, call, progressText(m.event, e))
	return err
}

// progressText returns the important members of an event of a call in a few words.
func progressText(kind string, e map[string]any) string {
	of := func(names ...string) string {
		var all []string
		for _, n := range names {
			if v := e[n]; v != nil && v != "" {
				all = append(all, printable(fmt.Sprint(v)))
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
