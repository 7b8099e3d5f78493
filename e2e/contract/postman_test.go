package contract_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/sandbox/softphone"
)

// newman runs the published collection unchanged, from top to end, in an organisation that has one of most things.
// Every response is one that the description declares, and most requests succeed. The requests on calls succeed
// during a call, and those of the sandbox with a test key.
func TestPostman_CollectionRuns(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	path := p.collection(t, "http://"+p.HTTP+"/api/v1")
	p.newman(t, path, "--folder", "calls", "--env-var", "call_id="+p.speaking(t)).expect(t, 36, "Put the call on hold", "Take the call off hold",
		"Mute one side of the call", "Unmute one side of the call", "Send DTMF tones", "Play an announcement into the call", "Get one call", "End the call")
	p.newman(t, path, "--folder", "sandbox", "--env-var", "base_url=http://"+p.HTTP+"/sandbox/v1", "--env-var", "api_key="+p.Key(p.c.Org, "test", "all").Key).expect(
		t, 5, "Tell a sample event, which reports nothing real, as if it had happened", "Empty the sandbox")
	r := p.newman(t, path)
	r.expect(t, 200)
	if done := r.done(); len(done)*100 < len(r.Run.Executions)*60 { // the others lack a record to act on; two thirds succeed
		t.Errorf("only %d of %d requests succeed; the others: %s", len(done), len(r.Run.Executions), r.refused())
	}
	t.Logf("%d requests, %d of them succeed", len(r.Run.Executions), len(r.done()))
}

// place is a server with an organisation that has one of most things.
type place struct {
	*rig.Server
	c    *rig.Client
	ids  map[string]string // values of the collection's variables
	hook string            // address at which a receiver listens
	crew []rig.User        // Grace, Bob and Carol, with extensions 100, 101 and 102
}

func newPlace(t *testing.T) *place {
	t.Helper()
	s := rig.Shared(t, rig.Options{Load: rig.Browser, Flags: []string{"--transcriber", "off"}})
	p := &place{Server: s, c: s.Org("live"), ids: map[string]string{}}
	p.c.Key = s.Command("admin", "keys", "create", "--org", p.c.Org, "--scopes", "all", "--env", "live", "--kind", "partner")
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	t.Cleanup(hook.Close)
	p.hook = hook.URL
	grace, bob := p.c.AddUser("Grace"), p.c.AddUser("Bob")
	p.crew = []rig.User{grace, bob, p.c.AddUser("Carol")}
	p.ids["api_key"], p.ids["user_id"] = p.c.Key, bob.ID
	for _, x := range []struct {
		path string
		body map[string]any
	}{
		{"/webhooks", map[string]any{"url": p.hook, "events": []string{"*"}}},
		{"/trunks", map[string]any{"name": "Ours", "host": "sip.carrier.example"}},
		{"/devices", map[string]any{"user_id": bob.ID, "name": "Softphone", "kind": "softphone"}},
		{"/queues", map[string]any{"name": "Office", "extension": "601"}},
		{"/contacts", map[string]any{"first_name": "Heidi", "phones": []map[string]any{{"number": "+12025550187"}}}},
		{"/partners", map[string]any{"name": "Child", "plan": "business", "admin_email": "child@example.com"}},
	} {
		var made struct{ ID string }
		p.c.Want(201, "POST", x.path, x.body, &made)
		p.ids[strings.TrimSuffix(x.path[1:], "s")+"_id"] = made.ID
	}
	p.ids["phone"] = "+12025550187"
	p.talk(t, grace, bob)
	return p
}

// talk makes a recorded call between two users. It returns when the call, its recording and a delivery about it
// exist.
func (p *place) talk(t *testing.T, from, to rig.User) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit.Hang(0))
	defer cancel()
	one, two := p.telephone(t, ctx, from), p.telephone(t, ctx, to)
	defer one.Close()
	defer two.Close()
	mine, err := one.Call(ctx, to.Extension)
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.Say(ctx, make([]int16, 8000)); err != nil {
		t.Fatal(err)
	}
	mine.HangUp()
	<-mine.Over()
	for name, path := range map[string]string{"call_id": "/cdr", "recording_id": "/recordings", "delivery_id": "/webhooks/" + p.ids["webhook_id"] + "/deliveries"} {
		var page struct{ Data []map[string]any }
		rig.Until(t, path, 30*time.Second, func() bool {
			p.c.Want(200, "GET", path, nil, &page)
			return len(page.Data) > 0
		})
		id, _ := page.Data[0]["call_id"].(string)
		if name != "call_id" {
			id, _ = page.Data[0]["id"].(string)
		}
		p.ids[name] = id
	}
}

