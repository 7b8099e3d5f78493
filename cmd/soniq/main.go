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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	again := command.NewInterrupts()
	go watchSignals(cancel, again)
	if err := cli.Run(command.WithInterrupts(ctx, again), os.Args[1:]); err != nil {
		if !errors.Is(err, cli.ErrFailed) {
			fmt.Fprintln(os.Stderr, "soniq:", err)
		}
		os.Exit(command.ExitCode(err))
	}
}

// interrupted is the exit code of a process that SIGINT ended.
const interrupted = 130

// watchSignals calls stop at the first SIGINT or SIGTERM. A later SIGINT goes to the command, or ends the process if the command does not
// wait for it.
func watchSignals(stop context.CancelFunc, again *command.Interrupts) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	stop()
	for s := range signals {
		if s == os.Interrupt && !again.Pass() {
			fmt.Fprintln(os.Stderr, "soniq: ended at once")
			os.Exit(interrupted)
		}
	}
}
