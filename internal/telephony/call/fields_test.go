package call_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/calltest"
	"soniq/internal/telephony/call/disposition"
)

// parts stands for the packages that add queues, transcripts and contacts to calls.
type parts struct{}

func (parts) QueueWaits(_ context.Context, _ db.Querier, _ string, calls []string) (map[string]call.QueueWait, error) {
	found := map[string]call.QueueWait{}
	for _, id := range calls {
		found[id] = call.QueueWait{Seconds: 7, Entry: &event.QueueEntry{ID: "qen_1", CallID: id}}
	}
	return found, nil
}

func (parts) OfferedAgents(_ context.Context, _ db.Querier, _ string, calls []string) (map[string][]call.OfferedAgent, error) {
	found := map[string][]call.OfferedAgent{}
	for _, id := range calls {
		found[id] = []call.OfferedAgent{{AgentID: "usr_1", OfferedAt: db.At(time.Now()), RingSeconds: 3, Result: "answered", WrapUp: 5}}
	}
	return found, nil
}

func (parts) QueueNames(context.Context, db.Querier, string, []string) (map[string]string, error) {
	return map[string]string{"que_1": "Sales"}, nil
}

func (parts) Outcomes(context.Context, db.Querier, string, string) ([]disposition.Outcome, error) {
	return nil, nil
}

func (parts) Summary(context.Context, string, string) (any, error)    { return "a summary", nil }
func (parts) Transcript(context.Context, string, string) (any, error) { return "the words", nil }

func (parts) LookupContact(context.Context, string, string) *event.Contact {
	return &event.Contact{ID: "con_1", Name: "Grace"}
}

func (parts) NoteSyncs(context.Context, db.Querier, string, []string) (map[string][]call.NoteSync, error) {
	return nil, nil
}

// TestFields_AllWritten reads calls and records at several moments of their lives, and expects a value in every published member at least
// once. The members are those of the types from which the description of the API is made.
func TestFields_AllWritten(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		withParts := func(c *call.Config) { c.Queues, c.Transcripts, c.Contacts = parts{}, parts{}, parts{} }
		o := &testOrg{calltest.NewWith(t, d, withParts, func(*calltest.Org) []op.Operation {
			return disposition.New(disposition.Config{DB: d, Queues: parts{}}).Operations()
		})}
		calls, records := map[string]bool{}, map[string]bool{}
		see := func(id string) {
			t.Helper()
			all := o.Do("GET", "/calls/"+id+"?expand=legs,notes,summary,transcript", nil).Want(200)
			filled("", all.Body, calls)
			if all.At("ended_at") != nil {
				filled("", o.Do("GET", "/cdr/"+id, nil).Want(200).Body, records)
			}
		}
		o.answeredCall(see)
		o.missedCall(see)
		for _, x := range []struct {
			of   any
			seen map[string]bool
		}{{call.Call{}, calls}, {call.CDR{}, records}} {
			kind := reflect.TypeOf(x.of)
			for _, name := range members("", kind) {
				if !x.seen[name] {
					t.Errorf("nothing writes %s of %s", name, kind)
				}
			}
		}
	})
}

