package sms_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/redact"
)

const cardNumber, withCard, withoutCard = "4111 1111 1111 1111", "My card is 4111 1111 1111 1111.", "My card is [card]."

// textCarrier keeps the texts that it is asked to send.
type textCarrier struct{ texts chan string }

func (c textCarrier) Send(_ context.Context, o sms.Outgoing) (sms.Result, error) {
	c.texts <- o.Body
	return sms.Result{Status: sms.Sent}, nil
}

func (c textCarrier) QueryStatus(context.Context, sms.Outgoing) (sms.Result, error) {
	return sms.Result{Status: sms.Sent}, nil
}

// newRedactingFixture returns a fixture whose organisation removes card numbers.
func newRedactingFixture(t *testing.T, d *db.DB, messages bool) *fixture {
	k := newFixture(t, d)
	k.fake.redacted = redact.Policy{Kinds: []redact.Kind{redact.Card}, Messages: messages}
	return k
}

// rowsWith returns the number of rows of messages, conversations and events that contain a text.
func (k *fixture) rowsWith(text string) (n int) {
	k.t.Helper()
	const q = `SELECT (SELECT count(*) FROM messages WHERE org_id = $1 AND body LIKE $2) +
		(SELECT count(*) FROM conversations WHERE org_id = $1 AND last_message LIKE $2) +
		(SELECT count(*) FROM events WHERE org_id = $1 AND body LIKE $2) + (SELECT count(*) FROM jobs WHERE org_id = $1 AND args LIKE $2)`
	if err := k.db.Read(context.Background()).QueryRow(context.Background(), q, "org_a", "%"+text+"%").Scan(&n); err != nil {
		k.t.Fatal(err)
	}
	return n
}

func TestRedaction_ReceivedMessage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newRedactingFixture(t, d, true)
		k.receive(mobile, withCard)
		if n := k.rowsWith(cardNumber); n != 0 {
			t.Errorf("%d rows have the number", n)
		}
		if n := k.rowsWith(withoutCard); n != 3 {
			t.Errorf("%d rows have the text without the number, want message, conversation and event", n)
		}
		k.receive(mobile, "Call 202 555 0166 at ten.")
		if n := k.rowsWith("202 555 0166"); n != 3 {
			t.Errorf("%d rows have the telephone number, want 3", n)
		}
	})
}

func TestRedaction_MessagesKept(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newRedactingFixture(t, d, false)
		k.receive(mobile, withCard)
		if n := k.rowsWith(cardNumber); n != 3 {
			t.Errorf("%d rows have the number, want 3", n)
		}
	})
}

// The carrier gets the number. When the message was sent, nothing has it any more.
func TestRedaction_SentMessage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newRedactingFixture(t, d, true)
		carrier := textCarrier{make(chan string, 1)}
		k.fake.carrier, k.fake.outside = "outside", carrier
		id := k.sendMessage(mobile, withCard)
		if n := k.rowsWith(cardNumber); n != 2 {
			t.Errorf("%d rows have the number before it is sent, want message and conversation", n)
		}
		k.startJobs()
		if got := <-carrier.texts; got != withCard {
			t.Errorf("sent %q", got)
		}
		if a := k.waitStatus(id, "sent"); a.Text("body") != withoutCard || a.At("segments") != 1.0 {
			t.Errorf("message %s", a.Bytes)
		}
		if last := k.request("GET", "/sms/conversations", nil).Want(200).Text("data.0.last_message.body"); last != withoutCard {
			t.Errorf("last message of the conversation %q", last)
		}
		if n := k.rowsWith(cardNumber); n != 0 || !strings.Contains(strings.Join(k.eventKinds(withoutCard), " "), "sms.sent") {
			t.Errorf("%d rows have the number; events %v", n, k.eventKinds(id))
		}
	})
}

func TestRedaction_CanceledMessage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newRedactingFixture(t, d, true)
		at := time.Now().Add(time.Hour).Format(time.RFC3339)
		id := k.request("POST", "/sms", map[string]any{"from": own, "to": mobile, "body": withCard, "send_at": at}).Want(201).Text("id")
		k.sendMessage(mobile, "a newer message")
		if a := k.request("GET", "/sms/"+id, nil).Want(200); a.Text("body") != withCard {
			t.Errorf("waiting message %s", a.Bytes)
		}
		if a := k.request("POST", "/sms/"+id+"/cancel", nil).Want(200); a.Text("body") != withoutCard || k.rowsWith(cardNumber) != 0 {
			t.Errorf("canceled message %s, rows %d", a.Bytes, k.rowsWith(cardNumber))
		}
		if last := k.request("GET", "/sms/conversations", nil).Want(200).Text("data.0.last_message.body"); last != "a newer message" {
			t.Errorf("last message of the conversation %q", last)
		}
	})
}
