package queue_test

import (
	"context"
	"strings"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/db"
)

// fakeDependencies are the dependencies of the service. Tests set its fields.
type fakeDependencies struct {
	used    string // queue to which the number num_1 routes until it is moved
	moved   string // queues from and to which numbers were moved
	leaving string // user with a phone that has not answered BYE
}

func (f *fakeDependencies) HasAudio(_ context.Context, _, id string) (bool, error) {
	return id == "aud_music", nil
}

func (f *fakeDependencies) CheckDestination(_ context.Context, _, to string) (string, error) {
	if to == "ext:100" || strings.HasPrefix(to, "queue:que_") {
		return "", nil
	}
	return "nowhere", nil
}

func (f *fakeDependencies) IsReserved(string, string) bool { return false }

func (f *fakeDependencies) IDsOfQueue(_ context.Context, _ db.Querier, _, q string) ([]string, error) {
	if q == f.used && f.moved == "" {
		return []string{"num_1"}, nil
	}
	return nil, nil
}

func (f *fakeDependencies) MoveQueue(_ context.Context, _ db.Querier, _, from, to string) error {
	f.moved = from + " " + to
	return nil
}

func (f *fakeDependencies) UsedBy(context.Context, db.Querier, string, string) ([]string, error) {
	return nil, nil
}

func (f *fakeDependencies) HasPendingRelease(user string) bool { return user == f.leaving }

// presenceObserver passes changes of presence on to queues.
type presenceObserver struct{ queues *queue.Service }

func (o presenceObserver) PresenceChanged(ctx context.Context, tx db.Querier, org string, users []string) error {
	return o.queues.PresenceChanged(ctx, tx, org, users)
}

func (o presenceObserver) AgentsWithdrawn(ctx context.Context, tx db.Querier, org string, users []string) error {
	return o.queues.AgentsWithdrawn(ctx, tx, org, users)
}