// speaking connects Grace and Bob until the test ends, with Carol's telephone registered, and returns the call.
func (p *place) speaking(t *testing.T) (callID string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var phones []*softphone.Phone
	for _, u := range p.crew {
		phones = append(phones, p.telephone(t, ctx, u))
	}
	line, err := phones[0].Call(ctx, p.crew[1].Extension)
	if err != nil {
		t.Fatal(err)
	}
	var said sync.WaitGroup
	said.Go(func() {
		for ctx.Err() == nil && line.Say(ctx, make([]int16, 8000)) == nil {
		}
	})
	t.Cleanup(func() {
		cancel()
		said.Wait()
		for _, phone := range phones {
			phone.Close()
		}
	})
	var live struct{ Data []struct{ ID, Status string } }
	rig.Until(t, "the call to be answered", 30*time.Second, func() bool {
		p.c.Want(200, "GET", "/calls/live", nil, &live)
		return len(live.Data) == 1 && live.Data[0].Status == "in_progress"
	})
	return live.Data[0].ID
}

func (p *place) telephone(t *testing.T, ctx context.Context, u rig.User) *softphone.Phone {
	t.Helper()
	account := softphone.Account{Registrar: p.SIP, Username: u.SIP.Username, Domain: u.SIP.Domain, Password: u.SIP.Password}
	phone, err := softphone.Open(ctx, account, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return phone
}

// collection fetches the collection from the server and fills in its variables, as a user of Postman would. It
// replaces the addresses in examples by that of the test's receiver, so that nothing is sent to other hosts. It
// removes the stream, which does not end.
func (p *place) collection(t *testing.T, base string) string {
	t.Helper()
	answer, err := http.Get("http://" + p.HTTP + "/postman.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `"value": "http://`+p.HTTP+`/api/v1"`) {
		t.Error("the collection does not name the server it comes from")
	}
	var c struct {
		Info     map[string]any   `json:"info"`
		Auth     map[string]any   `json:"auth"`
		Variable []map[string]any `json:"variable"`
		Item     []struct {
			Name string           `json:"name"`
			Item []map[string]any `json:"item"`
		} `json:"item"`
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(b), "https://example.com/hooks", p.hook)), &c); err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Variable {
		if id, ok := p.ids[v["key"].(string)]; ok {
			v["value"] = id
		}
		if v["key"] == "base_url" {
			v["value"] = base
		}
	}
	for i, folder := range c.Item {
		c.Item[i].Item = slices.DeleteFunc(folder.Item, func(request map[string]any) bool {
			path, _ := request["request"].(map[string]any)["url"].(map[string]any)["raw"].(string)
			return path == "{{base_url}}/events/stream"
		})
	}
	path := filepath.Join(t.TempDir(), "collection.json")
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(encoded))
	return path
}

// report is newman's report of a run.
type report struct {
	Run struct {
		Executions []struct {
			Item     struct{ Name string }
			Request  struct{ Method string }
			Response struct {
				Code   int
				Stream struct{ Data []int } // bytes
				Header []struct{ Key, Value string }
			}
			RequestError map[string]any
			Assertions   []struct {
				Assertion string
				Error     *struct{ Message string }
			}
		}
	}
}

// newman runs a collection with further flags of its command line.
func (p *place) newman(t *testing.T, collection string, flags ...string) (r report) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	said, err := tool(t, ".", "newman", append([]string{"run", collection, "--reporters", "json", "--reporter-json-export", path, "--timeout-request", "20000"}, flags...)...)
	b, missing := os.ReadFile(path)
	if missing != nil {
		t.Fatalf("newman: %v\n%s", err, said)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// expect fails for every failed assertion of the collection, if fewer than least requests ran, and if one of the
// named requests did not succeed.
func (r report) expect(t *testing.T, least int, succeed ...string) {
	t.Helper()
	if len(r.Run.Executions) < least {
		t.Errorf("only %d requests were run", len(r.Run.Executions))
	}
	done := r.done()
	for _, name := range succeed {
		if !slices.Contains(done, name) {
			t.Errorf("%s does not succeed; so do not: %s", name, r.refused())
		}
	}
	for _, e := range r.Run.Executions {
		if len(e.RequestError) > 0 || len(e.Assertions) < 2 {
			t.Errorf("%s %s: %v, %d assertions", e.Request.Method, e.Item.Name, e.RequestError, len(e.Assertions))
		}
		for _, a := range e.Assertions {
			if a.Error != nil {
				body := make([]byte, 0, len(e.Response.Stream.Data))
				for _, b := range e.Response.Stream.Data {
					body = append(body, byte(b))
				}
				t.Errorf("%s: %s: %s: %.700s", e.Item.Name, a.Assertion, a.Error.Message, body)
			}
		}
	}
}

// done returns the names of the requests that succeeded.
func (r report) done() (names []string) {
	for _, e := range r.Run.Executions {
		if e.Response.Code < 300 {
			names = append(names, e.Item.Name)
		}
	}
	return names
}

// refused returns the other requests with their status.
func (r report) refused() string {
	by := map[int][]string{}
	for _, e := range r.Run.Executions {
		if e.Response.Code >= 300 {
			by[e.Response.Code] = append(by[e.Response.Code], e.Item.Name)
		}
	}
	var b strings.Builder
	for _, code := range slices.Sorted(maps.Keys(by)) {
		b.WriteString("\n" + http.StatusText(code) + ": " + strings.Join(by[code], "; "))
	}
	return b.String()
}
