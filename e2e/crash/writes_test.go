package crash_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// writer adds and changes users all the time, as a customer's program does. It repeats a request without a response,
// with the same key.
type writer struct {
	t    *testing.T
	c    *rig.Client
	stop chan struct{}
	done chan struct{}

	// Only the writer's goroutine uses the fields below until done is closed.
	added    map[string]string // user ids by e-mail address, of answers 201
	names    map[string]int    // the last change that was answered, by user id
	asked    int
	repeated int // requests sent more than once
	replayed int // of these, requests whose first attempt had taken effect
}

func startWriter(t *testing.T, c *rig.Client) *writer {
	w := &writer{t: t, c: c, stop: make(chan struct{}), done: make(chan struct{}), added: map[string]string{}, names: map[string]int{}}
	go w.run()
	return w
}

func (w *writer) run() {
	defer close(w.done)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		w.person(n)
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
	}
}

// person adds a user and changes it twice.
func (w *writer) person(n int) {
	email := fmt.Sprintf("user%d@example.org", n)
	var u struct{ ID string }
	if !w.ask("POST", "/users", map[string]any{"email": email, "first_name": "User", "provision_sip": n%2 == 0}, fmt.Sprint("add ", n), http.StatusCreated, &u) {
		return
	}
	if w.added[email] != "" {
		w.t.Errorf("%s was added twice", email)
	}
	w.added[email] = u.ID
	for change := 1; change <= 2; change++ {
		body := map[string]any{"last_name": fmt.Sprint("Name ", change)}
		if !w.ask("PATCH", "/users/"+u.ID, body, fmt.Sprint("change ", n, change), http.StatusOK, nil) {
			return
		}
		w.names[u.ID] = change
	}
}

// ask repeats a request until it gets a response. It returns false if the test ends before.
func (w *writer) ask(method, path string, body any, key string, want int, out any) bool {
	raw, err := json.Marshal(body)
	if err != nil {
		w.t.Error(err)
		return false
	}
	w.asked++
	for try := 0; ; try++ {
		status, answer, again, err := w.once(method, path, raw, key)
		switch {
		case err == nil && status == want:
			if try > 0 {
				w.repeated++
			}
			if again {
				w.replayed++
			}
			if out != nil {
				_ = json.Unmarshal(answer, out)
			}
			return true
		case err == nil && status != http.StatusServiceUnavailable && status != http.StatusConflict:
			w.t.Errorf("%s %s: %d %s", method, path, status, answer)
			return false
		}
		select {
		case <-w.stop:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var impatient = &http.Client{Timeout: 5 * time.Second}

func (w *writer) once(method, path string, body []byte, key string) (status int, answer []byte, again bool, err error) {
	q, err := http.NewRequest(method, "http://"+w.c.Server.HTTP+w.c.Prefix+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, false, err
	}
	q.Header.Set("Authorization", "Bearer "+w.c.Key)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Idempotency-Key", key)
	a, err := impatient.Do(q)
	if err != nil {
		return 0, nil, false, err
	}
	defer a.Body.Close()
	answer, err = io.ReadAll(a.Body)
	return a.StatusCode, answer, a.Header.Get("Idempotency-Replayed") != "", err
}

// check fails unless everything acknowledged is there.
func (w *writer) check() {
	close(w.stop)
	<-w.done
	count := map[string]int{}
	last := map[string]string{}
	for u := range list[struct {
		ID, Email string
		LastName  string `json:"last_name"`
	}](w.t, w.c, "/users?limit=200") {
		count[u.Email]++
		last[u.ID] = u.LastName
	}
	for email, id := range w.added {
		if count[email] != 1 {
			w.t.Errorf("acknowledged user %s is there %d times", email, count[email])
		}
		if n := w.names[id]; n > 0 && last[id] < fmt.Sprint("Name ", n) {
			w.t.Errorf("user %s has name %q, change %d was acknowledged", id, last[id], n)
		}
	}
	for email, n := range count {
		if n > 1 {
			w.t.Errorf("%s is there %d times", email, n)
		}
	}
	w.t.Logf("REST: %d requests acknowledged, %d asked again after a crash, %d of them had had their effect", w.asked, w.repeated, w.replayed)
}
