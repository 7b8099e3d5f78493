package voicemail_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user/usertest"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
	"soniq/internal/protocol/media/wav"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/voicemail"
)

// fixture holds the services and records that tests of messages need.
type fixture struct {
	*voicemail.Service
	db          *db.DB
	org         string
	ada         string
	calls       *call.Service
	files       *blob.Dir
	server      *optest.Server
	bus         *bus.Bus
	clockOffset time.Duration // offset of the clock
	wav         []byte
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	ctx, b := context.Background(), bus.New()
	orgs := org.New(d, b, time.Now)
	o, err := orgs.Create(ctx, "Acme", "GB")
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{db: d, org: o.ID, bus: b}
	if h.files, err = blob.OpenDir(t.TempDir(), blob.Alone{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "message.wav")
	if err := wav.Write(path, wav.Audio{Rate: 8000, PCM: [][]int16{make([]int16, 24000)}}, wav.PCM16); err != nil {
		t.Fatal(err)
	}
	if h.wav, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	outbox := &event.Outbox{DB: d, Bus: b}
	users := usertest.New(d, orgs, outbox, b, time.Now)
	h.calls = call.NewService(call.Config{DB: d, Outbox: outbox, Jobs: &job.Queue{Bus: b}, Node: "n1"})
	secrets, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	h.Service = voicemail.NewService(voicemail.Config{DB: d, Files: h.files, Outbox: outbox, Bus: b, Digester: secrets,
		Clock: clock.Func(func() time.Time { return time.Now().Add(h.clockOffset) }), BaseURL: "https://voice.example"})
	h.server = optest.New(t, d, append(h.Operations(), users.Operations()...)...)
	h.ada = h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada","last_name":"L"}`).Want(201).Text("id")
	return h
}

func (h *fixture) do(method, path string, body any, header ...string) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body, header...)
}

