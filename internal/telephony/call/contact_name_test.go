package call_test

import (
	"context"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/calltest"
)

// TestContact_NamesCaller: the lookup may find the caller after the name was asked for, and before the call is stored. The contact's name
// is then the caller's name of an inbound call, unless the caller sent one.
//
// https://github.com/HenriDellal/emerald-dialer/issues/96
// https://github.com/ringcentral/ringcentral-embeddable/issues/77
func TestContact_NamesCaller(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := &testOrg{calltest.NewWith(t, d, func(c *call.Config) { c.Contacts = parts{} })}
		for _, x := range []struct {
			what      string
			direction call.Direction
			sent      string
			want      any
		}{
			{"inbound without a name", call.Inbound, "", "Grace"},
			{"inbound with a name", call.Inbound, "Reception", "Reception"},
			{"outbound", call.Outbound, "", nil},
		} {
			n := call.New{Org: o.ID, ID: db.NewID("call"), Direction: x.direction, From: "+12025550142", FromName: x.sent, To: "+12025550143", StartedAt: o.At}
			later := n
			later.ID = db.NewID("call")
			o.Must(o.Calls.Begin(context.Background(), n))
			begun := make(chan error, 1)
			o.Calls.BeginAsync(context.Background(), later, func(err error) { begun <- err })
			o.Must(<-begun)
			for _, id := range []string{n.ID, later.ID} {
				r := o.Do("GET", "/calls/"+id, nil).Want(200)
				if r.At("from_name") != x.want || r.At("contact.name") != "Grace" {
					t.Errorf("%s: from %v, contact %v", x.what, r.At("from_name"), r.At("contact.name"))
				}
			}
		}
	})
}
