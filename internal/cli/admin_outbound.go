package cli

import (
	"context"
	"errors"
	"flag"
	"os"

	"soniq/internal/config"
	"soniq/internal/control"
)

// outboundCommand throws the kill switch of the installation.
func outboundCommand(ctx context.Context, args []string) error {
	var in control.OutboundRequest
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		in.Do, args = args[0], args[1:]
	}
	c, err := config.Load("outbound", args, os.Stdout, func(fs *flag.FlagSet) {
		fs.BoolVar(&in.Calls, "calls", false, "with stop: also end outbound calls in progress, but emergency calls")
	}, "data", "db", "config")
	if err != nil {
		return err
	}
	if in.Do != "stop" && in.Do != "start" && in.Do != "status" {
		return errors.New("outbound: say stop, start or status")
	}
	return manage(ctx, c, "outbound", in)
}
