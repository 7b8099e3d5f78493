package call

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

// ResumableCall is a call that was in progress when its node stopped, with everything needed to resume it.
type ResumableCall struct {
	New        New
	State      State
	Legs       []LegState
	Monitors   []MonitorState
	Recordings []OpenRecording // those that had not finished
	Dialogs    json.RawMessage
	Revision   int
}

// OpenRecording is a recording that had not finished.
type OpenRecording struct {
	ID        string
	Name      string // in the blob store
	Status    string // recording or paused
	StartedAt time.Time
	Pauses    []Pause // the last one has no end if Status is paused
}

// writeDialogs stores the resume data of a call: the SIP dialogs if the change has them, and the state of the call in
// any case. It does nothing if the change has no dialogs and Fleeting is set.
func (s *Service) writeDialogs(ctx context.Context, tx db.Querier, c Change) error {
	if c.Dialogs == nil && c.Fleeting {
		return nil
	}
	if c.Dialogs == nil {
		const q = `UPDATE call_dialogs SET state = $3 WHERE org_id = $1 AND call_id = $2`
		_, err := tx.Exec(ctx, q, c.Org, c.ID, db.AsJSON(c.Row))
		return err
	}
	const q = `INSERT INTO call_dialogs (org_id, call_id, node, state, dialogs) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (org_id, call_id) DO UPDATE SET state = excluded.state, dialogs = excluded.dialogs`
	if _, err := tx.Exec(ctx, q, c.Org, c.ID, s.cfg.Node, db.AsJSON(c.Row), string(c.Dialogs)); err != nil {
		return fmt.Errorf("write dialogs: %w", err)
	}
	return nil
}

