package smscarrier_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/messaging/sms"
	"soniq/internal/messaging/smscarrier"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/redact"
	"soniq/internal/platform/seal"
)

const own, mobile, secret = "+12025550143", "+12025550170", "a secret of ours"

// fixture has the service with one organisation that has an SMS number, and a second organisation.
type fixture struct {
	*smscarrier.Service
	t          *testing.T
	db         *db.DB
	config     smscarrier.Config
	messages   *sms.Service
	jobs       *job.Queue
	server     *optest.Server
	mux        *http.ServeMux
	org, other string
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	b, log := bus.New(), slog.New(slog.DiscardHandler)
	keys, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	orgs := org.New(d, b, time.Now)
	h := &fixture{t: t, db: d, mux: http.NewServeMux(), jobs: &job.Queue{Bus: b}}
	for _, id := range []*string{&h.org, &h.other} {
		o, err := orgs.Create(context.Background(), "Acme", "US")
		if err != nil {
			t.Fatal(err)
		}
		*id = o.ID
	}
	f := fakeDependencies{h}
	h.messages = sms.New(sms.Config{DB: d, Outbox: &event.Outbox{DB: d, Bus: b},
		Jobs: h.jobs, Log: log, Digester: keys, Numbers: f, Router: f, Users: f, Carriers: f, Contacts: f, Phones: f,
		Redactions: redact.Off{}})
	m := h.messages
	h.config = smscarrier.Config{DB: d, Bus: b, Orgs: orgs, Seal: keys,
		Guard:    egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}),
		Messages: m, Log: log, BaseURL: "https://voice.example.com", Node: "n1", Numbers: f}
	h.Service = smscarrier.New(h.config)
	h.server = optest.New(t, d, append(h.Operations(), m.Operations()...)...)
	h.Mount(h.mux)
	return h
}

// startJobs starts the workers of the message queue.
func (h *fixture) startJobs() {
	h.t.Helper()
	r := &job.Runner{DB: h.db, Queue: h.jobs, Name: sms.Queue, Node: "n1", Log: slog.New(slog.DiscardHandler),
		Options: job.Options{Workers: 8, Timeout: time.Minute, LaneLimit: h.LaneLimit}}
	h.messages.Handle(r)
	if err := r.Start(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { r.Stop(context.Background()) })
}

func (h *fixture) request(method, path string, body any) *optest.Answer {
	h.t.Helper()
	return h.server.Do(optest.Admin(h.org), method, path, body)
}

// waitStatus waits until a message has a status.
func (h *fixture) waitStatus(id, status string) *optest.Answer {
	h.t.Helper()
	late, tick := time.After(2*time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		a := h.request("GET", "/sms/"+id, nil).Want(200)
		if a.Text("status") == status {
			return a
		}
		select {
		case <-tick.C:
		case <-late:
			h.t.Fatalf("message is %s, not %s: %s", a.Text("status"), status, a.Bytes)
		}
	}
}

// postCallback posts to a callback URL, with the carrier's signature.
func (h *fixture) postCallback(address, body, key string) int {
	h.t.Helper()
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	r := httptest.NewRequest("POST", strings.TrimPrefix(address, "https://voice.example.com"), strings.NewReader(body))
	r.Header.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	return w.Code
}

// fakeVendor is a carrier with an HTTP API.
type fakeVendor struct {
	*httptest.Server
	mu     sync.Mutex // guards the fields below
	got    []map[string]string
	answer func(n int, w http.ResponseWriter)
}

func newFakeVendor(t *testing.T) *fakeVendor {
	v := &fakeVendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var m map[string]string
		_ = json.Unmarshal(raw, &m)
		m["key"] = r.Header.Get("X-Key")
		v.mu.Lock()
		v.got = append(v.got, m)
		n, answer := len(v.got), v.answer
		v.mu.Unlock()
		if answer != nil {
			answer(n, w)
			return
		}
		fmt.Fprintf(w, `{"messages":[{"id":"m%d"}]}`, n)
	}))
	t.Cleanup(v.Close)
	return v
}

