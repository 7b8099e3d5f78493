// Package visibilitytest stores users, queues and calls with their parts, for tests of what users see.
package visibilitytest

import (
	"context"
	"testing"

	"soniq/internal/platform/db"
)

// Org is an organisation in a test database.
type Org struct {
	T  testing.TB
	DB *db.DB
	ID string
}

// Exec runs a statement whose first argument is the organisation.
func (o Org) Exec(text string, args ...any) {
	o.T.Helper()
	err := o.DB.Tx(context.Background(), func(tx db.Querier) error {
		_, err := tx.Exec(context.Background(), text, append([]any{o.ID}, args...)...)
		return err
	})
	if err != nil {
		o.T.Fatal(err)
	}
}

// Create stores the organisation.
func (o Org) Create() {
	o.T.Helper()
	o.Exec(`INSERT INTO orgs (id, path, environment, name, plan, status, country, timezone, language, settings, created_at, updated_at)
		VALUES ($1, $2, 'live', 'Test', 'standard', 'active', 'GB', 'UTC', 'en', '{}', 0, 0)`, "/"+o.ID+"/")
}

// User stores a user with a role.
func (o Org) User(id, role string) {
	o.T.Helper()
	o.Exec(`INSERT INTO users (org_id, id, email, first_name, last_name, role, status, dnd, skills, ring_strategy, forward, voicemail,
		recording_mode, created_at, updated_at)
		VALUES ($1, $2, $3, 'Dana', '', $4, 'active', FALSE, '{}', 'all_devices', '{}', '{}', 'inherit', 1, 1)`,
		id, id+"@example.com", role)
}

// SetRole changes the role of a user.
func (o Org) SetRole(id, role string) {
	o.T.Helper()
	o.Exec(`UPDATE users SET role = $3 WHERE org_id = $1 AND id = $2`, id, role)
}

// Queue stores a queue.
func (o Org) Queue(id string) {
	o.T.Helper()
	o.Exec(`INSERT INTO queues (org_id, id, name, settings, created_at, updated_at) VALUES ($1, $2, 'Support', '{}', 1, 1)`, id)
}

// Member lets a user answer a queue.
func (o Org) Member(queue, user string) {
	o.T.Helper()
	o.Exec(`INSERT INTO queue_members (org_id, queue_id, user_id, priority, skills, signed_in, paused, added_at)
		VALUES ($1, $2, $3, 1, '{}', TRUE, FALSE, 1)`, queue, user)
}

// Call stores a call.
func (o Org) Call(id string) {
	o.T.Helper()
	o.Exec(`INSERT INTO calls (org_id, id, direction, status, stage, source, from_number, to_number, started_at, ring_seconds,
			queue_seconds, hold_seconds, talk_seconds, total_seconds, recording_state, recording_ready, consent, tags, notes_count,
			metadata, sandbox, node)
		VALUES ($1, $2, 'inbound', 'in_progress', 'agent', 'trunk', '+12025550100', '+12025550101', 1, 0, 0, 0, 0, 0, 'off', FALSE,
			'not_required', '[]', 0, '{}', FALSE, 'node_a')`, id)
}

// Leg stores a leg of a call that rang a user.
func (o Org) Leg(call, user string) {
	o.T.Helper()
	o.Exec(`INSERT INTO legs (org_id, id, call_id, role, user_id, number, status, sip_call_id, started_at)
		VALUES ($1, $2, $3, 'agent', $4, '101', 'ringing', 'x', 1)`, db.NewID("leg"), call, user)
}

// Waited stores that a call waited in a queue.
func (o Org) Waited(call, queue string) {
	o.T.Helper()
	o.Exec(`INSERT INTO queue_entries (org_id, id, queue_id, call_id, status, priority, place, from_number, skills, entered_at, offers,
		node)
		VALUES ($1, $2, $3, $4, 'ended', 1, 1, '+12025550100', '{}', 1, 0, 'node_a')`, db.NewID("qen"), queue, call)
}

// Message stores a message of a call in the mailbox of a user or queue.
func (o Org) Message(id, call, kind, mailbox string) {
	o.T.Helper()
	o.Exec(`INSERT INTO voicemails (org_id, id, call_id, mailbox_type, mailbox_id, from_number, received_at, duration_ms, size_bytes,
			sha256, blob, status, updated_at)
		VALUES ($1, $2, $3, $4, $5, '+12025550100', 1, 1000, 1, '', '', 'new', 1)`, id, call, kind, mailbox)
}