// answeredCall writes an inbound call with everything that a call can have.
func (o *testOrg) answeredCall(see func(id string)) {
	ctx, at := context.Background(), o.At.Add(5*time.Second)
	n := call.New{Org: o.ID, ID: db.NewID("call"), Direction: call.Inbound, Source: "inbound", From: "+12025550142", FromName: "Grace",
		To: "+12025550143", NumberID: "num_1", DeviceID: "dev_1", TrunkID: "trk_1", UserID: "usr_1", Sandbox: true, StartedAt: o.At,
		CallerLeg: db.NewID("leg"), CallerSIP: "sip-1", Metadata: map[string]string{"order": "7"}, Reference: "ref-1", Purpose: "An order"}
	o.Must(o.Calls.Begin(ctx, n))
	o.Must(o.DB.Tx(ctx, func(tx db.Querier) error {
		o.Must(o.Calls.EnterFlow(ctx, tx, o.ID, n.ID, "flw_1", 3))
		o.Must(o.Calls.EnterQueue(ctx, tx, o.ID, n.ID, "que_1"))
		o.Must(o.Calls.SetQueueSeconds(ctx, tx, o.ID, n.ID, 7))
		return o.Calls.SetVoicemail(ctx, tx, o.ID, n.ID, "vml_1")
	}))
	see(n.ID)
	reason, status, target, machine := "busy", 486, "leg_1", true
	row := call.State{Status: call.OnHold, Stage: "agent", RingingAt: o.At.Add(time.Second), AnsweredAt: at, Ring: 5 * time.Second,
		HeldSince: at.Add(time.Second), Hold: 2 * time.Second, Muted: true, AnsweredBy: "agent", TransferredTo: "ext:102",
		Agent: call.Party{UserID: "usr_1", Name: "Dana", Extension: "100"}, Machine: &machine, Recording: "recording", RecordingID: "rec_1",
		Consent: "announced", Transfer: &call.TransferState{Mode: "warm", To: "ext:102", TargetLegID: &target, Status: "failed",
			StartedAt: at, FinishedAt: &at, FailureReason: &reason, SIPStatus: &status}}
	legs := []call.LegState{
		{ID: n.CallerLeg, Role: "caller", TrunkID: "trk_1", Number: n.From, Status: "held", Codec: "PCMU", SRTP: true, HeldBy: "peer",
			SIPCallID: "sip-1", StartedAt: o.At, AnsweredAt: at},
		{ID: db.NewID("leg"), Role: "agent", UserID: "usr_1", DeviceID: "dev_1", Number: "100", Status: "failed", SIPCallID: "sip-2",
			StartedAt: o.At, EndedAt: at, EndReason: "busy", SIPStatus: 486}}
	o.Must(o.Calls.Change(ctx, call.Change{Org: o.ID, ID: n.ID, Revision: 1, At: at, Row: row, Legs: legs,
		Recordings: []call.RecordingChange{{ID: "rec_1", Status: "recording", New: &call.NewRecording{ID: "rec_1",
			Name: call.BlobName(o.ID, n.ID, o.At), Consent: "announced", Trigger: "api", SampleRate: 16000}}}}))
	o.Do("POST", "/calls/"+n.ID+"/tag", `{"tag":"vip"}`).Want(200)
	o.Do("PUT", "/calls/"+n.ID+"/disposition", `{"code":"sale"}`).Want(200)
	see(n.ID)
	o.Must(o.Calls.End(ctx, call.Ended{New: n, At: at.Add(time.Minute), RingingAt: row.RingingAt, AnsweredAt: at, Hold: 4 * time.Second,
		Revision: 1, State: row, Legs: legs, Recording: "rec_1", Quality: &event.Quality{MOS: 4.2},
		Outcome: call.Outcome{Reason: "caller_hangup", HangupBy: "caller", SIPStatus: 200, Q850: 16}}))
	done := func(context.Context, db.Querier, string, string, bool) error { return nil }
	o.Must(o.Recordings.Recorded(ctx, o.ID, n.ID, "rec_1", call.Audio{Duration: time.Minute, Size: 100, SHA256: "ab", SampleRate: 8000,
		Channels: 2}, done))
	o.Must(o.DB.Tx(ctx, func(tx db.Querier) error {
		return o.Calls.SetSummary(ctx, tx, o.ID, n.ID, "trn_1", "a summary", "neutral")
	}))
	see(n.ID)
}

// missedCall writes a call that nobody answers.
func (o *testOrg) missedCall(see func(id string)) {
	n := o.Begin(call.Inbound)
	o.Must(o.Calls.End(context.Background(), call.Ended{New: n, At: o.At.Add(20 * time.Second),
		Outcome: call.Outcome{Reason: "no_answer", HangupBy: "system", SIPStatus: 480}}))
	see(n.ID)
}

// filled adds the paths of the members that have a value.
func filled(path string, v any, seen map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			filled(strings.TrimPrefix(path+"."+name, "."), x, seen)
		}
		seen[path] = seen[path] || len(v) > 0
	case []any:
		for _, x := range v {
			filled(path, x, seen)
		}
		seen[path] = seen[path] || len(v) > 0
	case nil:
	default:
		seen[path] = seen[path] || !reflect.ValueOf(v).IsZero()
	}
}

// members returns the paths of the members of a type in package call, and of the types of the package in it. Notes have a test of their
// own.
func members(path string, t reflect.Type) (all []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		all = append(all, at)
		inner := f.Type
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice}, inner.Kind()) {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() == reflect.TypeFor[call.Call]().PkgPath() &&
			inner != reflect.TypeFor[call.Note]() {
			all = append(all, members(at, inner)...)
		}
	}
	return all
}