func (v *fakeVendor) requests() []map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]map[string]string{}, v.got...)
}

// connect connects a carrier to a fake vendor.
func (h *fixture) connect(v *fakeVendor, name string, more map[string]any) *optest.Answer {
	h.t.Helper()
	body := map[string]any{"provider": "http", "name": name, "rate_per_second": 1000, "number_rate_per_second": 1000, "settings": map[string]any{
		"send": map[string]any{"url": v.URL + "/messages?to={{to}}", "headers": map[string]any{"X-Key": "k3y"},
			"json": map[string]any{"from": "{{from_digits}}", "to": "{{to}}", "text": "{{text}}", "ref": "{{reference}}"}},
		"id": "messages[0].id", "error": "error.code",
		"callback": map[string]any{"header": "X-Signature", "hmac": "sha256", "secret": secret, "items": "events[*]",
			"receipt": map[string]any{"id": "id", "status": "state", "error": "code", "delivered": []string{"done"}, "undelivered": []string{"lost"}},
			"message": map[string]any{"id": "mid", "from": "from", "to": "to", "text": "text"}}}}
	for k, x := range more {
		body[k] = x
	}
	return h.request("POST", "/sms/carriers", body).Want(201)
}

func (h *fixture) sendMessage(to, body string) string {
	h.t.Helper()
	return h.request("POST", "/sms", map[string]any{"from": own, "to": to, "body": body}).Want(201).Text("id")
}

func TestCarrier_SecretsMasked(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, v := newFixture(t, d), newFakeVendor(t)
		c := h.connect(v, "Vendor", map[string]any{"prefixes": []string{"+1"}, "numbers": []string{"num_1"}})
		if bytes.Contains(c.Bytes, []byte(secret)) || bytes.Contains(c.Bytes, []byte("k3y")) || c.Text("numbers.0") != own || c.Text("status") != "active" ||
			!strings.HasPrefix(c.Text("callback_url"), "https://voice.example.com/carriers/sms/") {
			t.Errorf("the carrier: %s", c.Bytes)
		}
		path := "/sms/carriers/" + c.Text("id")
		changed := h.request("PATCH", path, map[string]any{"name": "New", "settings": map[string]any{"send": map[string]any{"headers": map[string]any{"X-Key": "********"}}}}).Want(200)
		if changed.Text("name") != "New" || changed.Text("callback_url") != c.Text("callback_url") {
			t.Errorf("changed: %s", changed.Bytes)
		}
		for _, to := range []string{"https://evil.example/?to={{to}}", strings.Replace(v.URL, "http://", "https://", 1) + "/messages"} {
			h.request("PATCH", path, map[string]any{"settings": map[string]any{"send": map[string]any{"url": to}}}).Want(422).
				Refused("validation_failed", "settings.send.headers.X-Key secret_required", "settings.callback.secret secret_required")
		}
		h.startJobs()
		h.waitStatus(h.sendMessage(mobile, "hi"), "sent")
		if got := v.requests(); got[0]["key"] != "k3y" || got[0]["from"] != "12025550143" || got[0]["text"] != "hi" {
			t.Errorf("asterisks took the secret away: %v", got)
		}
		h.request("POST", "/sms/carriers", map[string]any{"provider": "http", "name": " new", "prefixes": []string{"49"}, "numbers": []string{"+12025550999"},
			"rate_per_second": 0, "settings": map[string]any{"send": map[string]any{"url": "ftp://x/{{nonsense}}"}}}).
			Want(422).Refused("validation_failed", "name already_exists", "prefixes[0] invalid_e164", "rate_per_second out_of_range", "numbers[0] number_not_owned",
			"settings.send.url invalid_url", "settings.send unknown_placeholder")
		h.request("POST", "/sms/carriers", map[string]any{"provider": "smpp", "name": "x", "settings": map[string]any{"host": "10.0.0.1", "system_id": "", "bind": "both"}}).
			Want(422).Refused("validation_failed", "settings.host blocked_address", "settings.system_id invalid_value", "settings.bind invalid_value")
		foreign := optest.Admin(h.other)
		h.server.Do(foreign, "GET", path, nil).Want(404)
		h.server.Do(foreign, "DELETE", path, nil).Want(404)
		h.request("DELETE", path, nil).Want(204)
		h.request("GET", path, nil).Want(404)
	})
}

