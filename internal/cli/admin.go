package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/control"
	"soniq/internal/server"
	"soniq/internal/server/datadir"
)

// This file holds soniq admin, and the parts that all commands on a data folder share. They use the control socket of the soniq that runs
// on the folder. If none runs, they open the folder themselves.

func newAdmin() *cobra.Command {
	return command.Group("admin", "organisations, API keys, users and the stop of outbound calls",
		command.Group("orgs", "organisations", newOrgsCreate()),
		command.Group("keys", "API keys", newKeysCreate()),
		command.Group("users", "users and their passwords", newUsersAdd(), newUsersPassword()),
		command.Group("trunks", "networks of trunks", newTrunksConfirm()),
		command.Group("clock", "trust in the clock", newClockConfirm()),
		command.Group("outbound", "outbound calls of the whole installation", newOutbound("stop"), newOutbound("start"),
			newOutbound("status")))
}

// dataFolder are the settings of a command that uses nothing but a data folder.
var dataFolder = []string{"data", "db", "config"}

// manage performs an action on the data folder and prints the answer, one line.
func manage(ctx context.Context, c config.Config, printTo io.Writer, action string, in any) error {
	var out string
	err := control.Call(ctx, c.Data, action, in, &out)
	if errors.Is(err, control.ErrNotRunning) {
		out, err = manageOffline(ctx, c, action, in)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(printTo, out)
	return err
}

// manageOffline opens the data folder for one action.
func manageOffline(ctx context.Context, c config.Config, action string, in any) (string, error) {
	c.Restored = "" // only serve confirms a restored copy
	p, err := server.Open(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer p.Close()
	body, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	out, err := p.Actions()[action](ctx, body)
	if err != nil {
		return "", err
	}
	return out.(string), nil
}

// lockDataFolder returns the lock of a data folder. It fails if a soniq runs on the folder.
func lockDataFolder(folder string) (io.Closer, error) { return datadir.Lock(folder) }
