package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/server"
)

type serveOptions struct{ settings *config.Flags }

func newServe() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve", Short: "run the platform", Example: "  soniq serve --data /var/lib/soniq --http 0.0.0.0:8080 --public-ip 203.0.113.7",
		Args: command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.settings = command.AddSettings(cmd)
	return cmd
}

// run serves until the context ends, which SIGINT and SIGTERM do.
func (o *serveOptions) run(ctx context.Context) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	n, err := server.Start(ctx, c, newLog(c))
	if err != nil {
		return err
	}
	if err := n.CreateFirstKey(ctx, c); err != nil {
		n.Stop()
		return err
	}
	fmt.Printf("soniq is ready: http=%s sip=%s data=%s docs=%s/docs%s\n", n.HTTPAddr(), n.SIPAddr(), c.Data, n.BaseURL(), n.OtherAddrs())
	if notice := n.Notice(); notice != "" {
		fmt.Println(notice)
	}
	<-ctx.Done()
	fmt.Fprintln(os.Stderr, "soniq is stopping: calls in progress may end within", c.DrainTime)
	n.Stop()
	return nil
}

func newLog(c config.Config) *slog.Logger {
	var level slog.Level
	if level.UnmarshalText([]byte(c.LogLevel)) != nil {
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, o))
}
