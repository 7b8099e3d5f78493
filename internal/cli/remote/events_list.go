package remote

import (
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
)

type eventsListOptions struct {
	client
	kinds, call, since, until, after string
	limit                            int
}

func newEventsList() *cobra.Command {
	var o eventsListOptions
	cmd := &cobra.Command{
		Use: "list", Short: "list events in the order of their sequence",
		Example: "  soniq events list --kind call.ended,call.missed --since 2h",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.kinds, "kind", "", "only these kinds, with commas")
	f.StringVar(&o.call, "call", "", "only of this call")
	f.StringVar(&o.since, "since", "", "from this time on: a duration before now such as 2h, a time, or a day")
	f.StringVar(&o.until, "until", "", "before this time")
	f.StringVar(&o.after, "after", "", "only after this sequence")
	f.IntVar(&o.limit, "limit", 50, "number of records at most; 0: all")
	command.CompleteList(cmd, "kind", command.EventKinds()...)
	for _, free := range []string{"call", "since", "until", "after", "limit"} {
		command.CompleteFlag(cmd, free)
	}
	o.addFlags(cmd, "live")
	return cmd
}

func (o *eventsListOptions) run(cmd *cobra.Command) error {
	q := url.Values{}
	for name, v := range map[string]string{"kind": strings.Join(config.SplitList(o.kinds), ","), "call_id": o.call,
		"after_sequence": o.after} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if err := setTimeRange(o.since, o.until, q.Set); err != nil {
		return err
	}
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	return o.printList(cmd.Context(), "/events", q, o.limit, "SEQUENCE TIME EVENT ID CALL", eventRow)
}