func TestCallback_VerifiedAndIdempotent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, v := newFixture(t, d), newFakeVendor(t)
		address := h.connect(v, "Vendor", nil).Text("callback_url")
		early := make(chan int, 1)
		v.answer = func(n int, w http.ResponseWriter) { // the receipt comes before the response
			early <- h.postCallback(address, fmt.Sprintf(`{"events":[{"id":"m%d","state":"done"}]}`, n), secret)
			fmt.Fprintf(w, `{"messages":[{"id":"m%d"}]}`, n)
		}
		h.startJobs()
		h.waitStatus(h.sendMessage(mobile, "hi"), "delivered")
		if status := <-early; status != 204 {
			t.Errorf("an early receipt was answered %d", status)
		}
		v.mu.Lock()
		v.answer = nil
		v.mu.Unlock()
		id := h.sendMessage(mobile, "again")
		h.waitStatus(id, "sent")
		lost := `{"events":[{"id":"m2","state":"lost","code":"E7"},{"id":"m2","state":"done"},{"id":"nobody","state":"done"},
			{"mid":"i1","from":"12025550170","to":"12025550143","text":"Hello"},{"from":"1","to":"12025550999","text":"not ours"}]}`
		for range 2 {
			if status := h.postCallback(address, lost, secret); status != 204 {
				t.Errorf("a callback was answered %d", status)
			}
		}
		if a := h.waitStatus(id, "undelivered"); a.Text("error.carrier_code") != "E7" {
			t.Errorf("undelivered: %s", a.Bytes)
		}
		in := h.request("GET", "/sms?direction=inbound", nil).Want(200)
		if in.Text("data.0.from_number") != mobile || in.Text("data.0.body") != "Hello" || in.At("data.1") != nil {
			t.Errorf("came in: %s", in.Bytes)
		}
		for what, status := range map[string]int{"another key": h.postCallback(address, lost, "another key"), "another address": h.postCallback(address+"x", lost, secret)} {
			if want := map[string]int{"another key": 403, "another address": 404}[what]; status != want {
				t.Errorf("with %s a callback was answered %d", what, status)
			}
		}
	})
}

// TestCallback_GroupMessageStored receives group messages in which the organisation's number is a further recipient.
func TestCallback_GroupMessageStored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		public, private, _ := ed25519.GenerateKey(nil)
		address := h.request("POST", "/sms/carriers", map[string]any{"provider": "telnyx", "name": "Telnyx", "settings": map[string]any{
			"api_key": "KEY1", "public_key": base64.StdEncoding.EncodeToString(public)}}).Want(201).Text("callback_url")
		for i, to := range []string{`"to":[{"phone_number":"+12025550999"},{"phone_number":"` + own + `"}],"cc":[]`,
			`"to":[{"phone_number":"+12025550999"}],"cc":[{"phone_number":"+12025550998"},{"phone_number":"` + own + `"}]`,
			`"to":[{"phone_number":"+12025550999"}],"cc":[{"phone_number":"+12025550998"}]`} {
			body := fmt.Sprintf(`{"data":{"event_type":"message.received","payload":{"id":"g%d","from":{"phone_number":"%s"},"text":"group %d",%s}}}`,
				i, mobile, i, to)
			stamp := strconv.FormatInt(time.Now().Unix(), 10)
			r := httptest.NewRequest("POST", strings.TrimPrefix(address, "https://voice.example.com"), strings.NewReader(body))
			r.Header.Set("Telnyx-Timestamp", stamp)
			r.Header.Set("Telnyx-Signature-Ed25519", base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(stamp+"|"+body))))
			w := httptest.NewRecorder()
			if h.mux.ServeHTTP(w, r); w.Code >= 300 {
				t.Fatalf("answered %d: %s", w.Code, w.Body)
			}
		}
		in := h.request("GET", "/sms?direction=inbound", nil).Want(200)
		if in.At("data.1") == nil || in.At("data.2") != nil || in.Text("data.0.to_number") != own || in.Text("data.1.to_number") != own {
			t.Errorf("received: %s", in.Bytes)
		}
	})
}

