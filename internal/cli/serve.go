package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/platform/systemd"
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

// run serves until the context ends, which SIGINT and SIGTERM do. SIGHUP reads the certificate again.
func (o *serveOptions) run(ctx context.Context) error {
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	again := command.Interrupt(ctx)
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	log := newLog(c)
	for _, text := range unknownVariables() {
		log.Warn(text)
	}
	manager := systemd.FromEnvironment(log)
	n, err := server.Start(ctx, c, log)
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
	manager.Ready("ready")
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	defer unwatch()
	go manager.Watch(watching, n)
	for {
		select {
		case <-reload:
			manager.Reloading()
			n.Reload()
			manager.Ready("ready")
		case <-ctx.Done():
			unwatch() // from now on TimeoutStopSec counts, which Stopping extends
			manager.Stopping(n.StopTime(), "waits for calls in progress")
			fmt.Fprintln(os.Stderr, "soniq is stopping: calls in progress may end within", c.DrainTime)
			return stop(n, again)
		}
	}
}

// endTime is how long the calls have to end in order after a second SIGINT.
const endTime = 2 * time.Second

// stop stops the server. Another SIGINT ends the calls in progress at once.
func stop(n *server.Server, again <-chan struct{}) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Stop()
	}()
	select {
	case <-done:
		return nil
	case <-again:
	}
	fmt.Fprintf(os.Stderr, "soniq ends at once: %d call(s) in progress are cut off\n", n.EndCalls())
	select {
	case <-done:
		return nil
	case <-time.After(endTime):
		return fmt.Errorf("not everything ended in order within %v, among it %d call(s); the next start closes them", endTime, n.Calls())
	}
}

// unknownVariables returns a sentence for each environment variable that looks like a setting and is none.
func unknownVariables() (all []string) {
	var flags []string
	for _, s := range config.Settings() {
		flags = append(flags, s.Flag)
	}
	for _, name := range config.UnknownVariables() {
		text := "the environment variable " + name + " is no setting and has no effect"
		near := command.Nearest(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "SONIQ_"), "_", "-")), flags)
		if near != "" {
			text += "; did you mean SONIQ_" + strings.ToUpper(strings.ReplaceAll(near, "-", "_")) + "?"
		}
		all = append(all, text)
	}
	return all
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
