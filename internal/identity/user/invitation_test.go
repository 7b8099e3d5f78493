package user_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
	"soniq/internal/platform/seal"
)

// newInvitingFixture returns a service with invitations. m sends them; nil: no mail.
func newInvitingFixture(t *testing.T, d *db.DB, m user.Mailer) *fixture {
	t.Helper()
	s, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	var jobs *job.Queue
	h := newFixture(t, d, func(c *user.Config) {
		jobs = &job.Queue{Bus: c.Bus}
		c.Invites = &user.Invites{Seal: s, BaseURL: "https://voice.example", Jobs: jobs, Mailer: m}
	})
	if m == nil {
		return h
	}
	r := &job.Runner{DB: h.d, Queue: jobs, Name: user.MailQueue, Node: "n", Log: slog.New(slog.DiscardHandler),
		Options: job.Options{Workers: 1, Timeout: time.Minute}}
	h.HandleMail(r)
	if err := r.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop(context.Background()) })
	return h
}

// token returns the token at the end of a link.
func token(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

// accept accepts an invitation.
func (h *fixture) accept(token string) (u user.User, err error) {
	err = h.d.TxContext(context.Background(), func(ctx context.Context, tx db.Querier) (err error) {
		u, err = h.Accept(ctx, tx, token)
		return err
	})
	return u, err
}

func TestInvitation_AcceptedOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newInvitingFixture(t, d, nil)
		a := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada"}`).Want(201)
		id, link := a.Text("id"), a.Text("invitation.url")
		if a.Text("status") != "invited" || !strings.HasPrefix(link, "https://voice.example/invite/") || a.At("invitation.sent") != false {
			t.Fatalf("added: %s", a.Bytes)
		}
		if again := h.do("GET", "/users/"+id, nil).Want(200); again.Has("", "invitation") {
			t.Errorf("the link is given twice: %s", again.Bytes)
		}
		next := h.do("POST", "/users/"+id+"/invite", `{}`).Want(202).Text("url")
		if _, err := h.accept(token(link)); !db.IsNone(err) {
			t.Errorf("a link that was replaced: %v", err)
		}
		u, err := h.accept(token(next))
		if err != nil || u.ID != id || u.Status != "active" {
			t.Errorf("accepted by %s, %s: %v", u.ID, u.Status, err)
		}
		if a := h.do("GET", "/users/"+id, nil).Want(200); a.Text("status") != "active" {
			t.Errorf("after it: %s", a.Bytes)
		}
		if _, err := h.accept(token(next)); !db.IsNone(err) {
			t.Errorf("a link worked twice: %v", err)
		}
	})
}

func TestInvitation_EndsWithTimeAndUser(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newInvitingFixture(t, d, nil)
		add := func(email string) (id, link string) {
			a := h.do("POST", "/users", `{"email":"`+email+`","first_name":"A"}`).Want(201)
			return a.Text("id"), a.Text("invitation.url")
		}
		gone, removed := add("a@example.com")
		barred, suspended := add("b@example.com")
		_, late := add("c@example.com")
		h.do("DELETE", "/users/"+gone, nil).Want(204)
		h.do("PATCH", "/users/"+barred, `{"status":"suspended"}`).Want(200)
		h.do("POST", "/users/"+barred+"/invite", `{}`).Want(409).Refused("invalid_state")
		h.do("POST", "/users/"+gone+"/invite", `{}`).Want(404)
		for what, link := range map[string]string{"removed": removed, "suspended": suspended} {
			if _, err := h.accept(token(link)); !db.IsNone(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
		h.now = h.now.Add(7*24*time.Hour + time.Second)
		if _, err := h.accept(token(late)); !db.IsNone(err) {
			t.Errorf("too late: %v", err)
		}
	})
}

func TestInvitation_MailRetriedAndTokenDeleted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		m := &unreliableMailer{t: t, mails: make(chan [2]string, 4)}
		h := newInvitingFixture(t, d, m)
		a := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada"}`).Want(201)
		if a.At("invitation.sent") != true || a.Has("invitation", "url") {
			t.Errorf("the link is shown although it is sent: %s", a.Bytes)
		}
		select {
		case m := <-m.mails:
			_, after, _ := strings.Cut(m[1], "https://voice.example/invite/")
			link, _, _ := strings.Cut(after, "\n")
			if m[0] != "ada@example.com" || link == "" {
				t.Fatalf("mailed to %s: %s", m[0], m[1])
			}
			if u, err := h.accept(link); err != nil || u.ID != a.Text("id") {
				t.Errorf("the link of the mail: %v", err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("not mailed")
		}
		if u := h.do("POST", "/users", `{"email":"bob@example.com","first_name":"Bob","send_invite":false}`).Want(201); u.Text("status") != "active" || u.Has("", "invitation") {
			t.Errorf("without an invitation: %s", u.Bytes)
		}
	})
}

func TestListUsers_ByPresence(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		busy := busyUsers{}
		h := newFixture(t, d, func(c *user.Config) { c.Presences = busy })
		var want []string
		for i := range 30 {
			id := h.do("POST", "/users", map[string]any{"email": string(rune('a'+i)) + "x@example.com", "first_name": "A"}).Want(201).Text("id")
			if i%5 == 0 {
				busy[id] = true
				want = append(want, id)
			}
		}
		resting := h.do("POST", "/users", `{"email":"z@example.com","first_name":"Z"}`).Want(201).Text("id")
		h.do("PUT", "/users/"+resting+"/dnd", `{"enabled":true}`).Want(200)
		var got []string
		for query := "?presence=busy,ringing&limit=2&include_total=true"; ; {
			a := h.do("GET", "/users"+query, nil).Want(200)
			if a.At("total") != 6.0 {
				t.Fatalf("total %v", a.At("total"))
			}
			for _, u := range a.At("data").([]any) {
				got = append(got, u.(map[string]any)["id"].(string))
			}
			if a.At("has_more") != true {
				break
			}
			query = "?presence=busy,ringing&limit=2&include_total=true&cursor=" + a.Text("next_cursor")
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("busy are %v, want %v", got, want)
		}
		if n := len(h.do("GET", "/users?presence=dnd&include=presence,devices", nil).Want(200).At("data").([]any)); n != 1 {
			t.Errorf("%d do not want to be disturbed", n)
		}
		h.do("GET", "/users?presence=asleep", nil).Want(400)
	})
}
