package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"soniq/internal/config"
	"soniq/internal/control"
	"soniq/internal/platform/db"
	"soniq/internal/server"
)

// This file holds the commands that work on a data folder: through the soniq that serves it where one runs, or by opening
// it themselves.

func orgCommand(ctx context.Context, args []string) error {
	args, err := verb("org", "create", args)
	if err != nil {
		return err
	}
	var in control.OrgRequest
	c, err := config.Load("org create", args, os.Stdout, func(fs *flag.FlagSet) {
		fs.StringVar(&in.Name, "name", "", "name of the organisation")
	}, "country", "data", "db", "config")
	if err != nil {
		return err
	}
	if in.Country = c.Country; in.Name == "" {
		return errors.New("org create: --name is missing, such as --name 'Harbor Internet'")
	}
	return manage(ctx, c, "org.create", in)
}

func keyCommand(ctx context.Context, args []string) error {
	args, err := verb("key", "create", args)
	if err != nil {
		return err
	}
	var in control.KeyRequest
	c, err := config.Load("key create", args, os.Stdout, func(fs *flag.FlagSet) {
		fs.StringVar(&in.Org, "org", "", "id of the organisation")
		fs.StringVar(&in.Scopes, "scopes", "", "all, or a comma-separated list such as calls:read,memory:read")
		fs.StringVar(&in.Kind, "kind", "standard", "standard or partner")
		fs.StringVar(&in.Env, "env", "live", "live or test")
		fs.StringVar(&in.Name, "name", "command line", "name of the key")
	}, "data", "db", "config")
	if err != nil {
		return err
	}
	if in.Org == "" || in.Scopes == "" {
		return errors.New("key create: --org and --scopes are needed, such as --org org_… --scopes all")
	}
	return manage(ctx, c, "key.create", in)
}

// verb takes the word after the command.
func verb(command, want string, args []string) ([]string, error) {
	if len(args) > 0 && args[0] == want {
		return args[1:], nil
	}
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		return args, nil
	}
	return nil, fmt.Errorf("%s: say what to do: soniq %s %s --help", command, command, want)
}

// manage does an action and prints its answer, a line.
func manage(ctx context.Context, c config.Config, action string, in any) error {
	var out string
	err := control.Call(ctx, c.Data, action, in, &out)
	if errors.Is(err, control.ErrNotRunning) {
		out, err = alone(ctx, c, action, in)
	}
	if err != nil {
		return err
	}
	fmt.Println(out)
	return nil
}

// alone opens the data folder for one action.
func alone(ctx context.Context, c config.Config, action string, in any) (string, error) {
	h, err := server.Open(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer h.Close()
	body, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	out, err := h.Actions()[action](ctx, body)
	if err != nil {
		return "", err
	}
	return out.(string), nil
}

func migrateCommand(ctx context.Context, args []string) error {
	var status bool
	c, err := config.Load("migrate", args, os.Stdout, func(fs *flag.FlagSet) {
		fs.BoolVar(&status, "status", false, "only show what is pending")
	}, "data", "db", "config")
	if err != nil {
		return err
	}
	lock, err := server.LockDataFolder(c.Data)
	if err != nil && !status {
		return err
	}
	if err == nil {
		defer lock.Close()
	}
	d, err := db.Open(ctx, c.DatabaseURL())
	if err != nil {
		return err
	}
	defer d.Close()
	return migrate(ctx, d, status)
}

func migrate(ctx context.Context, d *db.DB, status bool) error {
	pending, err := d.Pending(ctx)
	if err != nil {
		return err
	}
	if !status {
		if _, err := d.Migrate(ctx); err != nil {
			return err
		}
	}
	word := map[bool]string{true: "pending", false: "applied"}[status]
	for _, m := range pending {
		fmt.Println(word, m.Name)
	}
	if len(pending) == 0 {
		fmt.Println("the database is up to date")
	}
	return nil
}

func backupCommand(ctx context.Context, args []string) error {
	var in control.BackupRequest
	c, err := config.Load("backup", args, os.Stdout, func(fs *flag.FlagSet) {
		fs.StringVar(&in.To, "to", "", "folder for the copy; it must not exist yet")
	}, "data", "db", "config")
	if err != nil {
		return err
	}
	if in.To == "" {
		return errors.New("backup: --to is missing, such as --to /backups/soniq-monday")
	}
	if in.To, err = filepath.Abs(in.To); err != nil {
		return err
	}
	return manage(ctx, c, "backup", in)
}

func versionCommand(context.Context, []string) error {
	fmt.Println("soniq", config.Version)
	return nil
}
