package call_test

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
)

func TestPhoneFilter_PagesMergeBothSides(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		const phone, other = "+12025550142", "+12025550199"
		var newest []string
		for i, pair := range [][2]string{{phone, other}, {other, phone}, {other, other}, {phone, phone}, {other, phone}, {phone, other},
			{phone, other}} {
			at := o.At.Add(time.Duration(i) * time.Minute)
			n := call.New{Org: o.ID, ID: db.NewID("call"), Direction: call.Inbound, Source: "inbound", From: pair[0], To: pair[1],
				StartedAt: at}
			o.Must(o.Calls.Begin(context.Background(), n))
			o.Must(o.Calls.End(context.Background(), call.Ended{New: n, At: at.Add(30 * time.Second),
				Outcome: call.Outcome{Reason: "no_answer"}}))
			if pair[0] == phone || pair[1] == phone {
				newest = append([]string{n.ID}, newest...)
			}
		}
		oldest := slices.Clone(newest)
		slices.Reverse(oldest)
		for path, want := range map[string][]string{"/cdr?sort=-ended_at": newest, "/cdr?sort=ended_at": oldest, "/calls?sort=-started_at": newest} {
			if got := o.listIDs(path + "&limit=2&phone=" + url.QueryEscape(phone)); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", path, got, want)
			}
		}
	})
}

// listIDs reads all pages of a list and returns the ids of its calls.
func (o *testOrg) listIDs(path string) (ids []string) {
	o.T.Helper()
	for cursor := ""; ; {
		a := o.API.Do(optest.Admin(o.ID), "GET", path+cursor, nil)
		if a.Status != 200 {
			o.T.Fatalf("GET %s: %d %s", path+cursor, a.Status, a.Bytes)
		}
		for _, x := range a.Body["data"].([]any) {
			row := x.(map[string]any)
			id, ok := row["call_id"].(string)
			if !ok {
				id = row["id"].(string)
			}
			ids = append(ids, id)
		}
		next, more := a.Body["next_cursor"].(string)
		if !more || len(ids) > 100 {
			return ids
		}
		cursor = "&cursor=" + url.QueryEscape(next)
	}
}
