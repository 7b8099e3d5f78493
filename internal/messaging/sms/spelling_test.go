package sms_test

import (
	"context"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// spellings are pairs of spellings of one telephone: as a message comes from it, and the other one.
var spellings = map[string][2]string{"MX": {"+5215512345678", "+525512345678"}, "AR": {"+5491123456789", "+541123456789"}, "BR": {"+551187654321", "+5511987654321"}}

func (k *fixture) receive(from, body string) {
	k.t.Helper()
	k.request("POST", "/sandbox/sms/inbound", map[string]any{"from": from, "to": own, "body": body}).Want(201)
}

// STOP from one spelling stops messages to the other one, and START allows them again.
// https://github.com/chatwoot/chatwoot/issues/14174
func TestOptOut_SpellingsOfOneTelephone(t *testing.T) {
	t.Parallel()
	for country, n := range spellings {
		t.Run(country, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				k := newFixture(t, d)
				k.receive(n[0], "STOP")
				for _, to := range n {
					k.request("POST", "/sms", map[string]any{"from": own, "to": to, "body": "x"}).Want(422).Refused("opted_out")
				}
				k.request("POST", "/sms/opt-outs", map[string]any{"phone": n[1], "number_id": "num_1"}).Want(409).Refused("already_exists")
				k.receive(n[1], "START")
				k.sendMessage(n[0], "welcome back")
			})
		})
	}
}

// An opt-out from before both spellings were one telephone stays in force, and is removed by either.
func TestOptOut_StoredBefore(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		for _, n := range spellings {
			for i, stored := range n {
				asked := n[1-i]
				k.exec(`INSERT INTO opt_outs (org_id, digest, number_id, id, source, created_at) VALUES ('org_a', $1, '', $2, 'api', 1)`,
					k.fake.Digest("opt-out org_a "+stored), "opt_"+stored)
				k.request("POST", "/sms", map[string]any{"from": own, "to": asked, "body": "x"}).Want(422).Refused("opted_out")
				k.request("POST", "/sms/opt-outs", map[string]any{"phone": asked}).Want(409)
				k.request("DELETE", "/sms/opt-outs/"+asked, nil).Want(204)
				k.request("DELETE", "/sms/opt-outs/"+stored, nil).Want(404)
			}
		}
	})
}

// Both spellings stand in one conversation, and an answer goes to the number that the last message came from.
func TestConversation_SpellingsOfOneTelephone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		n := spellings["MX"]
		k.sendMessage(n[1], "first")
		k.receive(n[0], "second")
		k.sendMessage(n[1], "third")
		all := k.request("GET", "/sms/conversations", nil).Want(200)
		if len(all.At("data").([]any)) != 1 || all.Text("data.0.peer_number") != n[0] || all.Text("data.0.last_message.body") != "third" {
			t.Fatalf("conversations: %s", all.Bytes)
		}
		for _, query := range []string{"to_number=" + strings.Replace(n[0], "+", "%2B", 1), "to_number=" + strings.Replace(n[1], "+", "%2B", 1)} {
			if a := k.request("GET", "/sms?"+query, nil).Want(200); len(a.At("data").([]any)) != 2 {
				t.Errorf("%s: %s", query, a.Bytes)
			}
		}
		k.receive(n[1], "fourth")
		if a := k.request("GET", "/sms/conversations", nil).Want(200); a.Text("data.0.peer_number") != n[1] || a.At("data.0.unread_count") != 2.0 {
			t.Errorf("conversation: %s", a.Bytes)
		}
	})
}

// Two conversations from before become one with the next message, with all messages.
func TestConversation_StoredBeforeMerged(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		n := spellings["BR"]
		k.receive(n[0], "one")
		k.receive(mobile, "two")
		k.exec(`UPDATE conversations SET peer_number = $1 WHERE peer_number = $2`, n[1], mobile)
		k.exec(`UPDATE messages SET from_number = $1 WHERE from_number = $2`, n[1], mobile)
		k.receive(n[0], "three")
		all := k.request("GET", "/sms/conversations", nil).Want(200)
		if len(all.At("data").([]any)) != 1 || all.Text("data.0.peer_number") != n[0] || all.At("data.0.unread_count") != 3.0 {
			t.Fatalf("conversations: %s", all.Bytes)
		}
		thread := k.request("GET", "/sms/conversations/"+all.Text("data.0.id")+"/messages", nil).Want(200)
		if len(thread.At("data").([]any)) != 3 {
			t.Errorf("messages: %s", thread.Bytes)
		}
		ctx := context.Background()
		for _, phone := range n { // as an erasure does with each spelling
			for left := 1; left > 0; {
				if err := d.Tx(ctx, func(tx db.Querier) (err error) {
					left, err = k.EraseForNumber(ctx, tx, "org_a", phone)
					return err
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if a := k.request("GET", "/sms", nil).Want(200); len(a.At("data").([]any)) != 0 {
			t.Errorf("left: %s", a.Bytes)
		}
	})
}
