// Package restored recognises a database that was copied from another installation, which may still run. Such a copy sends nothing until
// the operator confirms that it takes the place of the original.
package restored

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"soniq/internal/platform/cluster"
	"soniq/internal/platform/db"
)

// Values of the setting --restored.
const (
	Live = "live" // the copy takes the place of the original
	Copy = "copy" // the database is a copy, also if it is not recognised as one
)

// Config describes the database at a start.
type Config struct {
	Data string // data folder
	Path string // of the SQLite database; not used with PostgreSQL
	As   string // Live, Copy, or "" if the operator does not say
	Log  *slog.Logger
}

// hold is the stored state of a copy that is not confirmed.
type hold struct {
	At    time.Time `json:"at"`             // when it was recognised
	Taken time.Time `json:"taken,omitzero"` // when it was made, if known
	Why   string    `json:"why"`
}

// State says what the database of this process is.
type State struct {
	Node Node
	// Copied is true if calls in the database may be those of the original: this start recognised the copy, or found it not confirmed.
	Copied bool
	// Taken is when the copy was made; zero if that is not known.
	Taken time.Time
	held  *hold
}

// ErrHeld is the reason why a copy that is not confirmed sends nothing.
var ErrHeld = errors.New("this is a restored copy, which sends nothing until it is confirmed; if the original runs no more, start the copy with: " +
	"soniq serve --restored=live")

// Held returns ErrHeld while nothing may be sent, else nil.
func (s State) Held() error {
	if s.held == nil {
		return nil
	}
	return ErrHeld
}

// Since returns when the copy was recognised. It is zero if the database is no copy, or confirmed.
func (s State) Since() time.Time {
	if s.held == nil {
		return time.Time{}
	}
	return s.held.At
}

// Notice returns what the operator has to know; "" if there is nothing.
func (s State) Notice() string {
	if s.held == nil {
		return ""
	}
	return ErrHeld.Error() + " (" + s.held.Why + ")"
}

// Open recognises a copied database, stores that it is one, and names this node. With Live it confirms the copy.
func Open(ctx context.Context, d *db.DB, c Config) (s State, err error) {
	was, now, err := look(ctx, d, c.Path)
	if err != nil {
		return s, err
	}
	if s.held, err = stored(ctx, d); err != nil {
		return s, err
	}
	why := was.why
	if why == "" && s.held == nil && c.As == Copy {
		why = "serve was started with --restored=copy"
	}
	if s.Node, err = nodeOf(c.Data, now, why != ""); err != nil {
		return s, err
	}
	if why != "" {
		s.held = &hold{At: time.Now().UTC(), Taken: was.taken, Why: why}
	}
	if err := write(ctx, d, was, now, s.held, why != ""); err != nil {
		return s, err
	}
	if s.held != nil {
		s.Copied, s.Taken = true, s.held.Taken
	}
	return s.confirm(ctx, d, c)
}

// confirm makes a copy live if the operator says so.
func (s State) confirm(ctx context.Context, d *db.DB, c Config) (State, error) {
	switch {
	case s.held == nil && c.As == Live:
		c.Log.Info("--restored=live confirms nothing: this is no restored copy; remove the setting, or it confirms the next copy unasked")
	case s.held != nil && c.As == Live:
		if err := d.SetFact(ctx, db.Restored, ""); err != nil {
			return s, err
		}
		c.Log.Warn("the restored copy is confirmed and takes the place of the original", "why", s.held.Why)
		s.held = nil
	case s.held != nil:
		c.Log.Warn(s.Notice())
	}
	return s, nil
}

// Look returns why the database is a copy that is not confirmed; "" if it is none. It writes nothing.
func Look(ctx context.Context, d *db.DB, path string) (string, error) {
	was, _, err := look(ctx, d, path)
	if err != nil {
		return "", err
	}
	held, err := stored(ctx, d)
	switch {
	case err != nil:
		return "", err
	case was.why != "":
		held = &hold{Why: was.why}
	}
	return State{held: held}.Notice(), nil
}

// earlier is what the database says about its place at the last start.
type earlier struct {
	text  string    // the stored place
	why   string    // why the database is a copy; "" if it is none
	taken time.Time // when it was made, if known
}

// look compares the stored place of the database with that of now.
func look(ctx context.Context, d *db.DB, path string) (was earlier, now place, err error) {
	if now, err = placeOf(ctx, d, path); err != nil {
		return was, now, err
	}
	if was.text, err = d.Fact(ctx, db.Place); err != nil {
		return was, now, err
	}
	p, err := parsePlace(was.text)
	if err == nil && p != nil {
		was.why, was.taken = p.copiedTo(now), p.Backup
	}
	return was, now, err
}

// stored returns the stored state of a copy; nil if the database is none, or confirmed.
func stored(ctx context.Context, d *db.DB) (*hold, error) {
	text, err := d.Fact(ctx, db.Restored)
	if err != nil || text == "" {
		return nil, err
	}
	var h hold
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return nil, fmt.Errorf("read the state of the restored copy: %w", err)
	}
	return &h, nil
}

// write stores the place of the database and, if it was found to be a copy, that it is held. Of several nodes of a copied database
// the first one does it: it also evicts the nodes of the original, so that their calls are closed.
func write(ctx context.Context, d *db.DB, was earlier, now place, h *hold, found bool) error {
	if was.text == "" {
		was.text = now.String()
		if _, err := d.ClaimFact(ctx, db.Place, was.text); err != nil {
			return err
		}
	}
	if was.text == now.String() && !found {
		return nil
	}
	return d.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		first, err := db.SwapFact(ctx, tx, db.Place, was.text, now.String())
		if err != nil || !found || !first {
			return err
		}
		text, err := json.Marshal(h)
		if err != nil {
			return err
		}
		if err := d.SetFact(ctx, db.Restored, string(text)); err != nil {
			return err
		}
		if was.why == "" {
			return nil
		}
		return cluster.EvictAll(ctx, tx)
	})
}

// BackupFacts returns what a copy by soniq backup has to store, so that it is recognised as one wherever it is started.
func BackupFacts(now time.Time) map[db.Fact]string {
	return map[db.Fact]string{db.Place: place{Backup: now.UTC().Truncate(time.Second)}.String()}
}
