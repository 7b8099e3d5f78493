package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/platform/db"
	"soniq/internal/server/installation"
)

type migrateOptions struct {
	settings *config.Flags
	status   bool
}

func newMigrate() *cobra.Command {
	var o migrateOptions
	cmd := &cobra.Command{
		Use: "migrate", Short: "bring the database up to date", Example: "  soniq migrate --status --data /var/lib/soniq",
		Args: command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	cmd.Flags().BoolVar(&o.status, "status", false, "only show the pending migrations")
	o.settings = command.AddSettings(cmd, dataFolder...)
	return cmd
}

func (o *migrateOptions) run(ctx context.Context, out io.Writer) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	lock, err := lockDataFolder(c.Data)
	if err != nil && !o.status {
		return err
	}
	if err == nil {
		defer lock.Close()
	}
	d, err := db.Open(ctx, c.DatabaseURL())
	if err != nil {
		return c.RedactError(err)
	}
	defer d.Close()
	return o.migrate(ctx, d, c.Data, out)
}

func (o *migrateOptions) migrate(ctx context.Context, d *db.DB, data string, out io.Writer) error {
	pending, err := installation.Check(ctx, d, data)
	if err != nil {
		return err
	}
	word := "pending"
	if !o.status {
		word = "applied"
		if _, err := installation.Migrate(ctx, d, data); err != nil {
			return err
		}
	}
	for _, m := range pending {
		fmt.Fprintln(out, word, m.Name)
	}
	if len(pending) == 0 {
		fmt.Fprintln(out, "the database is up to date")
	}
	return nil
}
