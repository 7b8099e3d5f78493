package api_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/seal"
	"soniq/internal/sandbox/softphone"
	"soniq/internal/telephony/voicemail"
)

// stage is a server with two organisations: a has one record of each kind, b has none.
type stage struct {
	*rig.Server
	doc   *document
	a, b  desk
	ids   map[string]map[string]string // parameters by the first segments of their path, such as /users
	phone string                       // of a caller of a
	call  string
	hooks *rig.Receiver
}

func newStage(t *testing.T, s *rig.Server) *stage {
	t.Helper()
	st := &stage{Server: s, doc: readDocument(t, s), ids: map[string]map[string]string{}}
	st.a, st.b = st.org(t, "live"), st.org(t, "live")
	st.furnish(t)
	st.partner(t)
	return st
}

// org makes an organisation with a key of every scope.
func (s *stage) org(t *testing.T, env string) desk {
	t.Helper()
	return s.desk(s.Command("admin", "orgs", "create", "--name", "Org of "+t.Name(), "--country", "US"), env, "all")
}

// desk makes a key and returns a client that uses it.
func (s *stage) desk(org, env, scopes string) desk {
	kind, key := "standard", ""
	if strings.HasPrefix(scopes, "partners:") || scopes == "all" {
		kind = "partner"
	}
	if s.a.Client != nil && org == s.a.Org && scopes != "all" {
		var made struct{ Key string }
		s.a.Want(201, "POST", "/api-keys", map[string]any{"name": scopes, "scopes": []string{scopes}, "environment": env, "kind": kind}, &made)
		key = made.Key
	} else {
		key = s.Command("admin", "keys", "create", "--org", org, "--scopes", scopes, "--env", env, "--kind", kind)
	}
	return desk{&rig.Client{T: s.T, Server: s.Server, Org: org, Key: key,
		Prefix: map[string]string{"live": prefix, "test": "/sandbox/v1"}[env]}, s.doc}
}

// furnish creates one record of each kind in organisation a.
func (s *stage) furnish(t *testing.T) {
	t.Helper()
	s.hooks = s.a.Hook(nil)
	alice, bob := s.a.AddUser("Alice"), s.a.AddUser("Bob")
	var trunk, device, number, key struct{ ID string }
	s.a.want(t, 201, "POST", "/trunks", map[string]any{"name": "Carrier", "host": "sip.carrier.example"}, &trunk)
	s.a.want(t, 201, "POST", "/devices", map[string]any{"user_id": alice.ID, "name": "Desk", "kind": "softphone"}, &device)
	s.a.want(t, 201, "POST", "/numbers", map[string]any{"number": "+12025550143", "trunk_id": trunk.ID, "user_id": alice.ID}, &number)
	s.a.want(t, 201, "POST", "/api-keys", map[string]any{"name": "other", "scopes": []string{"calls:read"}}, &key)
	s.phone = alice.Extension
	s.call = s.talk(t, alice, bob)
	s.ids["/users"], s.ids["/trunks"], s.ids["/devices"] = id(alice.ID), id(trunk.ID), id(device.ID)
	s.ids["/numbers"], s.ids["/api-keys"], s.ids["/calls"], s.ids["/cdr"] = id(number.ID), id(key.ID), id(s.call), id(s.call)
	s.ids["/memory"] = map[string]string{"phone": s.phone}
	var fact struct{ ID string }
	s.a.want(t, 201, "POST", "/memory/callers/"+s.phone+"/facts", map[string]any{"text": "A fact."}, &fact)
	s.ids["/memory/items"] = id(fact.ID)
	s.routed(t, alice.ID)
	s.delivered(t)
	s.understood(t)
	s.marked(t, alice.ID)
	s.acquainted(t)
	s.wrote(t)
	s.exported(t)
}

// exported exports the call records of organisation a, and what it keeps about a number, to files.
func (s *stage) exported(t *testing.T) {
	t.Helper()
	s.export(t, "/cdr/exports", map[string]any{"since": "2020-01-01", "until": "2999-01-01", "format": "csv"})
	s.export(t, "/memory/exports", map[string]any{"phone": "+12025550177"})
}

// export starts an export and waits for its file.
func (s *stage) export(t *testing.T, path string, body map[string]any) {
	t.Helper()
	var e struct{ ID, Status string }
	s.a.want(t, 202, "POST", path, body, &e)
	s.ids[path] = id(e.ID)
	rig.Until(t, "the file of an export", 20*time.Second, func() bool {
		s.a.want(t, 200, "GET", path+"/"+e.ID, nil, &e)
		return e.Status == "ready"
	})
}

