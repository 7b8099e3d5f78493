package remote

import (
	"net/url"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

type callsListOptions struct {
	client
	filters      map[string]*string // query parameter by the name of its flag
	since, until string
	limit        int
}

func newCallsList() *cobra.Command {
	o := callsListOptions{filters: map[string]*string{}}
	cmd := &cobra.Command{
		Use: "list", Short: "list calls, newest first",
		Example: "  soniq calls list --status in_progress\n  soniq calls list --phone +12025550143 --since 2h",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.filters["status"] = f.String("status", "", "only in these states, with commas, such as in_progress")
	o.filters["direction"] = f.String("direction", "", "inbound, outbound or internal")
	o.filters["phone"] = f.String("phone", "", "only with this number on either side")
	o.filters["tag"] = f.String("tag", "", "only with this tag")
	f.StringVar(&o.since, "since", "", "from this time on: a duration before now such as 2h, a time, or a day")
	f.StringVar(&o.until, "until", "", "before this time")
	f.IntVar(&o.limit, "limit", 50, "number of records at most; 0: all")
	command.CompleteList(cmd, "status", command.CallStatuses...)
	command.CompleteFlag(cmd, "direction", command.Directions...)
	for _, free := range []string{"phone", "tag", "since", "until", "limit"} {
		command.CompleteFlag(cmd, free)
	}
	o.addFlags(cmd, "live")
	return cmd
}

func (o *callsListOptions) run(cmd *cobra.Command) error {
	q := url.Values{}
	for name, v := range o.filters {
		if *v != "" {
			q.Set(name, *v)
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
	return o.printList(cmd.Context(), "/calls", q, o.limit, "STARTED DIRECTION FROM TO STATUS TALK ID", callRow)
}
