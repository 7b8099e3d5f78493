package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"soniq/internal/platform/db"
)

// This file holds the commands that work on a data folder: through the soniq that serves it where one runs, or by opening
// it themselves.

// orgIn and keyIn are what org create and key create ask for.
type orgIn struct{ Name, Country string }

type keyIn struct {
	Org, Scopes, Kind, Env, Name string
}

type backupIn struct{ To string }

func orgCommand(ctx context.Context, args []string) error {
	args, err := verb("org", "create", args)
	if err != nil {
		return err
	}
	var in orgIn
	c, err := load("org create", args, os.Stdout, func(fs *flag.FlagSet) {
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
	var in keyIn
	c, err := load("key create", args, os.Stdout, func(fs *flag.FlagSet) {
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
func manage(ctx context.Context, c Config, action string, in any) error {
	var out string
	err := ask(ctx, c.Data, action, in, &out)
	if errors.Is(err, errNotRunning) {
		out, err = alone(ctx, c, action, in)
	}
	if err != nil {
		return err
	}
	fmt.Println(out)
	return nil
}

// alone opens the data folder for one action.
func alone(ctx context.Context, c Config, action string, in any) (string, error) {
	h, err := openHouse(ctx, c, quiet())
	if err != nil {
		return "", err
	}
	defer h.close()
	body, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	out, err := h.actions()[action](ctx, body)
	if err != nil {
		return "", err
	}
	return out.(string), nil
}

func migrateCommand(ctx context.Context, args []string) error {
	var status bool
	c, err := load("migrate", args, os.Stdout, func(fs *flag.FlagSet) {
		fs.BoolVar(&status, "status", false, "only show what is pending")
	}, "data", "db", "config")
	if err != nil {
		return err
	}
	lock, err := prepareData(c.Data)
	if err != nil && !status {
		return err
	}
	if err == nil {
		defer lock.Close()
	}
	d, err := db.Open(ctx, c.database())
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
	var in backupIn
	c, err := load("backup", args, os.Stdout, func(fs *flag.FlagSet) {
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

// backup copies everything a restored soniq needs into a new folder: start it with --data on that folder.
func (h *house) backup(ctx context.Context, to string) (string, error) {
	if err := os.Mkdir(to, 0o700); err != nil {
		return "", fmt.Errorf("backup: %w", err)
	}
	note := ""
	if err := h.db.Backup(ctx, filepath.Join(to, "soniq.db")); errors.Is(err, db.ErrNoBackup) {
		note = " (without the database: " + err.Error() + ")"
	} else if err != nil {
		return "", err
	}
	for _, name := range []string{"master.key", "node"} {
		if err := copyFile(filepath.Join(h.config.Data, name), filepath.Join(to, name)); err != nil {
			return "", err
		}
	}
	n, err := copyTree(filepath.Join(h.config.Data, "recordings"), filepath.Join(to, "recordings"))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: database, keys and %d recordings%s", to, n, note), nil
}

// copyTree copies finished files; those still being written are left out.
func copyTree(from, to string) (n int, err error) {
	err = filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, ".part") {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		n++
		return copyFile(path, target)
	})
	return n, err
}

// copyFile copies a file that is never changed again: a link where the target is on the same disk.
func copyFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// version is set by the build.
var version = "development"

func versionCommand(context.Context, []string) error {
	fmt.Println("soniq", version)
	return nil
}
