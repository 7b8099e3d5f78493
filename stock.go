package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
)

// This file holds the operator's commands about numbers that no market sells: blocks that a carrier gave, and numbers that are brought
// along from another.

// stockIn is a block of numbers.
type stockIn struct{ Org, Trunk, From, To string }

func stockCommand(ctx context.Context, args []string) error {
	args, err := verb("stock", "add", args)
	if err != nil {
		return err
	}
	var in stockIn
	c, err := load("stock add", args, os.Stdout, func(fs *flag.FlagSet) {
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

func (h *house) addStock(ctx context.Context, in stockIn) (string, error) {
	n, err := h.numbers.AddStock(ctx, in.Org, in.Trunk, in.From, in.To)
	if err != nil {
		return "", plain(err)
	}
	return fmt.Sprintf("%d number(s) added", n), nil
}

// portIn is the operator's word on numbers that are brought along.
type portIn struct{ Org, ID, Status, Trunk, Detail string }

func portCommand(ctx context.Context, args []string) error {
	args, err := verb("port", "set", args)
	if err != nil {
		return err
	}
	var in portIn
	c, err := load("port set", args, os.Stdout, func(fs *flag.FlagSet) {
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

func (h *house) setPort(ctx context.Context, in portIn) (string, error) {
	p, err := h.numbers.SetPort(ctx, in.Org, in.ID, in.Status, in.Trunk, in.Detail)
	if err != nil {
		return "", plain(err)
	}
	return fmt.Sprintf("port %s is %s", p.ID, p.Status), nil
}
