package cluster

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// Deletion of files that lie on the disk of another node. Each node deletes what its rows in node_file_removals name: while it serves
// within a second, else when it joins.

// RemoveElsewhere makes every other node that ever served delete a file or folder. It does nothing on SQLite. It has a
// transaction of its own.
func (m *Membership) RemoveElsewhere(ctx context.Context, name string) error {
	if !m.IsShared() {
		return nil
	}
	const q = `INSERT INTO node_file_removals (node, name, requested_at) SELECT id, $2, ` + now + ` FROM nodes WHERE id <> $1
		ON CONFLICT (node, name) DO NOTHING`
	if err := m.exec(db.Detached(ctx), q, m.cfg.Node, name); err != nil {
		return fmt.Errorf("delete %s at the other nodes: %w", name, err)
	}
	return nil
}

// removalPage is the number of files that are deleted between two reads.
const removalPage = 500

// removeFiles deletes the files that other nodes have asked this one to delete.
func (m *Membership) removeFiles(ctx context.Context) error {
	m.cleanUp.Lock()
	defer m.cleanUp.Unlock()
	for {
		names, err := m.removals(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := m.cfg.Work.RemoveFile(name); err != nil {
				return fmt.Errorf("delete %s: %w", name, err)
			}
			if err := m.exec(ctx, `DELETE FROM node_file_removals WHERE node = $1 AND name = $2`, m.cfg.Node, name); err != nil {
				return err
			}
		}
		if len(names) < removalPage {
			return nil
		}
	}
}

func (m *Membership) removals(ctx context.Context) (names []string, err error) {
	const q = `SELECT name FROM node_file_removals WHERE node = $1 ORDER BY requested_at LIMIT $2`
	return db.Strings(ctx, m.cfg.DB.Read(ctx), "list files to delete", q, m.cfg.Node, removalPage)
}
