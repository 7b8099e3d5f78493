package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/fixture/database"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/platform/db"
)

// keptTables lists the tables in which a reset keeps rows.
var keptTables = []string{"orgs", "api_keys", "users", "invitations", "devices", "registrations", "browser_tokens", "provisionings", "agents", "webhooks", "webhook_versions", "audit",
	"event_sequences", "extensions"}

// ignoredTables lists the tables that presence is written to shortly after a call.
var ignoredTables = []string{"agent_spells", "events", "webhook_deliveries", "webhook_attempts", "jobs", "call_counted"}

func TestReset_DuringCall(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 75*time.Second, "a call is transcribed before and after the reset")
	rig.Each(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		live := fixture.NewOrg(s)
		mine, other := newSandbox(s, live.Org), newSandbox(s, fixture.NewOrg(s).Org)
		mine.fill()
		other.fill()
		before, files := other.rows(), other.files()
		if len(mine.files()) == 0 || len(files) == 0 || mine.rows()["memory_calls"] == 0 {
			t.Fatal("there is nothing to remove, or to keep")
		}
		mine.call("+12025550101")
		if r := live.Do("POST", "/sandbox/reset", nil); r.Status != 404 {
			t.Errorf("a live key: %d %s", r.Status, r.Body)
		}
		var done struct {
			Ended   int `json:"calls_ended"`
			Removed int `json:"records_removed"`
		}
		mine.Want(200, "POST", "/sandbox/reset", nil, &done)
		if done.Ended != 1 || done.Removed < 20 {
			t.Errorf("the reset says %+v", done)
		}
		mine.phone.Wait("CALL_CLOSED", "")
		mine.wantEmpty()
		if mine.Want(200, "POST", "/sandbox/reset", nil, &done); done.Ended != 0 {
			t.Errorf("the second reset ended %d calls", done.Ended)
		}
		var log struct{ Data []any }
		if mine.Want(200, "GET", "/audit-log?operation=sandbox.reset", nil, &log); len(log.Data) != 2 {
			t.Errorf("two resets are noted as %v", log.Data)
		}
		for table, n := range before {
			if now := other.rows()[table]; now < n && !slices.Contains(ignoredTables, table) {
				t.Errorf("%s of another organisation had %d rows and has %d", table, n, now)
			}
		}
		if left := other.files(); !slices.Equal(left, files) {
			t.Errorf("files of another organisation were %v and are %v", files, left)
		}
		mine.call("+12025550102")
		if r := mine.CDR("+12025550102"); r.String() != "outbound busy busy callee 486" {
			t.Errorf("a call after the reset: %s", r)
		}
		mine.Webhook.Wait("call.ended", 20*time.Second, func(e rig.Event) bool { return e.Data["to_number"] == "+12025550102" })
		mine.phone.Wait("CALL_CLOSED", "")
		mine.wantStillEmpty("+12025550102")
	})
}

// sandboxOrg is a sandbox with a user and a telephone.
type sandboxOrg struct {
	*fixture.Org
	id    string
	user  rig.User
	phone *rig.Phone
}

// newSandbox makes a sandbox.
func newSandbox(s *rig.Server, org string) *sandboxOrg {
	s.T.Helper()
	key := s.Key(org, "test", "all")
	x := &sandboxOrg{Org: &fixture.Org{Client: key, Webhook: key.Hook(nil)}}
	x.user = x.AddUser("Ada")
	x.id = x.Do("GET", "/organization", nil).JSON()["id"].(string)
	say, _ := fixture.Tone(s.T, 440)
	x.phone = s.Phone(x.user.SIP, rig.PhoneOptions{Auto: true, Say: say})
	return x
}

// call makes the user call a test number, and waits until their telephone has answered.
func (x *sandboxOrg) call(number string) {
	x.T.Helper()
	x.Want(201, "POST", "/calls", map[string]any{"to": number, "user_id": x.user.ID}, nil)
	x.phone.Wait("CALL_ESTABLISHED", "")
}

