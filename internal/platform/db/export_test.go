package db

import "context"

// MigrateByStep applies all pending migrations, also to a new database, which Migrate creates at once.
func (d *DB) MigrateByStep(ctx context.Context) error {
	open, err := d.pendingPrepared(ctx)
	if err == nil {
		_, err = d.applyEach(ctx, open)
	}
	return err
}
