package smscarrier

import (
	"context"
	"errors"
	"fmt"

	"soniq/internal/platform/db"
)

// The states of carriers.
const (
	active       = "active"
	connecting   = "connecting"
	degraded     = "degraded"
	authRequired = "auth_required"
	disabled     = "disabled"
)

// carrierState is the state of a carrier as last reported by any node; the zero value means unknown.
type carrierState struct {
	Status, Error string
	Node          string // node that holds the connection lease
	LeaseUntil    db.Time
}

const stateColumns = `carrier_id, node, held_until, status, error`

func states(ctx context.Context, q db.Querier, org string) (map[string]carrierState, error) {
	rows, err := q.Query(ctx, `SELECT `+stateColumns+` FROM sms_carrier_states WHERE org_id = $1`, org)
	if err != nil {
		return nil, fmt.Errorf("read states of carriers: %w", err)
	}
	defer rows.Close()
	all := map[string]carrierState{}
	for rows.Next() {
		var id string
		var is carrierState
		var wrong db.Null
		if err := rows.Scan(&id, &is.Node, &is.LeaseUntil, &is.Status, &wrong); err != nil {
			return nil, err
		}
		is.Error = string(wrong)
		all[id] = is
	}
	return all, rows.Err()
}

func stateOf(ctx context.Context, q db.Querier, org, id string) (carrierState, error) {
	all, err := states(ctx, q, org)
	return all[id], err
}

// clearState resets the state of a carrier after a change; the connection lease is kept.
func clearState(ctx context.Context, tx db.Querier, c Carrier) error {
	const q = `UPDATE sms_carrier_states SET status = '', error = NULL WHERE org_id = $1 AND carrier_id = $2`
	if _, err := tx.Exec(ctx, q, c.org, c.ID); err != nil {
		return fmt.Errorf("reset state of carrier: %w", err)
	}
	return nil
}

// saveState stores the state of a carrier if the carrier still exists.
func (s *Service) saveState(ctx context.Context, c Carrier, is carrierState) error {
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `INSERT INTO sms_carrier_states (org_id, carrier_id, node, held_until, status, error, changed_at)
			SELECT org_id, id, '', 0, $3, $4, $5 FROM sms_carriers WHERE org_id = $1 AND id = $2
			ON CONFLICT (org_id, carrier_id) DO UPDATE SET status = excluded.status, error = excluded.error,
			changed_at = excluded.changed_at`
		_, err := tx.Exec(ctx, q, c.org, c.ID, is.Status, db.Null(is.Error), db.At(s.cfg.Clock.Now()))
		return err
	})
}

// stateFromError returns the state for the last result of an adapter.
func stateFromError(err error) carrierState {
	switch {
	case err == nil:
		return carrierState{Status: active}
	case errors.Is(err, ErrAuth):
		return carrierState{Status: authRequired, Error: errorText(err)}
	}
	return carrierState{Status: degraded, Error: errorText(err)}
}

// recordState stores the state of a carrier if it has changed.
func (s *Service) recordState(ctx context.Context, l *carrierClient, err error) {
	is := stateFromError(err)
	l.mu.Lock()
	same := l.lastState == is
	l.lastState = is
	l.mu.Unlock()
	if same {
		return
	}
	if err := s.saveState(context.WithoutCancel(ctx), l.Carrier, is); err != nil {
		s.cfg.Log.Warn("state of an SMS carrier not stored", "org", l.org, "carrier", l.ID, "err", err)
		l.mu.Lock()
		l.lastState = carrierState{}
		l.mu.Unlock()
	}
}

// testCarrier tests whether a carrier would accept messages.
func (s *Service) testCarrier(ctx context.Context, c Carrier) (status string, err error) {
	l, err := s.openClient(c)
	if err != nil {
		return "", err
	}
	if p, _ := providerOf(c.Provider); p.hasConnection && !s.holdsConnection(c.ID) {
		is, err := stateOf(ctx, s.cfg.DB.Read(ctx), c.org, c.ID)
		switch {
		case err != nil:
			return "", err
		case is.Status == active:
			return active, nil
		case is.Status == "":
			return connecting, errors.New("no connection yet")
		}
		return is.Status, errors.New(is.Error)
	}
	t, ok := l.adapter.(Tester)
	if !ok {
		return "", fmt.Errorf("%s cannot be asked without sending a message", c.Provider)
	}
	err = t.Test(ctx)
	s.recordState(ctx, l, err)
	return stateFromError(err).Status, err
}

// FailingCarrier is an enabled carrier that accepts no messages.
type FailingCarrier struct {
	Org    string `json:"org"`
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
	Error  string `json:"error"`
}

// FailingCarriers returns the enabled carriers of all organisations that accept no messages, for the operator.
func (s *Service) FailingCarriers(ctx context.Context) ([]FailingCarrier, error) {
	// tenant: the operator's view of all organisations
	const q = `SELECT c.org_id, c.id, c.name, h.status, COALESCE(h.error, '') FROM sms_carriers c
		JOIN sms_carrier_states h ON h.org_id = c.org_id AND h.carrier_id = c.id
		WHERE c.enabled AND h.status IN ('degraded', 'auth_required') ORDER BY h.changed_at LIMIT 200`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list carriers that do not work: %w", err)
	}
	defer rows.Close()
	all := []FailingCarrier{}
	for rows.Next() {
		var t FailingCarrier
		if err := rows.Scan(&t.Org, &t.ID, &t.Name, &t.Status, &t.Error); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, rows.Err()
}