// fill adds one record of each kind to the sandbox, and a call with memory.
func (x *sandboxOrg) fill() {
	x.T.Helper()
	var contact, number, queue struct{ ID string }
	x.Want(201, "POST", "/contacts", map[string]any{"first_name": "Grace", "phones": []map[string]any{{"number": "+12025550101"}}}, &contact)
	x.Want(201, "POST", "/contacts/"+contact.ID+"/notes", map[string]any{"body": "A note."}, nil)
	x.Want(201, "POST", "/crm/connections", map[string]any{"provider": "http", "name": "CRM", "settings": map[string]any{
		"note": map[string]any{"url": "http://127.0.0.1:9/notes", "body": map[string]any{"text": "{{note}}"}}}}, nil)
	x.Want(201, "POST", "/numbers", map[string]any{"number": "+12025550121"}, &number)
	x.Want(200, "PATCH", "/users/"+x.user.ID, map[string]any{"outbound_number_id": number.ID}, nil)
	x.Want(201, "POST", "/queues", map[string]any{"name": "Support", "extension": "600"}, &queue)
	x.Want(201, "POST", "/queues/"+queue.ID+"/members", map[string]any{"user_id": x.user.ID}, nil)
	x.Want(201, "POST", "/flows", map[string]any{"name": "Main", "publish": true,
		"ivr": map[string]any{"greeting": "Press one.", "options": map[string]string{"1": "queue:" + queue.ID}, "timeout_to": "user:" + x.user.ID}}, nil)
	x.Want(201, "POST", "/sms/opt-outs", map[string]any{"phone": "+12025550189"}, nil)
	x.Want(201, "POST", "/callbacks", map[string]any{"to": "+12025550101", "user_id": x.user.ID,
		"scheduled_at": time.Now().AddDate(0, 0, 1).UTC().Format(time.RFC3339)}, nil)
	x.call("+12025550101")
	x.phone.Listen(6 * time.Second)
	x.phone.Do("hangup", "")
	x.Recording(x.CDR("+12025550101").CallID)
	x.Webhook.Wait("call.transcription", time.Minute, func(rig.Event) bool { return true })
	rig.Until(x.T, "the call in memory", 20*time.Second, func() bool { return x.rows()["memory_calls"] > 0 })
}

// rows counts the rows of the sandbox in every table that has some.
func (x *sandboxOrg) rows() map[string]int {
	x.T.Helper()
	ctx := context.Background()
	address := x.Server.DB
	if address == "" {
		address = filepath.Join(x.Server.Data, "soniq.db")
	}
	d, err := db.Open(ctx, address)
	if err != nil {
		x.T.Fatal(err)
	}
	defer d.Close()
	all := map[string]int{}
	for _, table := range database.Tables(x.T, d) {
		if n := x.rowsIn(d, table); n > 0 {
			all[table] = n
		}
	}
	return all
}

// rowsIn counts the rows of a table that contain the sandbox's id in any column.
func (x *sandboxOrg) rowsIn(d *db.DB, table string) (n int) {
	x.T.Helper()
	rows, err := d.Read(x.T.Context()).Query(x.T.Context(), "SELECT * FROM "+table)
	if err != nil {
		x.T.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		x.T.Fatal(err)
	}
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			x.T.Fatal(err)
		}
		if slices.ContainsFunc(values, func(v any) bool { return strings.Contains(database.Uncompressed(v), x.id) }) {
			n++
		}
	}
	return n
}

// files lists the files in the folders of the sandbox.
func (x *sandboxOrg) files() (all []string) {
	x.T.Helper()
	err := filepath.WalkDir(x.Server.Data, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.Contains(path, x.id) {
			all = append(all, path)
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})
	if err != nil {
		x.T.Fatal(err)
	}
	return all
}

// lists names the lists of a sandbox that a reset empties.
var lists = []string{"/calls", "/cdr", "/recordings", "/sms", "/sms/conversations", "/sms/opt-outs", "/contacts", "/numbers", "/queues", "/flows", "/trunks",
	"/callbacks", "/tags", "/voicemail", "/crm/sync-jobs", "/audio"}

// wantEmpty fails unless every list of the sandbox is empty.
func (x *sandboxOrg) wantEmpty() {
	x.T.Helper()
	for _, path := range lists {
		var page struct{ Data []any }
		if x.Want(200, "GET", path, nil, &page); len(page.Data) != 0 {
			x.T.Errorf("%s has %v", path, page.Data)
		}
	}
	for table, n := range x.rows() {
		if !slices.Contains(keptTables, table) && !slices.Contains(ignoredTables, table) {
			x.T.Errorf("%d rows are left in %s", n, table)
		}
	}
	if left := x.files(); len(left) > 0 {
		x.T.Errorf("files are left: %v", left)
	}
	if u := x.Do("GET", "/users/"+x.user.ID, nil).JSON(); u["outbound_number_id"] != nil || u["extension"] != x.user.Extension {
		x.T.Errorf("the user is %v", u)
	}
}

// wantStillEmpty checks that no data from before the reset has returned. The one call after it is to this number.
func (x *sandboxOrg) wantStillEmpty(number string) {
	x.T.Helper()
	for _, r := range x.CDRs(1, "") {
		if r.To != number {
			x.T.Errorf("a record of %s is back", fmt.Sprint(r.To))
		}
	}
	for _, table := range []string{"transcripts", "summaries", "memory_calls", "memory_items", "memory_vectors", "recordings"} {
		if n := x.rows()[table]; n > 0 && (table != "memory_calls" || n > 1) { // the call after the reset is remembered
			x.T.Errorf("%d rows are back in %s", n, table)
		}
	}
	if left := x.files(); len(left) > 0 {
		x.T.Errorf("files are back: %v", left)
	}
}
