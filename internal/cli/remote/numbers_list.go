package remote

import (
	"net/url"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

type numbersListOptions struct{ client }

func newNumbersList() *cobra.Command {
	var o numbersListOptions
	cmd := &cobra.Command{
		Use: "list", Short: "list the numbers of the organisation and where calls to them go", Example: "  soniq numbers list --json",
		Args: command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd, "live")
	return cmd
}

func (o *numbersListOptions) run(cmd *cobra.Command) error {
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	return o.printList(cmd.Context(), "/numbers", url.Values{}, 0, "NUMBER STATUS LEADS_TO LABEL ID", numberRow)
}
