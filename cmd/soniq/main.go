// Command soniq is a telephony platform in one binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"soniq/internal/cli"
	"soniq/internal/cli/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := cli.Run(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, cli.ErrFailed) {
			fmt.Fprintln(os.Stderr, "soniq:", err)
		}
		stop()
		os.Exit(command.ExitCode(err))
	}
}
