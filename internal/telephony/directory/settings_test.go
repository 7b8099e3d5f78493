package directory_test

import (
	"context"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/telephony/pbx"
)

// A number's caller_id_name is what the called party is shown with it.
func TestOutbound_CallerIDName(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.readyToCall()
		number := h.number("+493055500001", h.trunk("home", ""), "")
		for called, want := range map[string]string{"+493012345670": "", "+493012345671": "Harbor Dental"} {
			h.do("PATCH", "/numbers/"+number, `{"caller_id_name":"`+want+`"}`).Want(200)
			exit, err := h.RouteOutbound(context.Background(), pbx.Caller{Org: h.org}, called)
			if err != nil || exit.Refused != nil {
				t.Fatal(err, exit.Refused)
			}
			exit.Release()
			if exit.CallerID != "+493055500001" || exit.Name != want {
				t.Errorf("the call shows %s %q, want %q", exit.CallerID, exit.Name, want)
			}
		}
	})
}

// A user's recording_mode applies to the user's own calls, unless the number has one.
func TestRecordingMode_OfTheUser(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		h := newFixture(t, d)
		h.readyToCall()
		way := h.trunk("home", "")
		added := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada","extension":"101"}`).Want(201)
		ada, phone := added.Text("id"), added.Text("sip.username")
		number := h.number("+493055500001", way, `,"user_id":"`+ada+`"`)
		for _, c := range []struct{ user, number, want, called string }{
			{"inherit", "inherit", "", ""}, {"off", "inherit", "off", "off"}, {"on", "off", "on", "off"}, {"inherit", "on", "", "on"},
		} {
			h.do("PATCH", "/users/"+ada, `{"recording_mode":"`+c.user+`"}`).Want(200)
			h.do("PATCH", "/numbers/"+number, `{"recording_mode":"`+c.number+`"}`).Want(200)
			if to, ok, err := h.Extension(ctx, h.org, "101"); err != nil || !ok || to.Recording != c.want {
				t.Errorf("%+v: the extension is %+v, %v", c, to, err)
			}
			if to, ok, err := h.User(ctx, h.org, ada); err != nil || !ok || to.Recording != c.want {
				t.Errorf("%+v: the user is %+v, %v", c, to, err)
			}
			if caller, err := h.Caller(ctx, phone); err != nil || caller.Recorded != (c.want == "on") ||
				caller.Unrecorded != (c.want == "off") {
				t.Errorf("%+v: the caller is %+v, %v", c, caller, err)
			}
			to, ok, err := h.Number(ctx, pbx.TrunkIn{Org: h.org, ID: way, Country: "DE"}, "+493055500001")
			if err != nil || !ok || to.Recording != c.called {
				t.Errorf("%+v: the number is %+v, %v", c, to, err)
			}
		}
	})
}
