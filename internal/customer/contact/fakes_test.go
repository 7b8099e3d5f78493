package contact_test

import (
	"context"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// fakes implements the dependencies of the service. Its fields are set before the requests of a test.
type fakes struct {
	sources    []contact.Source
	queue      *call.Named // of all calls
	history    contact.CallHistory
	memoryRead bool     // the last history included the memory
	erased     []string // numbers
	timeline   func(contact.TimelineQuery) []contact.Item
	after      func(limit time.Duration) <-chan time.Time
}

// newFakes returns an organisation without connected systems and calls, whose lookups wait without a limit.
func newFakes() *fakes {
	return &fakes{sources: []contact.Source{{ID: contact.InternalID, Name: contact.InternalName, Provider: "internal"}},
		timeline: func(contact.TimelineQuery) []contact.Item { return nil },
		after:    func(time.Duration) <-chan time.Time { return nil }}
}

func (f *fakes) Sources(context.Context, string) ([]contact.Source, error) { return f.sources, nil }

func (*fakes) Refs(context.Context, db.Querier, string, []string) (map[string][]contact.Ref, error) {
	return nil, nil
}

func (*fakes) CheckContactTargets(context.Context, string, []string) ([]op.Violation, error) {
	return []op.Violation{op.Field("connection_ids", "not_found", "nothing is connected")}, nil
}

func (*fakes) NoteSyncs(context.Context, db.Querier, string, []string) (map[string][]call.NoteSync, error) {
	return nil, nil
}

func (*fakes) CallNumber(context.Context, string, string) (string, error) { return "", db.ErrNone }

func (f *fakes) CallQueue(context.Context, string, string) (*call.Named, error) { return f.queue, nil }

func (f *fakes) CallHistory(_ context.Context, _, _ string, memory bool) (contact.CallHistory, error) {
	f.memoryRead = memory
	return f.history, nil
}

func (f *fakes) EraseNumber(_ context.Context, _ db.Querier, _, number string) error {
	f.erased = append(f.erased, number)
	return nil
}

func (f *fakes) TimelineItems(_ context.Context, _ string, q contact.TimelineQuery) ([]contact.Item, error) {
	return f.timeline(q), nil
}

func (f *fakes) After(limit time.Duration) <-chan time.Time { return f.after(limit) }

// searcher is a connected system.
type searcher func(context.Context, contact.Query) ([]contact.Record, error)

func (s searcher) Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	return s(ctx, q)
}

// mergeRecorder records the last merge.
type mergeRecorder struct{ last string }

func (r *mergeRecorder) ContactMerged(_ context.Context, _ db.Querier, _, from string, into contact.Contact) error {
	r.last = from + " " + into.ID
	return nil
}

// identificationRecorder receives the calls whose contact was found late.
type identificationRecorder chan string

func (r identificationRecorder) CallIdentified(_ context.Context, _, callID string, c event.Contact) error {
	r <- callID + " " + c.Name
	return nil
}
