package call

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Asynchronous actions (Prefer: respond-async) that create a record beside the call: a monitor or a participant. The
// record is inserted first with the status ringing, so that the client can follow it by its id. If the action fails,
// its record is ended.

// runAfterResponse runs f in a goroutine, after the request was answered. The context of f has the values of the
// request, such as the principal, and is not canceled when the request ends. It returns an error if the server shuts
// down.
func (s *Service) runAfterResponse(ctx context.Context, callID string, f func(ctx context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	started := s.asyncActions.start(func() {
		if err := f(ctx); err != nil {
			s.log().Info("asynchronous action failed", "call", callID, "org", access.Org(ctx), "request", op.RequestID(ctx), "err", err)
		}
	})
	if !started {
		return op.Unavailable("draining", "the server is shutting down", "2")
	}
	return nil
}

// monitorAsync returns 202 with the monitor record before the phone rings.
func (s *Service) monitorAsync(ctx context.Context, callID string, c StartMonitor) (*op.Out[Monitor], error) {
	id, err := s.activeMonitorID(ctx, callID, c.UserID)
	if err != nil {
		return nil, err
	}
	reserved := id == ""
	if reserved {
		if id, err = s.reserveMonitor(ctx, callID, c); err != nil {
			return nil, err
		}
	}
	c.ID = id
	m, err := s.getMonitor(ctx, callID, id)
	if err != nil {
		return nil, err
	}
	err = s.runAfterResponse(ctx, callID, func(ctx context.Context) error {
		r, err := s.runCommand(ctx, callID, c)
		if err == nil && cmp.Or(r.MonitorID, id) == id {
			return nil
		}
		if reserved {
			err = firstError(err, s.releaseMonitor(ctx, id))
		}
		return err
	})
	if err != nil && reserved {
		err = firstError(s.releaseMonitor(ctx, id), err)
	}
	if err != nil {
		return nil, err
	}
	return &op.Out[Monitor]{Status: 202, Body: m}, nil
}

// activeMonitorID returns the id of the supervisor's monitor on a call, or "" if there is none.
func (s *Service) activeMonitorID(ctx context.Context, callID, user string) (id string, err error) {
	const q = `SELECT id FROM monitors WHERE org_id = $1 AND call_id = $2 AND supervisor_id = $3 AND ended_at IS NULL ORDER BY id LIMIT 1`
	err = s.cfg.DB.Read(ctx).QueryRow(ctx, q, access.Org(ctx), callID, user).Scan(&id)
	if db.IsNone(err) {
		return "", nil
	}
	return id, err
}

func (s *Service) reserveMonitor(ctx context.Context, callID string, c StartMonitor) (string, error) {
	m := MonitorState{ID: db.NewID("mon"), SupervisorID: c.UserID, Mode: c.Mode, Status: "ringing", StartedAt: s.Now()}
	return m.ID, s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		return writeMonitors(ctx, tx, access.Org(ctx), callID, []MonitorState{m})
	})
}

// releaseMonitor ends a reserved monitor record if the supervisor did not answer.
func (s *Service) releaseMonitor(ctx context.Context, id string) error {
	const q = `UPDATE monitors SET status = 'ended', ended_at = $3 WHERE org_id = $1 AND id = $2 AND status = 'ringing'`
	return s.execTx(ctx, q, access.Org(ctx), id, db.At(s.Now()))
}

// execTx runs one statement in a transaction.
func (s *Service) execTx(ctx context.Context, q string, args ...any) error {
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, q, args...)
		return err
	})
}

// changeMonitorAsync returns 202 with the monitor record as it is before the change.
func (s *Service) changeMonitorAsync(ctx context.Context, in *MonitorChangeIn) (*op.Out[Monitor], error) {
	m, err := s.getMonitor(ctx, in.ID, in.MonitorID)
	if err != nil {
		return nil, err
	}
	err = s.runAfterResponse(ctx, in.ID, func(ctx context.Context) error {
		_, err := s.runCommand(ctx, in.ID, UpdateMonitor{ID: in.MonitorID, Mode: in.Body.Mode})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Monitor]{Status: 202, Body: m}, nil
}

// addParticipantAsync returns 202 with the participant's leg before it is dialled.
func (s *Service) addParticipantAsync(ctx context.Context, callID string, c AddParticipant) (*op.Out[Leg], error) {
	c.LegID = db.NewID("leg")
	l := legRow{Leg: Leg{ID: c.LegID, Role: "callee", Number: c.To, Status: "ringing", StartedAt: db.At(s.Now())}}
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return insertLeg(ctx, tx, access.Org(ctx), callID, l) })
	if err != nil {
		return nil, err
	}
	err = s.runAfterResponse(ctx, callID, func(ctx context.Context) error {
		if _, err := s.runCommand(ctx, callID, c); err != nil {
			return firstError(s.releaseLeg(ctx, c.LegID), fmt.Errorf("dial party: %w", err))
		}
		return nil
	})
	if err != nil {
		return nil, firstError(s.releaseLeg(ctx, c.LegID), err)
	}
	kept, err := s.getLeg(ctx, c.LegID)
	if err != nil {
		return nil, err
	}
	return &op.Out[Leg]{Status: 202, Body: kept, Location: op.Prefix + "/calls/" + callID + "?expand=legs"}, nil
}

// releaseLeg ends a reserved leg that was not dialled: it has no SIP Call-ID.
func (s *Service) releaseLeg(ctx context.Context, id string) error {
	const q = `UPDATE legs SET status = 'failed', ended_at = $3, end_reason = 'failed'
		WHERE org_id = $1 AND id = $2 AND sip_call_id = '' AND ended_at IS NULL`
	return s.execTx(ctx, q, access.Org(ctx), id, db.At(s.Now()))
}

// prefersAsync reports whether a Prefer header contains respond-async (RFC 7240 §4.1).
func prefersAsync(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, _, _ := strings.Cut(part, ";")
		name, _, _ = strings.Cut(name, "=")
		if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
			return true
		}
	}
	return false
}
