package smsc

import (
	"context"
	"errors"
	"fmt"

	"soniq/db"
	"soniq/sms"
)

// The states of carriers.
const (
	active       = "active"
	connecting   = "connecting"
	degraded     = "degraded"
	authRequired = "auth_required"
	disabled     = "disabled"
)

// A state is how a carrier is, on whichever node that was seen; the zero state is not known.
type state struct {
	Status, Error string
	Node          string // that keeps its connection
	HeldUntil     db.Time
}

const stateColumns = `carrier_id, node, held_until, status, error`

func states(ctx context.Context, q db.Querier, org string) (map[string]state, error) {
	rows, err := q.Query(ctx, `SELECT `+stateColumns+` FROM sms_carrier_states WHERE org_id = $1`, org)
	if err != nil {
		return nil, fmt.Errorf("read how carriers are: %w", err)
	}
	defer rows.Close()
	all := map[string]state{}
	for rows.Next() {
		var id string
		var is state
		var wrong db.Null
		if err := rows.Scan(&id, &is.Node, &is.HeldUntil, &is.Status, &wrong); err != nil {
			return nil, err
		}
		is.Error = string(wrong)
		all[id] = is
	}
	return all, rows.Err()
}

func stateOf(ctx context.Context, q db.Querier, org, id string) (state, error) {
	all, err := states(ctx, q, org)
	return all[id], err
}

// forgetState forgets how a carrier was before it was changed; who keeps its connection stays.
func forgetState(ctx context.Context, tx db.Querier, c Carrier) error {
	const q = `UPDATE sms_carrier_states SET status = '', error = NULL WHERE org_id = $1 AND carrier_id = $2`
	if _, err := tx.Exec(ctx, q, c.org, c.ID); err != nil {
		return fmt.Errorf("forget how a carrier was: %w", err)
	}
	return nil
}

// keepState writes down how a carrier is, where it still exists.
func (s *Service) keepState(ctx context.Context, c Carrier, is state) error {
	return s.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `INSERT INTO sms_carrier_states (org_id, carrier_id, node, held_until, status, error, changed_at)
			SELECT org_id, id, '', 0, $3, $4, $5 FROM sms_carriers WHERE org_id = $1 AND id = $2
			ON CONFLICT (org_id, carrier_id) DO UPDATE SET status = excluded.status, error = excluded.error, changed_at = excluded.changed_at`
		_, err := tx.Exec(ctx, q, c.org, c.ID, is.Status, db.Null(is.Error), db.At(s.Now()))
		return err
	})
}

// judged says how a carrier is by what its adapter answered last.
func judged(err error) state {
	switch {
	case err == nil:
		return state{Status: active}
	case errors.Is(err, ErrAuth):
		return state{Status: authRequired, Error: words(err)}
	}
	return state{Status: degraded, Error: words(err)}
}

// seen keeps how a carrier is, where that has changed.
func (s *Service) seen(ctx context.Context, l *line, err error) {
	is := judged(err)
	l.mu.Lock()
	same := l.told == is
	l.told = is
	l.mu.Unlock()
	if same {
		return
	}
	if err := s.keepState(context.WithoutCancel(ctx), l.Carrier, is); err != nil {
		s.Log.Warn("state of a carrier of messages not kept", "org", l.org, "carrier", l.ID, "err", err)
		l.mu.Lock()
		l.told = state{}
		l.mu.Unlock()
	}
}

// try asks a carrier whether it would take messages.
func (s *Service) try(ctx context.Context, c Carrier) (status string, err error) {
	l, err := s.line(c)
	if err != nil {
		return "", err
	}
	if p, _ := providerOf(c.Provider); p.binds && !s.held(c.ID) {
		is, err := stateOf(ctx, s.DB.Read(ctx), c.org, c.ID)
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
	s.seen(ctx, l, err)
	return judged(err).Status, err
}

// fault is what is told of a message nobody takes any more.
func gone() sms.Result {
	return sms.Result{Status: sms.Failed, Fault: &sms.Fault{Code: "carrier_rejected", Message: "no carrier takes messages to this number any more"}}
}
