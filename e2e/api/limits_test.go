package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// TestLimits_SmallQuotas exceeds the quotas of a server with small quotas.
func TestLimits_SmallQuotas(t *testing.T) {
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "off", "--rate-reads", "40", "--rate-writes", "12", "--rate-burst", "0",
		"--rate-searches", "3", "--rate-attempts", "20", "--cors-origins", "https://app.example.org"}})
	st := &stage{Server: s, doc: readDocument(t, s), ids: map[string]map[string]string{}}
	for _, c := range []struct {
		name string
		run  func(*testing.T, *stage)
	}{
		{"every answer tells what is left", told},
		{"exactly the quota is let through", exact},
		{"searches have a quota of their own", searches},
		{"pages of other origins", origins},
		{"who tries keys is slowed down, and nobody else", attempts},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, st) })
	}
}

var (
	policyField = regexp.MustCompile(`^"[a-z]+";q=\d+;w=\d+(, "[a-z]+";q=\d+;w=\d+)*$`)
	limitField  = regexp.MustCompile(`^"([a-z]+)";r=(\d+);t=(\d+)`)
)

// checkQuota checks the rate-limit fields of a policy, and returns the remaining quota.
func checkQuota(t *testing.T, what, policy string, quota int, r rig.Response) int {
	t.Helper()
	h := r.Header
	m := limitField.FindStringSubmatch(h.Get("RateLimit"))
	if !policyField.MatchString(h.Get("RateLimit-Policy")) || m == nil || m[1] != policy {
		t.Errorf("%s: RateLimit-Policy %q, RateLimit %q; want %q", what, h.Get("RateLimit-Policy"), h.Get("RateLimit"), policy)
		return -1
	}
	left, _ := strconv.Atoi(m[2])
	reset, _ := strconv.Atoi(m[3])
	if h.Get("RateLimit-Limit") != strconv.Itoa(quota) || h.Get("RateLimit-Remaining") != m[2] || h.Get("RateLimit-Reset") != m[3] ||
		left > quota || reset < 1 || reset > 60 {
		t.Errorf("%s: %v", what, h)
	}
	return left
}

func told(t *testing.T, s *stage) {
	d := s.org(t, "live")
	for i, c := range []struct {
		method, path string
		status       int
	}{{"GET", "/users", 200}, {"GET", "/users/none", 404}, {"GET", "/nothing", 404}, {"GET", "/users?limit=0", 400}, {"GET", "", 200}} {
		r := d.call(t, c.method, c.path, nil)
		if left := checkQuota(t, c.method+" "+c.path, "reads", 40, r); r.Status != c.status || left != 39-i {
			t.Errorf("%s %s: %d with %d left, want %d with %d", c.method, c.path, r.Status, left, c.status, 39-i)
		}
	}
	if left := checkQuota(t, "a write", "writes", 12, d.call(t, "POST", "/users", map[string]any{})); left != 11 {
		t.Errorf("after one write %d are left", left)
	}
	weak := s.desk(d.Org, "live", "calls:read")
	checkQuota(t, "a refusal", "reads", 40, weak.call(t, "GET", "/users", nil))
}

// exact sends many requests at once: exactly the quota is accepted, and another credential is not limited.
func exact(t *testing.T, s *stage) {
	d := s.org(t, "live")
	var through, refused atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				r := d.call(t, "GET", "/users", nil)
				switch r.Status {
				case 200:
					through.Add(1)
				case 429:
					refused.Add(1)
					tooMany(t, r, "reads")
				default:
					t.Errorf("%d %s", r.Status, r.Body)
				}
			}
		})
	}
	all.Wait()
	if through.Load() != 40 || refused.Load() != 40 {
		t.Errorf("%d let through and %d refused, want 40 and 40", through.Load(), refused.Load())
	}
	d.refused(t, 422, "validation_failed", "POST", "/users", map[string]any{}) // writes have a quota of their own
	s.desk(d.Org, "live", "users:admin").want(t, 200, "GET", "/users", nil, nil)
}

