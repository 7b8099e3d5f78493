package remote

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

type triggerOptions struct {
	client
	members string
}

func NewTrigger() *cobra.Command {
	var o triggerOptions
	cmd := &cobra.Command{
		Use: "trigger EVENT", Short: "publish a sample of an event in the sandbox",
		Example: "  soniq trigger call.ended --with '{\"from_number\":\"+12025550100\"}'",
		Args:    command.Words("EVENT"), ValidArgsFunction: command.Offer(command.EventKinds()...),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().StringVar(&o.members, "with", "", `members that differ from the sample, as JSON, such as '{"from_number":"+12025550100"}'`)
	command.CompleteFlag(cmd, "with")
	o.addFlags(cmd, "test")
	return cmd
}

func (o *triggerOptions) run(cmd *cobra.Command, kind string) error {
	if err := checkKind(cmd, kind); err != nil {
		return err
	}
	body := map[string]any{"event": kind}
	if o.members != "" {
		var members map[string]any
		if err := json.Unmarshal([]byte(o.members), &members); err != nil {
			return command.UsageErrorf(cmd, "--with must be a JSON object: %w", err)
		}
		body["data"] = members
	}
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	if !o.sandbox() {
		return command.UsageErrorf(cmd, "samples are published in the sandbox only: use a key that begins with …_test_ (soniq admin keys create --env test), or --env test")
	}
	var raw json.RawMessage
	if err := o.do(cmd.Context(), "POST", "/sandbox/events/trigger", body, &raw); err != nil {
		return err
	}
	return o.print(raw)
}

// print prints the id of the event that was published, and of its call.
func (o *triggerOptions) print(raw json.RawMessage) error {
	if o.json {
		return o.printJSON(raw)
	}
	var e struct {
		ID, Event string
		Data      struct {
			CallID string `json:"call_id"`
		}
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s told as %s", e.Event, e.ID)
	if e.Data.CallID != "" {
		fmt.Fprintf(o.out, " of %s", e.Data.CallID)
	}
	fmt.Fprintln(o.out)
	return nil
}

// checkKind returns an error unless there is an event of the kind.
func checkKind(cmd *cobra.Command, kind string) error {
	all := command.EventKinds()
	if slices.Contains(all, kind) {
		return nil
	}
	text := fmt.Sprintf("there is no event %q", kind) + command.Suggestion("", command.Nearest(kind, all))
	return command.UsageErrorf(cmd, "%s", command.WithRemedy(text, "there are "+strings.Join(all, ", ")))
}
