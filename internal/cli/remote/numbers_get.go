package remote

import "github.com/spf13/cobra"

import (
	"soniq/internal/cli/command"
)

type numbersGetOptions struct{ client }

func newNumbersGet() *cobra.Command {
	var o numbersGetOptions
	cmd := &cobra.Command{
		Use: "get NUMBER", Short: "show one number", Long: "NUMBER is the id, the number, or its last digits.",
		Example: "  soniq numbers get +12025550143", Args: command.Words("NUMBER"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	o.addFlags(cmd, "live")
	return cmd
}

func (o *numbersGetOptions) run(cmd *cobra.Command, number string) error {
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	raw, err := o.number(cmd.Context(), number)
	if err != nil {
		return err
	}
	return o.printRecord(raw)
}
