package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"soniq/internal/config"
	"soniq/internal/server"
)

// serveCommand runs the server until the context ends, which SIGINT and SIGTERM do.
func serveCommand(ctx context.Context, args []string) error {
	c, err := config.Load("serve", args, os.Stdout, nil)
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
	fmt.Printf("soniq is ready: http=%s sip=%s data=%s docs=%s/docs%s\n", n.HTTPAddr(), n.SIPAddr(), c.Data, n.BaseURL(), n.SecureAddrs())
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
