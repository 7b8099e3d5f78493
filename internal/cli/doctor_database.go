package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/server/clocktrust"
	"soniq/internal/server/installation"
	"soniq/internal/server/restored"
	"soniq/internal/telephony/trunk"
)

func (d *doctor) database(ctx context.Context, running bool) {
	d.title("database")
	if _, err := os.Stat(filepath.Join(d.config.Data, "soniq.db")); !d.config.IsPostgres() && errors.Is(err, os.ErrNotExist) {
		d.ok("SQLite will be made at the first start")
		return
	}
	if running && !d.config.IsPostgres() {
		d.ok("SQLite is in use by the running soniq")
		return
	}
	start := time.Now()
	x, err := db.Open(ctx, d.config.DatabaseURL())
	if err != nil {
		d.bad(d.config.RedactError(err).Error(), "check --db and that the server runs")
		return
	}
	defer x.Close()
	pending, err := installation.Check(ctx, x, d.config.Data)
	if err != nil {
		d.bad(err.Error(), databaseRemedy(err))
		return
	}
	d.ok("%s answers in %s, %d migration(s) pending", x.Name(), time.Since(start).Round(time.Millisecond), len(pending))
	if len(pending) == 0 && !running {
		d.stored(ctx, x)
	}
}

// restored prints the notice of a restored copy, if there is one.
func (d *doctor) restored(notice string) {
	if notice != "" {
		d.hint(notice, "until then trunks are not registered, and calls, messages, mails and webhooks do not leave")
	}
}

// clock prints the reason why the clock is not trusted, if there is one.
func (d *doctor) clock(doubt string) {
	if doubt != "" {
		d.hint(doubt, "a wrong clock would delete recordings, events and records too early")
	}
}

// clockDoubt returns the reason why a server that started now would not trust the clock, or "".
func (d *doctor) clockDoubt(ctx context.Context, x *db.DB) (string, error) {
	gate, err := clocktrust.Open(ctx, x, d.config.Data, clock.SystemReading(), slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	if doubt := gate.MayDelete(); doubt != nil {
		return doubt.Error(), nil
	}
	return "", nil
}

// stored reports what the database of a stopped server says about emergency calls, recordings and texts.
func (d *doctor) stored(ctx context.Context, x *db.DB) {
	b := bus.New()
	orgs := org.New(x, b, time.Now)
	trunks := trunk.New(trunk.Config{DB: x, Orgs: orgs, Bus: b})
	notice, fourth := restored.Look(ctx, x, d.config.DatabaseURL())
	without, err := trunks.OrgsWithoutEmergencyCalls(ctx)
	unreachable, other := trunks.UnreachableExtensions(ctx)
	unspoken, third := flow.UnspokenTexts(ctx, x.Read(ctx), orgs, d.canSpeak)
	doubt, fifth := d.clockDoubt(ctx, x)
	unredactable, sixth := orgs.UnredactableAudio(ctx, d.notRecognised)
	if err = errors.Join(err, other, third, fourth, fifth, sixth); err != nil {
		d.bad(err.Error(), "check the rights of the database user")
		return
	}
	d.restored(notice)
	d.clock(doubt)
	d.emergency(without)
	d.extensions(unreachable)
	d.recordings(ctx, orgs)
	d.unspoken(unspoken)
	d.unredactable(unredactable)
}

// databaseRemedy returns the remedy for a database that was refused.
func databaseRemedy(err error) string {
	var newer *db.NewerError
	switch {
	case errors.As(err, &newer):
		return "start a soniq that is not older than the database"
	case errors.Is(err, installation.ErrKey):
		return "put the master key of the database in place; serve, migrate and all other commands refuse the database until then"
	default:
		return "check the rights of the database user"
	}
}

// recordings prints the organisations that record against the law of their country.
func (d *doctor) recordings(ctx context.Context, orgs *org.Service) {
	all, err := orgs.List(ctx)
	if err != nil {
		d.bad(err.Error(), "check the rights of the database user")
		return
	}
	named := 0
	for _, o := range all {
		if o.Recording.Warning == nil {
			continue
		}
		if named++; named <= maxNamed {
			d.hint("organisation "+o.Name+" ("+o.ID+"): "+*o.Recording.Warning, "PATCH /organization")
		}
	}
	if named > maxNamed {
		d.hint(fmt.Sprintf("%d more organisations record without a notice", named-maxNamed), "read recording.warning of GET /organization")
	}
}