// wrote creates in organisation a a message scheduled for tomorrow, its conversation, an opt-out and an SMPP
// application.
func (s *stage) wrote(t *testing.T) {
	t.Helper()
	const optedOut = "+12025550189"
	var m struct {
		ID     string
		Thread string `json:"conversation_id"`
	}
	s.a.want(t, 200, "PATCH", "/numbers/"+s.ids["/numbers"]["id"], map[string]any{"sms_enabled": true}, nil)
	s.a.want(t, 201, "POST", "/sms", map[string]any{"from": "+12025550143", "to": "ext:" + s.phone, "body": "A message.",
		"send_at": time.Now().AddDate(0, 0, 1).UTC().Format(time.RFC3339)}, &m)
	s.a.want(t, 201, "POST", "/sms/opt-outs", map[string]any{"phone": optedOut}, nil)
	var application struct{ ID string }
	s.a.want(t, 201, "POST", "/sms/applications", map[string]any{"name": "Reminders"}, &application)
	s.ids["/sms/applications"] = id(application.ID)
	s.ids["/sms"], s.ids["/sms/conversations"], s.ids["/sms/opt-outs"] = id(m.ID), id(m.Thread), map[string]string{"phone": optedOut}
}

// acquainted creates in organisation a a contact, a connected CRM, an import and a job that writes to the CRM.
func (s *stage) acquainted(t *testing.T) {
	t.Helper()
	var contact, connection, batch struct{ ID string }
	s.a.want(t, 201, "POST", "/crm/connections", map[string]any{"provider": "http", "name": "CRM", "settings": map[string]any{
		"note": map[string]any{"url": "http://127.0.0.1:9/notes", "body": map[string]any{"text": "{{note}}"}}}}, &connection)
	s.a.want(t, 201, "POST", "/contacts", map[string]any{"first_name": "Ada", "phones": []map[string]any{{"number": "+12025550187"}}}, &contact)
	s.a.want(t, 201, "POST", "/contacts/"+contact.ID+"/notes", map[string]any{"body": "A note."}, nil)
	s.a.want(t, 202, "POST", "/crm/imports", map[string]any{"content": "first_name,phone\nImported,+12025550188\n"}, &batch)
	var syncs struct{ Data []struct{ ID string } }
	s.a.want(t, 200, "GET", "/crm/sync-jobs", nil, &syncs)
	s.ids["/contacts"], s.ids["/crm/connections"], s.ids["/crm/imports"], s.ids["/crm/sync-jobs"] = id(contact.ID), id(connection.ID), id(batch.ID), id(syncs.Data[0].ID)
}

// routed creates the routing of callers, such as queues and flows.
func (s *stage) routed(t *testing.T, user string) {
	t.Helper()
	var queue struct{ ID string }
	s.a.want(t, 201, "POST", "/queues", map[string]any{"name": "Support", "extension": "600"}, &queue)
	s.a.want(t, 201, "POST", "/queues/"+queue.ID+"/members", map[string]any{"user_id": user}, nil)
	s.ids["/queues"] = map[string]string{"id": queue.ID, "user_id": user, "call_id": s.call}
	s.ids["/agents"] = map[string]string{"id": user, "queue_id": queue.ID}
	var flow, port struct{ ID string }
	s.a.want(t, 201, "POST", "/flows", map[string]any{"name": "Main", "publish": true,
		"ivr": map[string]any{"greeting": "Press one.", "options": map[string]string{"1": "queue:" + queue.ID}, "timeout_to": "user:" + user}}, &flow)
	s.ids["/flows"] = id(flow.ID)
	s.a.want(t, 201, "POST", "/numbers/ports", map[string]any{"numbers": []string{"+12025550188"}, "carrier": "Old Co"}, &port)
	s.ids["/numbers/ports"] = id(port.ID)
	var seller struct{ ID string }
	s.a.want(t, 201, "POST", "/numbers/providers", map[string]any{"provider": "telnyx", "api_key": "KEY0", "trunk_id": s.ids["/trunks"]["id"], "url": "http://127.0.0.1:9/v2"}, &seller)
	s.ids["/numbers/providers"] = id(seller.ID)
	var centre struct{ ID string }
	s.a.want(t, 201, "POST", "/sms/carriers", map[string]any{"provider": "smpp", "name": "Centre", "settings": map[string]any{"host": "127.0.0.1", "port": 9, "system_id": "soniq"}}, &centre)
	s.ids["/sms/carriers"] = id(centre.ID)
	s.ids["/voicemail"] = id(s.leave(t, user))
}

// leave puts a message into a user's voicemail box, as the switch does when a caller has left one.
func (s *stage) leave(t *testing.T, user string) string {
	t.Helper()
	address := s.DB
	if address == "" {
		address = filepath.Join(s.Data, "soniq.db")
	}
	ctx := context.Background()
	d, err := db.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	files, err := blob.OpenDir(filepath.Join(s.Data, "recordings"), blob.Alone{})
	if err != nil {
		t.Fatal(err)
	}
	m := voicemail.Message{Org: s.a.Org, ID: db.NewID("vm"), CallID: s.call, Mailbox: user, From: s.phone, ReceivedAt: time.Now(),
		Duration: 3 * time.Second}
	m.Blob = voicemail.BlobName(m.Org, m.ID, m.ReceivedAt)
	if m.Size, err = files.Put(ctx, m.Blob, strings.NewReader(strings.Repeat("RIFF", 100))); err != nil {
		t.Fatal(err)
	}
	keys, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	v := voicemail.NewService(voicemail.Config{DB: d, Files: files, Bus: bus.New(), Digester: keys, BaseURL: "http://" + s.HTTP,
		Outbox: &event.Outbox{DB: d, Bus: bus.New()}})
	if err := d.TxContext(ctx, func(ctx context.Context, tx db.Querier) error { _, err := v.Receive(ctx, tx, m); return err }); err != nil {
		t.Fatal(err)
	}
	return m.ID
}

