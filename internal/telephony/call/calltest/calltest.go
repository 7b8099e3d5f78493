// Package calltest has an organisation with a call service and a simulated switch, for the tests of package call and of the packages inside
// it.
package calltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/cdr"
	"soniq/internal/telephony/call/recording"
)

// Org is an organisation with the services of calls, recordings and call detail records on one database. They share the clock Calls.Now.
type Org struct {
	T          *testing.T
	DB         *db.DB
	Calls      *call.Service
	Recordings *recording.Service
	CDRs       *cdr.Service
	API        *optest.Server
	ID         string
	Files      *blob.Dir
	Jobs       *job.Queue
	At         time.Time // an hour ago

	// Clock is the clock of all services. Destinations are those of Calls. A test may replace both before its first request.
	Clock        clock.Clock
	Destinations call.Destinations

	calls      call.Config
	recordings recording.Config
	cdrs       cdr.Config
}

// Node is the id of the node on which the services run.
const Node = "node_a"

// New creates an organisation. Each of more builds a service on its calls, and returns the operations that the API has too.
func New(t *testing.T, d *db.DB, more ...func(*Org) []op.Operation) *Org {
	t.Helper()
	return NewWith(t, d, nil, more...)
}

// NewWith creates an organisation as New does. The function changes the configuration of its calls; nil: no change.
func NewWith(t *testing.T, d *db.DB, change func(*call.Config), more ...func(*Org) []op.Operation) *Org {
	t.Helper()
	b := bus.New()
	made, err := org.New(d, b, time.Now).Create(context.Background(), "Test", "US")
	if err != nil {
		t.Fatal(err)
	}
	files, err := blob.OpenDir(t.TempDir(), blob.Alone{})
	if err != nil {
		t.Fatal(err)
	}
	o := &Org{T: t, DB: d, ID: made.ID, Files: files, Jobs: &job.Queue{Bus: b}, At: time.Now().Add(-time.Hour).Truncate(time.Second),
		Clock: clock.OrSystem(nil), Destinations: Destinations{Parse: func(string) (string, error) {
			return "", op.Fail("destination_not_allowed", "nothing can be dialled here")
		}}}
	now := clock.Func(func() time.Time { return o.Clock.Now() })
	outbox := &event.Outbox{DB: d, Bus: b}
	o.calls = call.Config{DB: d, Outbox: outbox, Jobs: o.Jobs, Node: Node, Links: call.Links{BaseURL: "https://soniq.example"}, Clock: now,
		Destinations: currentDestinations{o}}
	if change != nil {
		change(&o.calls)
	}
	s := call.NewService(o.calls)
	links := call.Links{BaseURL: "https://soniq.example", Key: []byte("key"), Clock: now}
	o.recordings = recording.Config{DB: d, Outbox: outbox, Jobs: o.Jobs, Files: files, Calls: s, Node: Node, Links: links, Clock: now}
	o.cdrs = cdr.Config{DB: d, Jobs: o.Jobs, Files: files, Records: s, Links: links, Clock: now}
	o.Calls, o.Recordings, o.CDRs = s, recording.New(o.recordings), cdr.New(o.cdrs)
	s.Observe(o.Recordings)
	operations := slices.Concat(s.Operations(), s.TagOperations(), o.Recordings.Operations(), o.CDRs.Operations())
	for _, f := range more {
		operations = append(operations, f(o)...)
	}
	o.API = optest.New(t, d, operations...)
	return o
}

// RestartCalls replaces Calls by another service on the same database, as a process does that starts again. The API continues with the
// first service. The function changes the configuration.
func (o *Org) RestartCalls(change func(*call.Config)) {
	change(&o.calls)
	o.Calls = call.NewService(o.calls)
	o.Calls.Observe(o.Recordings)
}

// StoreRecordings replaces Recordings by a service whose files are f. The API continues with the first service.
func (o *Org) StoreRecordings(f recording.Files) {
	o.recordings.Files = f
	o.Recordings = recording.New(o.recordings)
}

// StoreExports replaces CDRs by a service whose files are f. The API continues with the first service.
func (o *Org) StoreExports(f call.Files) {
	o.cdrs.Files = f
	o.CDRs = cdr.New(o.cdrs)
}

// Must fails the test if err is not nil.
func (o *Org) Must(err error) {
	o.T.Helper()
	if err != nil {
		o.T.Fatal(err)
	}
}

// Begin stores a call that rings.
func (o *Org) Begin(d call.Direction) call.New {
	o.T.Helper()
	n := call.New{Org: o.ID, ID: db.NewID("call"), Direction: d, Source: "device", From: "+12025550142", To: "100", StartedAt: o.At,
		CallerSIP: "sip-1"}
	o.Must(o.Calls.Begin(context.Background(), n))
	return n
}

// Answer stores that an agent answered after four seconds.
func (o *Org) Answer(n call.New, recorded bool) call.Answer {
	o.T.Helper()
	a := call.Answer{Org: o.ID, ID: n.ID, At: o.At.Add(4 * time.Second), Ring: 4 * time.Second, Codec: "PCMU",
		By: call.Party{Role: "agent", UserID: "usr_1", Name: "Dana", Extension: "100", Number: "100", SIPCallID: "sip-2"}}
	if recorded {
		a.Recording = &call.NewRecording{ID: db.NewID("rec"), Name: call.BlobName(o.ID, n.ID, o.At), Consent: "not_required",
			Trigger: "policy"}
	}
	o.Must(o.Calls.Answered(context.Background(), n, a))
	return a
}

