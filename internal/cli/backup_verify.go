package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/server/backup"
)

func newBackupVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify FOLDER", Short: "read a backup and say whether it is complete and intact",
		Example: "  soniq backup verify /backups/soniq-monday", Args: command.Words("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return verifyBackup(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
}

func verifyBackup(ctx context.Context, folder string, out io.Writer) error {
	r, err := backup.Verify(ctx, folder)
	if err != nil {
		return err
	}
	content := "database, key and files"
	if !r.Database {
		content = "key and files, without the database,"
	}
	_, err = fmt.Fprintf(out, "%s is intact: %s of %s (soniq %s), %d files, %d MB\n", folder, content,
		r.Made.Format(time.RFC3339), r.Version, r.Files, r.Bytes>>20)
	return err
}