// marked adds a note and a tag to the call, and schedules another call for tomorrow.
func (s *stage) marked(t *testing.T, user string) {
	t.Helper()
	var note, callback, sound struct{ ID string }
	s.a.want(t, 201, "POST", "/audio", map[string]any{"text": "One moment please."}, &sound)
	s.ids["/audio"] = id(sound.ID)
	var tags struct{ Data []struct{ ID string } }
	var c struct{ Legs []struct{ ID string } }
	s.a.want(t, 201, "POST", "/calls/"+s.call+"/note", map[string]any{"body": "A note."}, &note)
	s.a.want(t, 200, "POST", "/calls/"+s.call+"/tag", map[string]any{"tag": "marked"}, nil)
	s.a.want(t, 200, "GET", "/tags", nil, &tags)
	s.a.want(t, 200, "GET", "/calls/"+s.call+"?expand=legs", nil, &c)
	s.a.want(t, 201, "POST", "/callbacks", map[string]any{"to": "ext:" + s.phone, "user_id": user,
		"scheduled_at": time.Now().AddDate(0, 0, 1).UTC().Format(time.RFC3339)}, &callback)
	s.ids["/calls"] = map[string]string{"id": s.call, "note_id": note.ID, "leg_id": c.Legs[0].ID, "monitor_id": nowhere["monitor_id"], "tag": "marked"}
	s.ids["/tags"], s.ids["/callbacks"] = id(tags.Data[0].ID), id(callback.ID)
}

// partner creates a child organisation of organisation a.
func (s *stage) partner(t *testing.T) {
	t.Helper()
	var child struct {
		ID    string
		Admin string `json:"admin_user_id"`
	}
	s.a.want(t, 201, "POST", "/partners", map[string]any{"name": "Child", "plan": "business", "admin_email": "child@example.com"}, &child)
	s.ids["/partners"] = map[string]string{"id": child.ID, "user_id": child.Admin}
}

func id(v string) map[string]string { return map[string]string{"id": v} }

// talk makes a recorded call between two users and returns it.
func (s *stage) talk(t *testing.T, from, to rig.User) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit.Hang(0))
	defer cancel()
	one, two := s.telephone(t, ctx, from), s.telephone(t, ctx, to)
	defer one.Close()
	defer two.Close()
	mine, err := one.Call(ctx, to.Extension)
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.Say(ctx, make([]int16, 12000)); err != nil {
		t.Fatal(err)
	}
	mine.HangUp()
	<-mine.Over()
	e := s.hooks.Wait("call.ended", 60*time.Second, nil)
	return e.Data["call_id"].(string)
}

func (s *stage) telephone(t *testing.T, ctx context.Context, u rig.User) *softphone.Phone {
	t.Helper()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	p, err := softphone.Open(ctx, softphone.Account{Registrar: s.SIP, Username: u.SIP.Username, Domain: u.SIP.Domain,
		Password: u.SIP.Password}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// delivered waits for the log of a delivery.
func (s *stage) delivered(t *testing.T) {
	t.Helper()
	var page struct{ Data []struct{ ID string } }
	rig.Until(t, "deliveries in the log", 20*time.Second, func() bool {
		s.a.want(t, 200, "GET", "/webhooks/"+s.hooks.ID+"/deliveries", nil, &page)
		return len(page.Data) > 0
	})
	s.ids["/webhooks"] = map[string]string{"id": s.hooks.ID, "delivery_id": page.Data[0].ID}
}

// understood waits for the recording and the transcript.
func (s *stage) understood(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"recordings", "transcripts"} {
		var page struct{ Data []struct{ ID string } }
		rig.Until(t, kind+" of the call", 30*time.Second, func() bool {
			s.a.want(t, 200, "GET", "/"+kind+"?call_id="+s.call, nil, &page)
			return len(page.Data) > 0
		})
		s.ids["/"+kind] = id(page.Data[0].ID)
	}
}

// of returns the parameters of an operation for a record of organisation a. ok is false if the stage has no such
// record.
func (s *stage) of(o operation) (map[string]string, bool) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(o.Path, "/"), "/")
	second, _, _ := strings.Cut(rest, "/")
	v, ok := s.ids["/"+first+"/"+second]
	if !ok {
		v, ok = s.ids["/"+first]
	}
	return maps.Clone(v), ok
}
