package cli

import (
	"context"
	"errors"
	"flag"
	"os"

	"soniq/internal/config"
	"soniq/internal/control"
)

// This file holds the operator's commands about numbers that no market sells: blocks that a carrier gave, and numbers that are brought
// along from another.

func stockCommand(ctx context.Context, args []string) error {
	args, err := verb("stock", "add", args)
	if err != nil {
		return err
	}
	var in control.NumberBlockRequest
	c, err := config.Load("stock add", args, os.Stdout, func(fs *flag.FlagSet) {
		fs.StringVar(&in.Org, "org", "", "id of the organisation")
		fs.StringVar(&in.Trunk, "trunk", "", "id of the trunk the numbers come over")
		fs.StringVar(&in.From, "from", "", "first number of the block, such as +442079460100")
		fs.StringVar(&in.To, "to", "", "last number; the first unless given")
	}, "data", "db", "config")
	if err != nil {
		return err
	}
	if in.To == "" {
		in.To = in.From
	}
	if in.Org == "" || in.Trunk == "" || in.From == "" {
		return errors.New("stock add: --org, --trunk and --from are needed")
	}
	return manage(ctx, c, "stock.add", in)
}

func portCommand(ctx context.Context, args []string) error {
	args, err := verb("port", "set", args)
	if err != nil {
		return err
	}
	var in control.PortRequest
	c, err := config.Load("port set", args, os.Stdout, func(fs *flag.FlagSet) {
		fs.StringVar(&in.Org, "org", "", "id of the organisation")
		fs.StringVar(&in.ID, "id", "", "id of the port")
		fs.StringVar(&in.Status, "status", "", "in_review, scheduled, completed, rejected or canceled")
		fs.StringVar(&in.Trunk, "trunk", "", "with completed: id of the trunk the numbers come over")
		fs.StringVar(&in.Detail, "detail", "", "what the organisation is told, such as a date")
	}, "data", "db", "config")
	if err != nil {
		return err
	}
	if in.Org == "" || in.ID == "" || in.Status == "" {
		return errors.New("port set: --org, --id and --status are needed")
	}
	return manage(ctx, c, "port.set", in)
}
