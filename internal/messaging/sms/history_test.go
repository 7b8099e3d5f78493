package sms_test

import (
	"context"
	"fmt"
	"testing"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

func TestMessages_HaveContact(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		k.fake.contacts = map[string]*event.Contact{mobile: {ID: "con_1", Name: "Ada", Company: "Analytical", Source: "Contacts"}}
		k.fake.numbers = map[string][]string{"con_1": {mobile, "+12025550198"}}
		sent := k.sendMessage(mobile, "out")
		in, err := k.Receive(context.Background(), sms.Incoming{Org: "org_a", From: mobile, To: own, Body: "in"})
		if err != nil || in.Contact == nil || in.Contact.Name != "Ada" {
			t.Fatalf("received %+v, %v", in.Contact, err)
		}
		k.sendMessage("+12025550177", "to a stranger")
		for path, at := range map[string]string{"/sms/" + sent: "contact", "/sms/" + in.ID: "contact", "/sms?contact_id=con_1": "data.1.contact",
			"/sms/conversations/" + in.ConversationID: "contact", "/sms/conversations/" + in.ConversationID + "/messages": "data.0.contact"} {
			if a := k.request("GET", path, nil).Want(200); a.Text(at+".id") != "con_1" || a.Text(at+".company") != "Analytical" {
				t.Errorf("%s: %s", path, a.Bytes)
			}
		}
		if a := k.request("GET", "/sms?contact_id=con_1&include_total=true", nil).Want(200); a.At("total") != 2.0 {
			t.Errorf("of the contact: %s", a.Bytes)
		}
		if a := k.request("GET", "/sms?contact_id=con_none&include_total=true", nil).Want(200); a.At("total") != 0.0 {
			t.Errorf("of nobody: %s", a.Bytes)
		}
		if got := k.eventKinds(`"contact":{"id":"con_1","name":"Ada","company":"Analytical","source":"Contacts"}`); fmt.Sprint(got) != "[sms.received]" {
			t.Errorf("told with a contact: %v", got)
		}
	})
}

func TestHistory_OrderAcrossDirections(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		var want []string
		for i := range 6 {
			if i%2 == 0 {
				want = append([]string{k.sendMessage(mobile, "out")}, want...)
				continue
			}
			m, err := k.Receive(context.Background(), sms.Incoming{Org: "org_a", From: mobile, To: own, Body: "in"})
			if err != nil {
				t.Fatal(err)
			}
			want = append([]string{m.ID}, want...)
		}
		k.exec(`UPDATE messages SET created_at = $2 WHERE org_id = $1`, "org_a", 1700000000000000) // all at the same time: the ids determine the order
		h := sms.History{Numbers: []string{mobile, "+12025550177"}, Limit: 2}
		var got []string
		for {
			page, err := k.History(context.Background(), "org_a", h)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page[:min(len(page), 2)] {
				got = append(got, m.ID)
				h.Before, h.BeforeID = m.CreatedAt, m.ID
			}
			if len(page) <= 2 {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
		if all, err := k.History(context.Background(), "org_b", sms.History{Numbers: []string{mobile}, Limit: 9}); err != nil ||
			len(all) != 0 {
			t.Errorf("another organisation: %v, %v", all, err)
		}
	})
}
