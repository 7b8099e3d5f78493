package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"soniq/internal/config"
	"soniq/internal/customer/contact"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/voicemail"
)

const known = "+442079460018" // of the contact in these tests

// testPlatform is a platform without listeners, with one organisation.
type testPlatform struct {
	*Platform
	t      *testing.T
	server *optest.Server
	org    string
}

func eachHouse(t *testing.T, run func(t *testing.T, h *testPlatform)) {
	t.Run("sqlite", func(t *testing.T) {
		dbtest.SkipOnPostgres(t)
		run(t, newWhole(t, ""))
	})
	if address := os.Getenv("SONIQ_TEST_POSTGRES"); address != "" {
		t.Run("postgres", func(t *testing.T) { run(t, newWhole(t, dbtest.Postgres(t, address))) })
	}
}

func newWhole(t *testing.T, address string) *testPlatform {
	t.Helper()
	args := []string{"--data", t.TempDir(), "--transcriber", "off", "--sip-domain", "here"}
	if address != "" {
		args = append(args, "--db", address)
	}
	c, err := config.Parse(args...)
	if err != nil {
		t.Fatal(err)
	}
	h := &testPlatform{t: t}
	if h.Platform, err = Open(context.Background(), c, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	o, err := h.orgs.Create(context.Background(), "Acme", "GB")
	if err != nil {
		t.Fatal(err)
	}
	h.org, h.server = o.ID, optest.New(t, h.db, h.operations()...)
	return h
}

func (h *testPlatform) do(method, path string, body any, header ...string) *optest.Answer {
	h.t.Helper()
	return h.server.Do(optest.Admin(h.org), method, path, body, header...)
}

// addCall stores an inbound call of the contact to a number.
func (h *testPlatform) addCall(at time.Time, number string) string {
	h.t.Helper()
	n := call.New{Org: h.org, ID: db.NewID("call"), Direction: call.Inbound, Source: "inbound", From: known, To: "+442079460050", NumberID: number,
		StartedAt: at, CallerSIP: db.NewID("sip")}
	if err := h.calls.Begin(context.Background(), n); err != nil {
		h.t.Fatal(err)
	}
	return n.ID
}

// addDay stores a call, a voicemail message and a text message for each hour, all three at the same time. It returns
// the expected timeline.
func (h *testPlatform) addDay(hours int) (want []string) {
	h.t.Helper()
	ctx, base := context.Background(), time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	for i := range hours {
		at := base.Add(time.Duration(i) * time.Hour)
		c := h.addCall(at, "")
		v := voicemail.Message{Org: h.org, ID: db.NewID("vm"), CallID: c, Mailbox: "que_1", From: known, ReceivedAt: at, Duration: time.Second, Size: 1, SHA256: "x"}
		m, err := h.messages.Receive(ctx, sms.Incoming{Org: h.org, From: known, To: "+442079460050", Body: fmt.Sprintf("words %d", i),
			Internal: true})
		if err != nil {
			h.t.Fatal(err)
		}
		err = h.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
			if _, err := tx.Exec(ctx, `UPDATE messages SET created_at = $1 WHERE org_id = $2 AND id = $3`, db.At(at), h.org, m.ID); err != nil {
				return err
			}
			_, err := h.voicemail.Receive(ctx, tx, v)
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
		want = append([]string{"voicemail " + v.ID, "message " + m.ID, "call " + c}, want...)
	}
	return want
}

func TestContactTimeline_OneOrderAcrossKinds(t *testing.T) {
	t.Parallel()
	eachHouse(t, func(t *testing.T, h *testPlatform) {
		id := h.do("POST", "/contacts", `{"first_name":"Ada","company":"Analytical","phones":[{"number":"`+known+`"}]}`).Want(201).Text("id")
		want := h.addDay(4)
		var got []string
		for cursor := ""; ; {
			a := h.do("GET", "/contacts/"+id+"/timeline?limit=5"+cursor, nil).Want(200)
			for i := range len(a.At("data").([]any)) {
				got = append(got, a.Text(fmt.Sprintf("data.%d.kind", i))+" "+a.Text(fmt.Sprintf("data.%d.id", i)))
			}
			if a.At("has_more") != true {
				break
			}
			cursor = "&cursor=" + a.Text("next_cursor")
			h.addCall(time.Date(2026, 1, 6, 0, 0, 0, 0, time.UTC), "") // a new call does not move the next pages
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		a := h.do("GET", "/contacts/"+id+"/timeline?kinds=message,voicemail&limit=2", nil).Want(200)
		if a.Text("data.1.text") != "words 3" || a.Text("data.1.direction") != "inbound" || !strings.HasPrefix(a.Text("data.1.conversation_id"), "thr_") ||
			a.Text("data.1.phone") != known || !strings.Contains(a.Text("data.0.recording_url"), "/voicemail/vm_") || a.Text("data.0.status") != "new" {
			t.Errorf("message and voicemail: %s", a.Bytes)
		}
		p := optest.Admin(h.org)
		p.Scopes = []access.Scope{access.ContactsRead, access.CallsRead}
		if a := h.server.Do(p, "GET", "/contacts/"+id+"/timeline?kinds=message", nil).Want(200); a.At("data.0.text") != nil || a.At("data.3.text") != nil {
			t.Errorf("words without sms:read: %s", a.Bytes)
		}
		if a := h.do("GET", "/sms?contact_id="+id+"&include_total=true", nil).Want(200); a.At("total") != 4.0 || a.Text("data.0.contact.company") != "Analytical" {
			t.Errorf("messages of the contact: %s", a.Bytes)
		}
		if a := h.do("GET", "/sms/conversations", nil).Want(200); a.Text("data.0.contact.id") != id {
			t.Errorf("conversations: %s", a.Bytes)
		}
	})
}

func TestScreenPop_HasQueue(t *testing.T) {
	t.Parallel()
	eachHouse(t, func(t *testing.T, h *testPlatform) {
		support := h.do("POST", "/queues", `{"name":"Support"}`).Want(201).Text("id")
		sales := h.do("POST", "/queues", `{"name":"Sales"}`).Want(201).Text("id")
		trunk := h.do("POST", "/trunks", `{"name":"Carrier","host":"sip.carrier.example"}`).Want(201).Text("id")
		number := h.do("POST", "/numbers", map[string]any{"number": "+442079460050", "trunk_id": trunk, "queue_id": support}).Want(201).Text("id")
		told := h.bus.Subscribe(event.Stream, 100)
		pop := func(id string) (queue any, streamed string) {
			a := h.do("GET", "/contacts/screen-pop?call_id="+id, nil).Want(200)
			h.contacts.Ringing(contact.Ring{Org: h.org, CallID: id, UserID: "usr_1", Phone: known})
			for {
				if e := (<-told.C).(event.Event); e.Kind == "screen_pop" {
					return a.At("queue"), e.Body
				}
			}
		}
		led := h.addCall(time.Now(), number)
		if q, body := pop(led); fmt.Sprint(q) != fmt.Sprintf("map[id:%s name:Support]", support) || !strings.Contains(body, `"queue":{"id":"`+support+`","name":"Support"}`) {
			t.Errorf("of the number: %v, %s", q, body)
		}
		err := h.db.Tx(context.Background(), func(tx db.Querier) error {
			return h.calls.EnterQueue(context.Background(), tx, h.org, led, sales)
		})
		if err != nil {
			t.Fatal(err)
		}
		if q, body := pop(led); fmt.Sprint(q) != fmt.Sprintf("map[id:%s name:Sales]", sales) || !strings.Contains(body, `"name":"Sales"`) {
			t.Errorf("once it is in another: %v, %s", q, body)
		}
		if q, body := pop(h.addCall(time.Now(), "")); q != nil || !strings.Contains(body, `"queue":null`) {
			t.Errorf("of no queue: %v, %s", q, body)
		}
	})
}
