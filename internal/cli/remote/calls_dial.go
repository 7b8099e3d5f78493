package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

type callsDialOptions struct {
	client
	user, from string
	wait       bool
}

func newCallsDial() *cobra.Command {
	var o callsDialOptions
	cmd := &cobra.Command{
		Use: "dial NUMBER", Short: "ring the phones of a user, then the number",
		Example: "  soniq calls dial +12025550143 --user 101 --wait",
		Args:    command.Words("NUMBER"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.user, "user", "", "user whose phones ring first: id, extension or e-mail address; the user of the key unless given")
	f.StringVar(&o.from, "from", "", "number of the organisation to show as the caller")
	f.BoolVar(&o.wait, "wait", false, "show the progress until the call ends; end with 1 if it was not answered")
	command.CompleteFlag(cmd, "user")
	command.CompleteFlag(cmd, "from")
	o.addFlags(cmd, "live")
	return cmd
}

func (o *callsDialOptions) run(cmd *cobra.Command, number string) error {
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	ctx := cmd.Context()
	body := map[string]any{"to": number}
	if o.user != "" {
		if body["user_id"], err = o.userID(ctx, o.user); err != nil {
			return err
		}
	}
	if o.from != "" {
		body["from"] = o.from
	}
	if !o.wait {
		return o.request(ctx, "POST", "/calls", body)
	}
	var raw json.RawMessage
	if err := o.do(ctx, "POST", "/calls", body, &raw); err != nil {
		return err
	}
	return o.waitForEnd(ctx, raw)
}

// waitForEnd watches a call that was just placed. It returns an error if the call was not answered.
func (o *callsDialOptions) waitForEnd(ctx context.Context, raw json.RawMessage) error {
	var c callFields
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	fmt.Fprintf(o.note, "%s: %s\n", c.ID, c.Status)
	if err := o.watch(ctx, c.ID); err != nil || ctx.Err() != nil {
		return err
	}
	if err := o.do(ctx, "GET", callPath(c.ID), nil, &c); err != nil {
		return err
	}
	if c.Status != "completed" {
		return command.Fail(command.ExitFailed, fmt.Errorf("nobody was connected: %s", strings.TrimSpace(c.Status+" "+c.EndReason)))
	}
	return nil
}