// tooMany checks the refusal of a request beyond the quota.
func tooMany(t *testing.T, r rig.Response, policy string) {
	t.Helper()
	p := r.JSON()
	wait, _ := strconv.Atoi(r.Header.Get("Retry-After"))
	violated, _ := p["violated-policies"].([]any)
	if p["code"] != "rate_limited" || p["type"] != "https://iana.org/assignments/http-problem-types#quota-exceeded" || wait < 1 || wait > 60 ||
		len(violated) != 1 || violated[0] != policy || r.Header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("429 with Retry-After %q: %s", r.Header.Get("Retry-After"), r.Body)
	}
}

func searches(t *testing.T, s *stage) {
	d := s.org(t, "live")
	limited := false
	rig.Until(t, "a search too many within a second", 20*time.Second, func() bool {
		r := d.call(t, "POST", "/memory/search", map[string]any{"query": "x"})
		if limited = r.Status == 429; limited {
			tooMany(t, r, "searches")
		} else {
			checkQuota(t, "a search", "searches", 3, r)
		}
		return limited
	})
	if left := checkQuota(t, "a read", "reads", 40, d.call(t, "GET", "/users", nil)); left != 39 {
		t.Errorf("searches took from the reads: %d left", left)
	}
}

func origins(t *testing.T, s *stage) {
	ask := func(method, path, origin string, header ...string) rig.Response {
		q, err := http.NewRequest(method, "http://"+s.HTTP+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Origin", origin)
		for i := 0; i+1 < len(header); i += 2 {
			q.Header.Set(header[i], header[i+1])
		}
		return send(t, q)
	}
	const good, bad = "https://app.example.org", "https://evil.example.org"
	for _, o := range s.doc.operations {
		path := prefix + o.at(nowhere)
		r := ask("OPTIONS", path, good, "Access-Control-Request-Method", o.Method, "Access-Control-Request-Headers", "authorization, if-match")
		h := r.Header
		if r.Status != 204 || h.Get("Access-Control-Allow-Origin") != good || !strings.Contains(h.Get("Access-Control-Allow-Methods"), o.Method) ||
			!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Authorization") || h.Get("Vary") != "Origin" {
			t.Errorf("preflight of %s: %d %v", o.ID, r.Status, h)
		}
		if h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: browsers are told to send cookies", o.ID)
		}
	}
	if r := ask("GET", "/v1", good); r.Header.Get("Access-Control-Allow-Origin") != good ||
		!strings.Contains(r.Header.Get("Access-Control-Expose-Headers"), "RateLimit-Policy") {
		t.Errorf("an answer to the page: %v", r.Header)
	}
	if r := ask("GET", "/openapi.json", good); r.Header.Get("Access-Control-Allow-Origin") != good {
		t.Errorf("the description: %v", r.Header)
	}
	for _, r := range []rig.Response{ask("GET", "/v1", bad), ask("OPTIONS", "/v1/users", bad, "Access-Control-Request-Method", "GET")} {
		if r.Header.Get("Access-Control-Allow-Origin") != "" || r.Header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("another page: %v", r.Header)
		}
	}
	if r := ask("OPTIONS", "/v1/nothing", good, "Access-Control-Request-Method", "GET"); r.Status != 404 {
		t.Errorf("preflight of nothing: %d", r.Status)
	}
}

// attempts tries made-up keys until the server rejects them without a lookup. A key that was valid before still works
// from the same address.
func attempts(t *testing.T, s *stage) {
	d := s.org(t, "live")
	d.want(t, 200, "GET", "/users", nil, nil)
	other := s.org(t, "live")
	wrong := desk{&rig.Client{T: t, Server: s.Server, Prefix: prefix}, s.doc}
	tries := 0
	for ; tries < 30; tries++ {
		wrong.Key = fmt.Sprintf("soniq_live_guess%d", tries)
		r := wrong.call(t, "GET", "/users", nil)
		if r.Status == 429 {
			tooMany(t, r, "attempts")
			break
		}
		if r.Status != 401 {
			t.Fatalf("a made-up key: %d %s", r.Status, r.Body)
		}
		checkQuota(t, "a made-up key", "attempts", 20, r)
	}
	if tries < 5 || tries > 12 {
		t.Errorf("%d made-up keys were looked at; each should cost more than the one before", tries)
	}
	d.want(t, 200, "GET", "/users", nil, nil)
	other.refused(t, 429, "rate_limited", "GET", "/users", nil) // it was not used from this address before
	wrong.Key = ""
	wrong.refused(t, 429, "rate_limited", "GET", "/users", nil)
}