// InsertEndedCalls inserts n calls that have ended.
func (o *Org) InsertEndedCalls(n int) {
	o.T.Helper()
	for i := range n {
		c := call.New{Org: o.ID, ID: db.NewID("call"), Direction: call.Inbound, Source: "inbound", From: fmt.Sprintf("+1202555%04d", i),
			FromName: "=1+1", To: "+12025550143", StartedAt: o.At, CallerSIP: db.NewID("sip")}
		o.Must(o.Calls.Begin(context.Background(), c))
		o.Must(o.Calls.End(context.Background(), call.Ended{New: c, At: o.At.Add(time.Duration(i) * time.Second),
			Outcome: call.Outcome{Reason: "caller_hangup"}}))
	}
}

// Events returns the kinds in the outbox in order, each with its audience unless that is "all".
func (o *Org) Events() string {
	o.T.Helper()
	rows, err := o.DB.Read(context.Background()).Query(context.Background(),
		`SELECT kind, audience FROM events WHERE org_id = $1 ORDER BY id`, o.ID)
	o.Must(err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var kind, audience string
		o.Must(rows.Scan(&kind, &audience))
		if audience != "all" {
			kind += ":" + audience
		}
		all = append(all, kind)
	}
	return strings.Join(all, " ")
}

// Get returns a call with its legs, as the API shows it.
func (o *Org) Get(id string) map[string]any {
	o.T.Helper()
	return o.Do("GET", "/calls/"+id+"?expand=legs", nil).Want(200).Body
}

// Do sends a request with all rights of the organisation.
func (o *Org) Do(method, path string, body any, header ...string) *optest.Answer {
	o.T.Helper()
	return o.API.Do(optest.Admin(o.ID), method, path, body, header...)
}

// Exec runs a statement. Its first argument is the organisation.
func (o *Org) Exec(q string, args ...any) {
	o.T.Helper()
	o.Must(o.DB.Tx(context.Background(), func(tx db.Querier) error {
		_, err := tx.Exec(context.Background(), q, append([]any{o.ID}, args...)...)
		return err
	}))
}

// Want checks a member of an answer.
func Want(t *testing.T, of map[string]any, name string, value any) {
	t.Helper()
	if of[name] != value {
		t.Errorf("%s: got %v, want %v", name, of[name], value)
	}
}

// Switch records the commands and placements it gets.
type Switch struct {
	Calls *call.Service

	mu         sync.Mutex // guards Commands and Placements
	Commands   []call.Command
	Placements []call.Placement

	Reply  func(id string, c call.Command) (call.Result, error) // nil: an empty result
	Stored call.Timeline
}

// Place stores the call.
func (x *Switch) Place(ctx context.Context, p call.Placement) error {
	x.mu.Lock()
	x.Placements = append(x.Placements, p)
	x.mu.Unlock()
	return x.Calls.Begin(ctx, call.New{Org: p.Org, ID: p.ID, Direction: call.Outbound, Source: p.Source, From: p.From, To: p.To,
		UserID: p.UserID, StartedAt: time.Now(), Status: call.Queued, Metadata: p.Metadata, Reference: p.Reference, Purpose: p.Reason,
		By: p.By})
}

// Do returns the result of Reply.
func (x *Switch) Do(_ context.Context, _, id string, c call.Command) (call.Result, error) {
	x.mu.Lock()
	x.Commands = append(x.Commands, c)
	x.mu.Unlock()
	if x.Reply == nil {
		return call.Result{}, nil
	}
	return x.Reply(id, c)
}

// Timeline returns Stored.
func (x *Switch) Timeline(string, string) (call.Timeline, bool) {
	return x.Stored, len(x.Stored.Steps) > 0
}

// LastCommand returns the latest command.
func (x *Switch) LastCommand() call.Command {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.Commands[len(x.Commands)-1]
}

// AddSwitch gives the organisation a switch, and destinations: +… and ext:…, not 911.
func (o *Org) AddSwitch() *Switch {
	o.T.Helper()
	x := &Switch{Calls: o.Calls}
	o.Calls.Switch = x
	o.Destinations = Destinations{Parse: func(to string) (string, error) {
		switch {
		case to == "911":
			return "", op.Fail("destination_not_allowed", "a person has to")
		case strings.HasPrefix(to, "+") || strings.HasPrefix(to, "ext:"):
			return to, nil
		}
		return "", op.Invalid(op.Field("to", "invalid_e164", "not a valid number"))
	}}
	return x
}

// currentDestinations implements call.Destinations by the Destinations that the organisation has at that time.
type currentDestinations struct{ o *Org }

func (c currentDestinations) ParseDestination(ctx context.Context, org, to string) (string, error) {
	return c.o.Destinations.ParseDestination(ctx, org, to)
}

func (c currentDestinations) ParseNumber(ctx context.Context, org, text string) (string, bool, error) {
	return c.o.Destinations.ParseNumber(ctx, org, text)
}

func (c currentDestinations) CheckTarget(ctx context.Context, org, to string) (string, error) {
	return c.o.Destinations.CheckTarget(ctx, org, to)
}

// Destinations parses destinations with a function. Numbers are taken as they are. Script targets exist if Targets is true.
type Destinations struct {
	Parse   func(to string) (string, error)
	Targets bool
}

// ParseDestination implements call.Destinations.
func (f Destinations) ParseDestination(_ context.Context, _, to string) (string, error) {
	return f.Parse(to)
}

// ParseNumber implements call.Destinations.
func (Destinations) ParseNumber(_ context.Context, _, text string) (string, bool, error) {
	return text, true, nil
}

// CheckTarget implements call.Destinations.
func (f Destinations) CheckTarget(context.Context, string, string) (string, error) {
	if f.Targets {
		return "", nil
	}
	return "there is none", nil
}