// leaveMessage stores a message of three seconds, and returns its id.
func (h *fixture) leaveMessage(t *testing.T, mailbox string) string {
	t.Helper()
	ctx, now := context.Background(), time.Now()
	n := call.New{Org: h.org, ID: db.NewID("call"), Direction: call.Inbound, Source: "inbound", From: "+442079460001", To: "+442079460002", StartedAt: now, CallerSIP: "x"}
	if err := h.calls.Begin(ctx, n); err != nil {
		t.Fatal(err)
	}
	m := voicemail.Message{Org: h.org, ID: db.NewID("vm"), CallID: n.ID, Mailbox: mailbox, From: n.From, ReceivedAt: now,
		Duration: 3 * time.Second, Size: int64(len(h.wav)), SHA256: "x"}
	m.Blob = voicemail.BlobName(m.Org, m.ID, now)
	if _, err := h.files.Put(ctx, m.Blob, bytes.NewReader(h.wav)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // repeating it after a crash changes nothing
		if err := h.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
			_, err := h.Receive(ctx, tx, m)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return m.ID
}

func TestMessage_PlayReadDelete(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.leaveMessage(t, h.ada)
		a := h.do("GET", "/voicemail/"+id, nil).Want(200)
		if a.Text("status") != "new" || a.Text("mailbox.type") != "user" || a.Text("mailbox.name") != "Ada L" || a.At("duration_seconds") != 3.0 ||
			a.Text("from_number") != "+442079460001" || a.At("transcript") != nil {
			t.Errorf("message %s", a.Bytes)
		}
		path := strings.TrimPrefix(a.Text("audio_url"), "https://voice.example/api/v1")
		if got := h.do("GET", path, nil).Want(200); !bytes.Equal(got.Bytes, h.wav) || got.Header.Get("Content-Type") != "audio/wav" {
			t.Errorf("%d bytes of %s", len(got.Bytes), got.Header.Get("Content-Type"))
		}
		if got := h.do("GET", path, nil, "Range: bytes=0-3").Want(206); string(got.Bytes) != "RIFF" {
			t.Errorf("a range is %q", got.Bytes)
		}
		var told int
		row := d.Read(context.Background()).QueryRow(context.Background(),
			`SELECT COUNT(*) FROM events WHERE org_id = $1 AND kind = 'voicemail.received' AND body LIKE $2`, h.org, "%"+a.Text("audio_url")+"%")
		if err := row.Scan(&told); err != nil || told != 1 {
			t.Errorf("told %d times, %v", told, err)
		}
		if r := h.do("PATCH", "/voicemail/"+id, fmt.Sprintf(`{"status":"read","assignee_id":%q}`, h.ada)).Want(200); r.Text("read_at") == "" || r.Text("assignee_id") != h.ada {
			t.Errorf("read: %s", r.Bytes)
		}
		if r := h.do("PATCH", "/voicemail/"+id, `{"status":"new","assignee_id":null}`).Want(200); r.At("read_at") != nil || r.At("assignee_id") != nil {
			t.Errorf("new again: %s", r.Bytes)
		}
		h.do("PATCH", "/voicemail/"+id, `{"status":"deleted","assignee_id":"usr_none"}`).Want(422).
			Refused("validation_failed", "status invalid_value", "assignee_id not_found")
		h.do("DELETE", "/voicemail/"+id, nil).Want(204)
		h.do("GET", path, nil).Want(410).Refused("gone")
		h.do("PATCH", "/voicemail/"+id, `{"status":"read"}`).Want(410)
		if a := h.do("GET", "/voicemail/"+id, nil).Want(200); a.Text("status") != "deleted" || a.At("audio_url") != nil {
			t.Errorf("deleted: %s", a.Bytes)
		}
		if _, _, err := h.files.Open(context.Background(), voicemail.BlobName(h.org, id, time.Now())); err == nil {
			t.Error("the sound is still there")
		}
		for _, status := range []string{"read", "new", "deleted"} {
			row := d.Read(context.Background()).QueryRow(context.Background(), `SELECT COUNT(*) FROM events
				WHERE org_id = $1 AND kind = 'voicemail.updated' AND body LIKE $2`, h.org, "%"+id+`%"status":"`+status+`"%`)
			if err := row.Scan(&told); err != nil || told != 1 {
				t.Errorf("told %d times that the message is %s, %v", told, status, err)
			}
		}
	})
}

func TestList_FiltersAndPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		first, second := h.leaveMessage(t, h.ada), h.leaveMessage(t, "que_1")
		h.do("PATCH", "/voicemail/"+first, `{"status":"archived"}`).Want(200)
		for query, want := range map[string]string{"": second, "?sort=received_at": first, "?status=archived": first, "?mailbox_type=queue": second,
			"?mailbox_id=" + h.ada: first, "?phone=%2B442079460001&limit=1": second, "?since=2001-01-01&status=new": second} {
			if a := h.do("GET", "/voicemail"+query, nil).Want(200); a.Text("data.0.id") != want {
				t.Errorf("%s: %s", query, a.Bytes)
			}
		}
		if a := h.do("GET", "/voicemail?until=2001-01-01", nil).Want(200); a.Has("data.0", "id") {
			t.Errorf("before: %s", a.Bytes)
		}
		a := h.do("GET", "/voicemail?limit=1&include_total=true", nil).Want(200)
		if a = h.do("GET", "/voicemail?limit=1&cursor="+a.Text("next_cursor"), nil).Want(200); a.Text("data.0.id") != first {
			t.Errorf("next page: %s", a.Bytes)
		}
		other, err := org.New(h.db, bus.New(), time.Now).Create(context.Background(), "Other", "GB")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range [][2]string{{"GET", ""}, {"GET", "/audio"}, {"DELETE", ""}} {
			h.server.Do(optest.Admin(other.ID), c[0], "/voicemail/"+first+c[1], nil).Want(404)
		}
	})
}
