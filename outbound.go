package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
)

// outboundIn is what the outbound command asks for.
type outboundIn struct {
	Do    string // stop, start or status
	Calls bool   // with stop: end the calls in progress too
}

// outboundCommand throws the kill switch of the installation.
func outboundCommand(ctx context.Context, args []string) error {
	var in outboundIn
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		in.Do, args = args[0], args[1:]
	}
	c, err := load("outbound", args, os.Stdout, func(fs *flag.FlagSet) {
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

// outbound stops or starts outbound calls of every organisation; emergency calls always go out.
func (h *house) outbound(ctx context.Context, in outboundIn) (string, error) {
	if in.Do != "status" {
		if err := h.trunks.Halt(ctx, in.Do == "stop"); err != nil {
			return "", err
		}
		h.log.Warn("outbound calls switched by the operator", "do", in.Do)
	}
	ended := 0
	if in.Do == "stop" && in.Calls {
		ended = h.gate.Stop()
	}
	halted, err := h.trunks.Halted(ctx)
	if err != nil {
		return "", err
	}
	if halted {
		return fmt.Sprintf("outbound calls are stopped, but emergency calls; %d call(s) were ended", ended), nil
	}
	return "outbound calls go out", nil
}
