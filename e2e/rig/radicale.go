package rig

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Radicale is a CardDAV server. Book is the address of its only address book, behind a proxy that records requests.
type Radicale struct {
	*Daemon
	Book           string
	User, Password string

	mu    sync.Mutex // guards asked
	asked []string
}

const radicaleConfig = `[server]
hosts = %s
max_connections = 100
[auth]
type = htpasswd
htpasswd_filename = %s
htpasswd_encryption = plain
delay = 0
[storage]
filesystem_folder = %s
[logging]
level = warning
`

// StartRadicale starts an address book that contains people.
func StartRadicale(t testing.TB, people []Person) *Radicale {
	t.Helper()
	path, err := exec.LookPath("radicale")
	if err != nil {
		t.Skip("radicale is not installed")
	}
	dir, address := t.TempDir(), loopback(t)
	r := &Radicale{User: "ada", Password: "let me in"}
	users, config := filepath.Join(dir, "users"), filepath.Join(dir, "config")
	for name, text := range map[string]string{users: r.User + ":" + r.Password + "\n",
		config: fmt.Sprintf(radicaleConfig, address, users, filepath.Join(dir, "data"))} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.Daemon = daemon(t, address, path, "--config", config)
	r.listen(t)
	var cards strings.Builder
	for _, p := range people {
		cards.WriteString(p.Card())
	}
	r.do("PUT", "", cards.String(), "Content-Type", "text/vcard") // creates the book with all of its cards
	return r
}

// listen starts the proxy that records the requests for the book.
func (r *Radicale) listen(t testing.TB) {
	to := &url.URL{Scheme: "http", Host: r.Address}
	forward := httputil.NewSingleHostReverseProxy(to)
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(q.Body, 1<<20))
		q.Body, q.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
		what := q.Method
		for _, kind := range []string{"sync-collection", "addressbook-multiget", "addressbook-query"} {
			if strings.Contains(string(body), kind) {
				what += " " + kind
			}
		}
		r.mu.Lock()
		r.asked = append(r.asked, what)
		r.mu.Unlock()
		forward.ServeHTTP(w, q)
	}))
	r.Book = server + "/ada/book/"
}

// Asked returns the requests to the address book since the last call of Asked.
func (r *Radicale) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.asked
	r.asked = nil
	return was
}

// Put writes a card directly, not through soniq.
func (r *Radicale) Put(p Person) {
	r.T.Helper()
	r.do("PUT", p.ID+".vcf", p.Card(), "Content-Type", "text/vcard")
}

// Write writes the text of a card directly, not through soniq.
func (r *Radicale) Write(name, card string) {
	r.T.Helper()
	r.do("PUT", name, card, "Content-Type", "text/vcard")
}

// Remove deletes a card directly, not through soniq.
func (r *Radicale) Remove(name string) {
	r.T.Helper()
	r.do("DELETE", name, "")
}

// Card reads a card by its name or path.
func (r *Radicale) Card(name string) string {
	r.T.Helper()
	return r.do("GET", filepath.Base(name), "")
}

func (r *Radicale) do(method, name, body string, header ...string) string {
	r.T.Helper()
	q, err := http.NewRequest(method, "http://"+r.Address+"/ada/book/"+name, strings.NewReader(body))
	if err != nil {
		r.T.Fatal(err)
	}
	q.SetBasicAuth(r.User, r.Password)
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	answer, err := (&http.Client{Timeout: 2 * time.Minute}).Do(q)
	if err != nil {
		r.T.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode >= 300 {
		r.T.Fatalf("%s %s: %d %s", method, name, answer.StatusCode, text)
	}
	return string(text)
}

// Card returns a person as a vCard.
func (p Person) Card() string {
	card := "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:" + p.ID + "\r\nFN:" + p.Name + "\r\nN:" + p.Name + ";;;;\r\nORG:" + p.Company + "\r\n"
	for _, number := range p.Phones {
		card += "TEL;TYPE=WORK:" + number + "\r\n"
	}
	if p.Email != "" {
		card += "EMAIL:" + p.Email + "\r\n"
	}
	return card + "END:VCARD\r\n"
}