func TestRoute_PrefixAndFailover(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		usual, special, dead := newFakeVendor(t), newFakeVendor(t), newFakeVendor(t)
		h.connect(usual, "usual", map[string]any{"priority": 200, "prefixes": []string{"+44"}})
		h.connect(special, "special", map[string]any{"prefixes": []string{"+1202", "+49"}})
		h.connect(dead, "dead", map[string]any{"prefixes": []string{"+120255501"}})
		dead.Close()
		h.startJobs()
		h.waitStatus(h.sendMessage("+441632960000", "abroad"), "sent")
		h.waitStatus(h.sendMessage("+12025550999", "near"), "sent")
		h.waitStatus(h.sendMessage("+12025550170", "over a dead one"), "sent")
		if len(usual.requests()) != 1 || len(special.requests()) != 2 {
			t.Errorf("%d by the usual, %d by the special one", len(usual.requests()), len(special.requests()))
		}
		special.mu.Lock()
		special.answer = func(_ int, w http.ResponseWriter) { http.Error(w, "{}", 500) }
		special.mu.Unlock()
		id := h.sendMessage("+12025550998", "nobody knows")
		if a := h.waitStatus(id, "failed"); a.Text("error.code") != "unknown" || len(usual.requests()) != 1 {
			t.Errorf("what may have left: %s, %d by another", a.Bytes, len(usual.requests()))
		}
		special.mu.Lock()
		special.answer = func(n int, w http.ResponseWriter) {
			if n < 5 {
				w.Header().Set("Retry-After", "1")
				http.Error(w, "{}", http.StatusTooManyRequests)
				return
			}
			io.WriteString(w, `{"error":{"code":"30006"}}`)
		}
		special.mu.Unlock()
		id = h.sendMessage("+12025550997", "limited, then refused")
		if a := h.waitStatus(id, "failed"); a.Text("error.code") != "carrier_rejected" || a.Text("error.carrier_code") != "30006" {
			t.Errorf("refused: %s", a.Bytes)
		}
	})
}

// Of two nodes on one database one keeps a connection; the other takes it when the first releases it.
func TestConnection_OneNodeHoldsLease(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		config := h.config
		config.Node, config.Bus = "n2", bus.New()
		other := smscarrier.New(config)
		c := h.request("POST", "/sms/carriers", map[string]any{"provider": "smpp", "name": "Centre", "settings": map[string]any{"host": "127.0.0.1", "port": 9, "system_id": "x"}}).Want(201)
		if c.Text("status") != "connecting" || c.At("callback_url") != nil {
			t.Errorf("the carrier: %s", c.Bytes)
		}
		holder := func() (node string) {
			_ = d.Read(context.Background()).QueryRow(context.Background(), `SELECT node FROM sms_carrier_states WHERE org_id = $1 AND held_until > 0`, h.org).Scan(&node)
			return node
		}
		first, stopFirst := context.WithCancel(context.Background())
		second, stopSecond := context.WithCancel(context.Background())
		var one, two sync.WaitGroup
		one.Go(func() { h.Run(first) })
		waitFor(t, "a node that holds", func() bool { return holder() == "n1" })
		two.Go(func() { other.Run(second) })
		waitFor(t, "the state of the carrier", func() bool { return h.request("GET", "/sms/carriers/"+c.Text("id"), nil).Text("status") == "degraded" })
		stopFirst()
		one.Wait()
		waitFor(t, "another node that holds", func() bool { return holder() == "n2" })
		stopSecond()
		two.Wait()
	})
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late, tick := time.After(2*time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(what, "did not come")
		}
	}
}