func deleteDialogs(ctx context.Context, tx db.Querier, org, callID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM call_dialogs WHERE org_id = $1 AND call_id = $2`, org, callID)
	return err
}

// ResumableCalls lists the calls of this node that are in progress according to the database and have dialogs. Call
// it at start, before the first call arrives. Recover closes the listed calls that are not resumed.
func (s *Service) ResumableCalls(ctx context.Context) ([]ResumableCall, error) {
	all, err := s.queryResumable(ctx)
	if err != nil {
		return nil, fmt.Errorf("list calls to resume: %w", err)
	}
	for i := range all {
		if err := s.loadParts(ctx, &all[i]); err != nil {
			return nil, fmt.Errorf("read call %s to resume: %w", all[i].New.ID, err)
		}
	}
	return all, nil
}

func (s *Service) queryResumable(ctx context.Context) ([]ResumableCall, error) {
	// tenant: recovery of everything this node held
	const q = `SELECT c.org_id, c.id, c.direction, c.source, c.from_number, c.from_name, c.to_number, c.number_id, c.device_id,
			c.trunk_id, c.user_id, c.sandbox, c.started_at, c.metadata, c.client_reference, c.revision, d.state, d.dialogs
		FROM call_dialogs d JOIN calls c ON c.org_id = d.org_id AND c.id = d.call_id
		WHERE d.node = $1 AND c.ended_at IS NULL ORDER BY c.id`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q, s.cfg.Node)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []ResumableCall
	for rows.Next() {
		x, err := scanResumable(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, rows.Err()
}

func scanResumable(r row) (x ResumableCall, err error) {
	var fromName, numberID, deviceID, trunkID, userID, reference db.Null
	var started db.Time
	var metadata db.JSON[map[string]string]
	var state db.JSON[State]
	var dialogs string
	n := &x.New
	err = r.Scan(&n.Org, &n.ID, &n.Direction, &n.Source, &n.From, &fromName, &n.To, &numberID, &deviceID, &trunkID, &userID,
		&n.Sandbox, &started, &metadata, &reference, &x.Revision, &state, &dialogs)
	n.FromName, n.NumberID, n.DeviceID, n.TrunkID = string(fromName), string(numberID), string(deviceID), string(trunkID)
	n.UserID, n.Reference, n.StartedAt, n.Metadata = string(userID), string(reference), started.Time, metadata.V
	x.State, x.Dialogs = state.V, json.RawMessage(dialogs)
	return x, err
}

// loadParts reads the legs, supervisors and recordings of a call to resume.
func (s *Service) loadParts(ctx context.Context, x *ResumableCall) (err error) {
	q := s.cfg.DB.Read(ctx)
	if x.Legs, err = legStates(ctx, q, x.New.Org, x.New.ID); err != nil {
		return err
	}
	for _, l := range x.Legs {
		if l.Role == "caller" {
			x.New.CallerLeg, x.New.CallerSIP, x.New.CallerDev, x.New.CallerUser = l.ID, l.SIPCallID, l.DeviceID, l.UserID
			break
		}
	}
	if x.Monitors, err = monitorStates(ctx, q, x.New.Org, x.New.ID); err != nil {
		return err
	}
	x.Recordings, err = openRecordings(ctx, q, x.New.Org, x.New.ID)
	return err
}

func legStates(ctx context.Context, q db.Querier, org, callID string) ([]LegState, error) {
	const text = `SELECT ` + legColumns + ` FROM legs WHERE org_id = $1 AND call_id = $2 ORDER BY id`
	rows, err := q.Query(ctx, text, org, callID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []LegState
	for rows.Next() {
		_, l, err := scanLeg(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, l.state())
	}
	return all, rows.Err()
}

// state converts the leg to the form that the switch uses.
func (l Leg) state() LegState {
	x := LegState{ID: l.ID, Role: l.Role, UserID: stringOrEmpty(l.UserID), DeviceID: stringOrEmpty(l.DeviceID),
		TrunkID: stringOrEmpty(l.TrunkID), Number: l.Number,
		Status: l.Status, Codec: stringOrEmpty(l.Codec), SRTP: l.SRTP, HeldBy: stringOrEmpty(l.HeldBy), SIPCallID: l.SIPCallID,
		StartedAt: l.StartedAt.Time, EndReason: stringOrEmpty(l.EndReason)}
	if l.AnsweredAt != nil {
		x.AnsweredAt = l.AnsweredAt.Time
	}
	if l.EndedAt != nil {
		x.EndedAt = l.EndedAt.Time
	}
	if l.SIPStatus != nil {
		x.SIPStatus = *l.SIPStatus
	}
	if l.quality != "" {
		x.Quality = json.RawMessage(l.quality)
	}
	return x
}

func stringOrEmpty(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func monitorStates(ctx context.Context, q db.Querier, org, callID string) ([]MonitorState, error) {
	const text = `SELECT id, supervisor_id, mode, status, started_at, ended_at FROM monitors
		WHERE org_id = $1 AND call_id = $2 ORDER BY id`
	rows, err := q.Query(ctx, text, org, callID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []MonitorState
	for rows.Next() {
		var m MonitorState
		var started, ended db.Time
		if err := rows.Scan(&m.ID, &m.SupervisorID, &m.Mode, &m.Status, &started, &ended); err != nil {
			return nil, err
		}
		m.StartedAt, m.EndedAt = started.Time, ended.Time
		all = append(all, m)
	}
	return all, rows.Err()
}

func openRecordings(ctx context.Context, q db.Querier, org, callID string) ([]OpenRecording, error) {
	const text = `SELECT id, blob, status, started_at, pauses FROM recordings
		WHERE org_id = $1 AND call_id = $2 AND status IN ('recording', 'paused') ORDER BY id`
	rows, err := q.Query(ctx, text, org, callID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []OpenRecording
	for rows.Next() {
		var o OpenRecording
		var started db.Time
		var pauses db.JSON[[]Pause]
		if err := rows.Scan(&o.ID, &o.Name, &o.Status, &started, &pauses); err != nil {
			return nil, err
		}
		o.StartedAt, o.Pauses = started.Time, pauses.V
		all = append(all, o)
	}
	return all, rows.Err()
}
