package call_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/calltest"
)

// A write that is repeated because its result was lost changes nothing and publishes no event.
func TestEnd_RepeatedWriteChangesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		n := o.Begin(call.Internal)
		a := o.Answer(n, true)
		ended := call.Ended{New: n, Outcome: call.Outcome{Reason: "caller_hangup", HangupBy: "caller"}, At: a.At.Add(time.Minute),
			AnsweredAt: a.At, Recording: a.Recording.ID}
		o.Must(o.Calls.End(context.Background(), ended))
		told, record := o.Events(), o.Get(n.ID)
		o.Must(o.Calls.Answered(context.Background(), n, a))
		ended.At, ended.Outcome = ended.At.Add(time.Hour), call.Outcome{Reason: "node_crash", HangupBy: "system"}
		o.Must(o.Calls.End(context.Background(), ended))
		if again := o.Events(); again != told {
			t.Errorf("events %s, before %s", again, told)
		}
		after := o.Get(n.ID)
		for _, name := range []string{"status", "end_reason", "ended_at", "talk_duration_seconds"} {
			calltest.Want(t, after, name, record[name])
		}
		if legs := after["legs"].([]any); len(legs) != 2 {
			t.Errorf("%d legs, want 2", len(legs))
		}
	})
}

// The signed address of audio is valid for five minutes of the server's clock, whatever date that clock shows.
func TestSignedURL_ExpiresByServerClock(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, start := range []time.Time{time.Now(), time.Date(1971, 1, 1, 0, 0, 0, 0, time.UTC),
			time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)} {
			o := newTestOrg(t, d)
			now := start
			o.Clock = clock.Func(func() time.Time { return now })
			n := o.Begin(call.Internal)
			a := o.Answer(n, true)
			path, err := o.Files.Path(a.Recording.Name)
			o.Must(err)
			o.Must(os.MkdirAll(filepath.Dir(path), 0o700))
			o.Must(os.WriteFile(path, make([]byte, 100), 0o600))
			o.Must(o.Recordings.Recorded(context.Background(), o.ID, n.ID, a.Recording.ID,
				call.Audio{Size: 100, SHA256: "x", SampleRate: 8000, Channels: 2},
				func(context.Context, db.Querier, string, string, bool) error { return nil }))
			address, err := url.Parse(o.API.Do(optest.Admin(o.ID), "GET", "/recordings/"+a.Recording.ID, nil).Text("url"))
			o.Must(err)
			for _, c := range []struct {
				after  time.Duration
				status int
			}{{0, 200}, {5*time.Minute - time.Second, 200}, {5*time.Minute + 2*time.Second, 401}, {24 * time.Hour, 401},
				{-time.Hour, 200}} {
				now = start.Add(c.after)
				r := o.API.Do(optest.Admin(db.NewID("org")), "GET", "/recordings/"+a.Recording.ID+"/audio?"+address.RawQuery, nil)
				if r.Status != c.status {
					t.Errorf("clock at %s, %s after it was made: %d, want %d", start.Format(time.DateOnly), c.after, r.Status, c.status)
				}
			}
		}
	})
}
