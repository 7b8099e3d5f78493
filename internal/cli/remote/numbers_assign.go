package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

type numbersAssignOptions struct {
	client
	user, flow, queue string
	nobody            bool
}

func newNumbersAssign() *cobra.Command {
	var o numbersAssignOptions
	cmd := &cobra.Command{
		Use: "assign NUMBER", Short: "set where calls to a number go", Long: "NUMBER is the id, the number, or its last digits.",
		Example: "  soniq numbers assign +12025550143 --user 101\n  soniq numbers assign +12025550143 --flow flow_…",
		Args:    command.Words("NUMBER"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.user, "user", "", "to the phones of this user: id, extension or e-mail address")
	f.StringVar(&o.flow, "flow", "", "to this flow")
	f.StringVar(&o.queue, "queue", "", "to this queue")
	f.BoolVar(&o.nobody, "nobody", false, "calls to it are rejected")
	for _, free := range []string{"user", "flow", "queue"} {
		command.CompleteFlag(cmd, free)
	}
	o.addFlags(cmd, "live")
	return cmd
}

func (o *numbersAssignOptions) run(cmd *cobra.Command, number string) error {
	if given := o.targets(); given != 1 {
		return command.UsageErrorf(cmd, "say one of --user, --flow, --queue or --nobody")
	}
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	ctx := cmd.Context()
	raw, err := o.number(ctx, number)
	if err != nil {
		return err
	}
	var n struct{ ID string }
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	body, err := o.change(ctx)
	if err != nil {
		return err
	}
	if err := o.do(ctx, "PATCH", "/numbers/"+url.PathEscape(n.ID), body, &raw); err != nil {
		return err
	}
	if o.json {
		return o.printJSON(raw)
	}
	cells, err := numberRow(raw)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s leads to %s\n", cells[0], printable(cells[2]))
	return nil
}

// targets returns the number of targets that are given.
func (o *numbersAssignOptions) targets() (n int) {
	for _, given := range []bool{o.user != "", o.flow != "", o.queue != "", o.nobody} {
		if given {
			n++
		}
	}
	return n
}

// change returns the body of the request that assigns a number. It removes every target if none is named.
func (o *numbersAssignOptions) change(ctx context.Context) (map[string]any, error) {
	switch {
	case o.user != "":
		id, err := o.userID(ctx, o.user)
		return map[string]any{"user_id": id}, err
	case o.flow != "":
		return map[string]any{"flow_id": o.flow}, nil
	case o.queue != "":
		return map[string]any{"queue_id": o.queue}, nil
	}
	return map[string]any{"user_id": nil, "flow_id": nil, "queue_id": nil}, nil
}
