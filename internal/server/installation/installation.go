// Package installation compares a program, its master key and a database before anything is written: the database must not be newer than
// the program, and its secrets must have been sealed with the key of the data folder.
package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"soniq/internal/config"
	"soniq/internal/platform/db"
	"soniq/internal/platform/seal"
)

// ErrKey is returned if the data folder has not the master key of the database.
var ErrKey = errors.New("the master key does not fit the database")

// Error texts of the master key, with the file and the remedy.
const (
	keyMissing = "%w: the file %s is missing. No other key can open the secrets in the database, so none was made. Copy the file from the " +
		"other node, or from the backup of this data folder, and run: chmod 600 %[2]s"
	keyOther = "%w: the file %s is another key than that with which the secrets in the database were sealed. Replace it by the key of the other " +
		"node, or of the backup of this data folder, and run: chmod 600 %[2]s"
)

// KeyPath returns the path of the master key in a data folder.
func KeyPath(data string) string { return filepath.Join(data, "master.key") }

// Check returns the pending migrations. It returns an error with a remedy if this program and the key of the data folder must not be used
// with the database. It writes nothing.
func Check(ctx context.Context, d *db.DB, data string) ([]db.Migration, error) {
	pending, err := d.Pending(ctx)
	if err != nil {
		return nil, withRemedy(err)
	}
	_, err = readKey(ctx, d, KeyPath(data))
	return pending, err
}

// Migrate checks the database, applies all pending migrations and returns their names. It creates no key.
func Migrate(ctx context.Context, d *db.DB, data string) ([]string, error) {
	if _, err := Check(ctx, d, data); err != nil {
		return nil, err
	}
	done, err := d.Migrate(ctx)
	if err != nil {
		return done, fmt.Errorf("bring the database up to date: %w", withRemedy(err))
	}
	if len(done) > 0 {
		if err := d.SetFact(ctx, db.SchemaVersion, config.Version); err != nil {
			return done, err
		}
	}
	key, err := readKey(ctx, d, KeyPath(data))
	if err == nil && key != nil {
		err = claim(ctx, d, key, KeyPath(data))
	}
	return done, err
}

// Open migrates the database and returns the master key. It creates the key if the database is new.
func Open(ctx context.Context, d *db.DB, data string) (*seal.Seal, error) {
	if _, err := Migrate(ctx, d, data); err != nil {
		return nil, err
	}
	path := KeyPath(data)
	key, err := readKey(ctx, d, path)
	if err != nil || key != nil {
		return key, err
	}
	if key, err = seal.Create(path); err != nil {
		return nil, err
	}
	if err := claim(ctx, d, key, path); err != nil { // another node was faster: its key counts
		return nil, errors.Join(err, os.Remove(path))
	}
	return key, nil
}

// withRemedy adds the remedy to the error for a database that is newer than the program.
func withRemedy(err error) error {
	var newer *db.NewerError
	if !errors.As(err, &newer) {
		return err
	}
	program := newer.Version
	if program == "" {
		program = "the version that migrated it"
	}
	return fmt.Errorf("%w. This is soniq %s. Start %s or a later one, or restore the backup from before the upgrade; nothing was changed",
		err, config.Version, program)
}

// claim stores the fingerprint of the key. It returns ErrKey if the database has another one.
func claim(ctx context.Context, d *db.DB, key *seal.Seal, path string) error {
	stored, err := d.ClaimFact(ctx, db.KeyFingerprint, key.Fingerprint())
	if err == nil && stored != key.Fingerprint() {
		err = fmt.Errorf(keyOther, ErrKey, path)
	}
	return err
}

// readKey returns the key of the data folder, or nil if there is none and the database needs none. It returns ErrKey if the database has
// another key.
func readKey(ctx context.Context, d *db.DB, path string) (*seal.Seal, error) {
	stored, err := d.Fact(ctx, db.KeyFingerprint)
	if err != nil {
		return nil, err
	}
	key, err := seal.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, checkNeedless(ctx, d, stored, path)
	}
	if err != nil {
		return nil, err
	}
	fits := stored == key.Fingerprint()
	if stored == "" {
		if fits, err = opensSecrets(ctx, d, key); err != nil {
			return nil, err
		}
	}
	if !fits {
		return nil, fmt.Errorf(keyOther, ErrKey, path)
	}
	return key, nil
}

// checkNeedless returns ErrKey if the database has a fingerprint or organisations.
func checkNeedless(ctx context.Context, d *db.DB, stored, path string) error {
	needed := stored != ""
	if !needed {
		var err error
		if needed, err = hasOrgs(ctx, d); err != nil {
			return err
		}
	}
	if needed {
		return fmt.Errorf(keyMissing, ErrKey, path)
	}
	return nil
}
