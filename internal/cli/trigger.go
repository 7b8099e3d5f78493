package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
)

// triggerCommand tells the sandbox a sample of an event.
func triggerCommand(ctx context.Context, args []string) error {
	var r remote
	var with string
	words, err := r.parse("trigger", "EVENT", args, "test", func(fs *flag.FlagSet) {
		fs.StringVar(&with, "with", "", `members that differ from the sample, as JSON, such as '{"from_number":"+12025550100"}'`)
	})
	if err == nil {
		err = wants("trigger", words, "EVENT")
	}
	if err != nil {
		return err
	}
	body := map[string]any{"event": words[0]}
	if !isKind(words[0]) {
		return noKind(words[0])
	}
	if with != "" {
		var members map[string]any
		if err := json.Unmarshal([]byte(with), &members); err != nil {
			return &failure{exitUsage, fmt.Errorf("--with must be a JSON object: %w", err)}
		}
		body["data"] = members
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	if !r.sandbox() {
		return &failure{exitUsage, errors.New("samples are told in the sandbox only: use a key that begins with …_test_ (soniq key create --env test), or --env test")}
	}
	var answer json.RawMessage
	if err := r.do(ctx, "POST", "/sandbox/events/trigger", body, &answer); err != nil {
		return err
	}
	return r.triggered(answer)
}

func (r *remote) triggered(answer json.RawMessage) error {
	if r.json {
		return r.line(answer)
	}
	var e struct {
		ID, Event string
		Data      struct {
			CallID string `json:"call_id"`
		}
	}
	if err := json.Unmarshal(answer, &e); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%s told as %s", e.Event, e.ID)
	if e.Data.CallID != "" {
		fmt.Fprintf(r.out, " of %s", e.Data.CallID)
	}
	fmt.Fprintln(r.out)
	return nil
}
