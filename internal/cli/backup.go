package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/control"
)

type backupOptions struct {
	settings *config.Flags
	to       string
}

func newBackup() *cobra.Command {
	var o backupOptions
	cmd := &cobra.Command{
		Use: "backup", Short: "copy database, keys and recordings, also while the platform runs",
		Example: "  soniq backup --to /backups/soniq-monday\n  soniq backup verify /backups/soniq-monday",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().StringVar(&o.to, "to", "", "folder for the copy; it must not exist yet")
	_ = cmd.MarkFlagDirname("to")
	o.settings = command.AddSettings(cmd, dataFolder...)
	cmd.AddCommand(newBackupVerify())
	return cmd
}

func (o *backupOptions) run(cmd *cobra.Command) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	if o.to == "" {
		return command.UsageErrorf(cmd, "--to is missing, such as --to /backups/soniq-monday")
	}
	to, err := filepath.Abs(o.to)
	if err != nil {
		return err
	}
	return manage(cmd.Context(), c, cmd.OutOrStdout(), "backup", control.BackupRequest{To: to})
}
