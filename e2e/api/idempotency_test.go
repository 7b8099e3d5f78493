package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"soniq/e2e/rig"
)

// repeats sends requests again with the same idempotency key.
func repeats(t *testing.T, s *stage) {
	fresh := func(email string) map[string]any { return map[string]any{"email": email, "first_name": "Ida"} }
	t.Run("the first answer is given again", func(t *testing.T) {
		first := s.a.want(t, 201, "POST", "/users", fresh("ida@example.org"), nil, "Idempotency-Key", "one")
		for _, key := range []string{"one", `"one"`} { // bare, and as a structured field string
			again := s.a.want(t, 201, "POST", "/users", fresh("ida@example.org"), nil, "Idempotency-Key", key)
			if !bytes.Equal(bytes.TrimSpace(again.Body), bytes.TrimSpace(first.Body)) ||
				again.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("the repeat got %s (replayed: %q), want %s", again.Body, again.Header.Get("Idempotency-Replayed"), first.Body)
			}
			if l := again.Header.Get("Location"); l == "" || l != first.Header.Get("Location") {
				t.Errorf("Location of the repeat is %q, of the first %q", l, first.Header.Get("Location"))
			}
		}
		if first.Header.Get("Idempotency-Replayed") != "" {
			t.Error("the first answer says that it is a repeat")
		}
	})
	t.Run("another body is refused", func(t *testing.T) {
		s.a.refused(t, 422, "idempotency_key_reused", "POST", "/users", fresh("other@example.org"), "Idempotency-Key", "one")
	})
	t.Run("a key belongs to credential, method and address", func(t *testing.T) {
		s.desk(s.a.Org, "live", "users:admin").refused(t, 409, "already_exists", "POST", "/users", fresh("ida@example.org"), "Idempotency-Key", "one")
		s.a.want(t, 201, "POST", "/webhooks", map[string]any{"url": "http://127.0.0.1:9/", "events": []string{"*"}}, nil, "Idempotency-Key", "one")
	})
	t.Run("errors are repeated too", func(t *testing.T) {
		one := s.a.call(t, "POST", "/users", fresh("ida@example.org"), "Idempotency-Key", "two")
		two := s.a.call(t, "POST", "/users", fresh("ida@example.org"), "Idempotency-Key", "two", "X-Request-Id", one.Header.Get("X-Request-Id"))
		if one.Status != 409 || two.Status != 409 || two.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%d, then %d (replayed: %q)", one.Status, two.Status, two.Header.Get("Idempotency-Replayed"))
		}
	})
	t.Run("a refusal for want of a scope is not kept", func(t *testing.T) {
		weak := s.desk(s.a.Org, "live", "calls:read")
		for range 2 {
			if r := weak.call(t, "POST", "/users", fresh("x@example.org"), "Idempotency-Key", "three"); r.Status != 403 || r.Header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%d, replayed %q", r.Status, r.Header.Get("Idempotency-Replayed"))
			}
		}
	})
	t.Run("a removal is repeated", func(t *testing.T) {
		var u struct{ ID string }
		s.a.want(t, 201, "POST", "/users", fresh("gone@example.org"), &u)
		s.a.want(t, 204, "DELETE", "/users/"+u.ID, nil, nil, "Idempotency-Key", "four")
		if r := s.a.want(t, 204, "DELETE", "/users/"+u.ID, nil, nil, "Idempotency-Key", "four"); r.Header.Get("Idempotency-Replayed") != "true" {
			t.Error("the repeated removal was not recognised")
		}
	})
	t.Run("a repeat while the first is running is told so", func(t *testing.T) { running(t, s) })
	t.Run("many at once have one effect", func(t *testing.T) { race(t, s) })
}

// running repeats a request while a customer's receiver delays the first one.
func running(t *testing.T, s *stage) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer receiver.Close()
	var hook struct{ ID string }
	s.a.want(t, 201, "POST", "/webhooks", map[string]any{"url": receiver.URL, "events": []string{"call.missed"}}, &hook)
	first := make(chan rig.Response)
	path := "/webhooks/" + hook.ID + "/test"
	go func() { first <- s.a.call(t, "POST", path, map[string]any{}, "Idempotency-Key", "slow") }()
	<-arrived
	r := s.a.call(t, "POST", path, map[string]any{}, "Idempotency-Key", "slow")
	if p := problemOf(r); r.Status != 409 || p.Code != "idempotency_in_progress" || r.Header.Get("Retry-After") == "" {
		t.Errorf("while the first runs: %d %s", r.Status, r.Body)
	}
	s.a.refused(t, 422, "idempotency_key_reused", "POST", path, map[string]any{"event": "call.missed"}, "Idempotency-Key", "slow")
	close(release)
	done := <-first
	again := s.a.want(t, 200, "POST", path, map[string]any{}, nil, "Idempotency-Key", "slow")
	if done.Status != 200 || again.Header.Get("Idempotency-Replayed") != "true" ||
		!bytes.Equal(bytes.TrimSpace(done.Body), bytes.TrimSpace(again.Body)) {
		t.Errorf("first %d %s, repeated %s", done.Status, done.Body, again.Body)
	}
}

// race sends the same request many times at the same moment.
func race(t *testing.T, s *stage) {
	for round := range 5 {
		body := map[string]any{"email": fmt.Sprintf("race%d@example.org", round), "first_name": "Race"}
		key := fmt.Sprintf("race %d", round)
		var all sync.WaitGroup
		answers := make([]rig.Response, 16)
		for i := range answers {
			all.Go(func() { answers[i] = s.a.call(t, "POST", "/users", body, "Idempotency-Key", key) })
		}
		all.Wait()
		var ids []string
		for _, r := range answers {
			switch r.Status {
			case http.StatusCreated:
				id, _ := r.JSON()["id"].(string)
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			case http.StatusConflict:
				if p := problemOf(r); p.Code != "idempotency_in_progress" || r.Header.Get("Retry-After") == "" {
					t.Errorf("409 %s, Retry-After %q", p.Code, r.Header.Get("Retry-After"))
				}
			default:
				t.Errorf("%d %s", r.Status, r.Body)
			}
		}
		if len(ids) != 1 {
			t.Errorf("%d users were made by one key: %v", len(ids), ids)
		}
	}
}

// TestIdempotency_RepeatAcrossKill kills the server between a request and its repeat.
func TestIdempotency_RepeatAcrossKill(t *testing.T) {
	rig.Each(t, rig.Options{Flags: []string{"--transcriber", "off"}}, func(t *testing.T, s *rig.Server) {
		a := s.Org("live")
		body := map[string]any{"email": "once@example.org", "first_name": "Once"}
		first := a.Do("POST", "/users", body, "Idempotency-Key", "k")
		s.Kill()
		s.Start()
		again := a.Do("POST", "/users", body, "Idempotency-Key", "k")
		if first.Status != 201 || again.Status != 201 || again.Header.Get("Idempotency-Replayed") != "true" ||
			!bytes.Equal(bytes.TrimSpace(first.Body), bytes.TrimSpace(again.Body)) {
			t.Errorf("before the crash %d %s\nafter it %d %s (replayed %q)", first.Status, first.Body, again.Status, again.Body, again.Header.Get("Idempotency-Replayed"))
		}
		var users struct{ Data []any }
		if a.Want(200, "GET", "/users", nil, &users); len(users.Data) != 1 {
			t.Errorf("%d users, want 1", len(users.Data))
		}
	})
}
