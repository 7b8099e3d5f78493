package webhook

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
)

// subscribe makes the principal of the context the subscriber of the endpoint. It refuses kinds that the principal may not read. The kind *
// stands for those that it may read.
func (e *endpoint) subscribe(ctx context.Context) error {
	p, _ := access.From(ctx)
	for _, name := range e.Events {
		if err := checkKind(name, p.Scopes); err != nil {
			return err
		}
	}
	e.Holder = p.Holder()
	return nil
}

// checkKind returns an error if a kind needs a scope that is not held.
func checkKind(name string, held []access.Scope) error {
	need := event.Kind(name).Need()
	if name == "*" || need.MetBy(held) {
		return nil
	}
	return &op.Error{Code: "insufficient_scope", Detail: name + " needs " + need.String() + "; leave it out, or use a key that holds it",
		Extra: map[string]any{"required_scopes": need.Alternatives()[0]}}
}

// checkReadable returns an error if the principal of the context may not read a kind, for operations that show or send its events.
func checkReadable(ctx context.Context, kind string) error {
	p, _ := access.From(ctx)
	return checkKind(kind, p.Scopes)
}

// mayReceive reports whether the subscriber may still read a kind.
func (s *Service) mayReceive(ctx context.Context, e *endpoint, k event.Kind) (bool, error) {
	held, err := s.cfg.Rights.StillHeld(ctx, e.Holder)
	if err != nil {
		return false, fmt.Errorf("find the rights of a webhook: %w", err)
	}
	return k.Need().MetBy(held), nil
}

// withheld returns the kinds of an endpoint that its subscriber may not read.
func (s *Service) withheld(ctx context.Context, e *endpoint) ([]string, error) {
	held, err := s.cfg.Rights.StillHeld(ctx, e.Holder)
	if err != nil {
		return nil, fmt.Errorf("find the rights of a webhook: %w", err)
	}
	all := []string{}
	for _, k := range event.Kinds() {
		if (slices.Contains(e.Events, "*") || slices.Contains(e.Events, string(k))) && !k.Need().MetBy(held) {
			all = append(all, string(k))
		}
	}
	return all, nil
}

// discard ends a delivery that is not to be sent any more.
func (s *Service) discard(ctx context.Context, tx db.Querier, d *delivery) error {
	const text = `UPDATE webhook_deliveries SET status = $3, finished_at = $4, next_attempt_at = NULL, held = FALSE
		WHERE org_id = $1 AND id = $2 AND finished_at IS NULL`
	if _, err := tx.Exec(ctx, text, d.Org, d.ID, discarded, s.time()); err != nil {
		return fmt.Errorf("discard delivery: %w", err)
	}
	return nil
}
