package api_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages checks the pages that are served beside the operations.
func pages(t *testing.T, s *stage) {
	t.Run("documentation needs nothing from outside", func(t *testing.T) { documentation(t, s) })
	t.Run("index", func(t *testing.T) { index(t, s) })
	t.Run("health, readiness and metrics", func(t *testing.T) { health(t, s) })
	t.Run("every error code is explained", func(t *testing.T) {
		r := s.a.call(t, "GET", "/users/none", nil)
		p := problemOf(r)
		if page := get(t, s.Server, p.Type); page.Status != 200 || !strings.Contains(string(page.Body), p.Code) {
			t.Errorf("%s: %d", p.Type, page.Status)
		}
		if page := get(t, s.Server, "/errors/nonsense"); page.Status != 404 {
			t.Errorf("an unknown code: %d", page.Status)
		}
	})
}

var reference = regexp.MustCompile(`(?:src|href|apiDescriptionUrl)="([^"]*)"`)

// documentation reads the page as a browser without internet access does: the server itself must serve every
// referenced resource.
func documentation(t *testing.T, s *stage) {
	doc := get(t, s.Server, "/docs")
	if doc.Status != 200 || !strings.HasPrefix(doc.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("/docs: %d %s", doc.Status, doc.Header.Get("Content-Type"))
	}
	found := reference.FindAllStringSubmatch(string(doc.Body), -1)
	if len(found) < 3 {
		t.Fatalf("only %d references in the page: %s", len(found), doc.Body)
	}
	for _, m := range found {
		if strings.HasPrefix(m[1], "data:") { // contained in the page itself
			continue
		}
		if !strings.HasPrefix(m[1], "/") || strings.HasPrefix(m[1], "//") {
			t.Errorf("/docs refers to %s", m[1])
			continue
		}
		r := get(t, s.Server, m[1])
		if r.Status != 200 || len(r.Body) == 0 {
			t.Errorf("%s: %d", m[1], r.Status)
		}
		if strings.HasSuffix(m[1], ".css") {
			for _, outside := range regexp.MustCompile(`(?i)(@import|url\()\s*["']?(https?:)?//[^)]*`).FindAllString(string(r.Body), 3) {
				t.Errorf("%s loads %s", m[1], outside)
			}
		}
	}
	if strings.Contains(string(doc.Body), "://") {
		t.Errorf("an outside address in /docs: %s", doc.Body)
	}
}

// index checks that the index lists fifteen resources and every operation.
func index(t *testing.T, s *stage) {
	var i struct {
		Service, Version, Status, Environment string
		Resources                             []string
		Endpoints                             []struct{ Method, Path, Scope, Rollout string }
	}
	for _, path := range []string{"/v1", "/api/v1", "/sandbox/v1"} {
		r := get(t, s.Server, path)
		if err := json.Unmarshal(r.Body, &i); err != nil || r.Status != 200 {
			t.Fatalf("%s: %d %v %s", path, r.Status, err, r.Body)
		}
		if len(i.Resources) != 15 || i.Version != "1.0.0" || i.Status != "live" {
			t.Errorf("%s: %d resources, version %s, status %s", path, len(i.Resources), i.Version, i.Status)
		}
		if want := map[string]string{"/sandbox/v1": "sandbox"}[path]; want != "" && i.Environment != want {
			t.Errorf("%s: environment %s", path, i.Environment)
		}
		described := len(s.doc.operations) + len(s.doc.personal) + s.doc.endless
		if path == "/sandbox/v1" {
			described += len(s.doc.sandbox)
		}
		if len(i.Endpoints) != described {
			t.Errorf("%s lists %d operations, the description has %d", path, len(i.Endpoints), described)
		}
	}
	read := func(e struct{ Method, Path, Scope, Rollout string }) bool {
		return e.Method == "GET" && strings.HasPrefix(e.Path, "/sandbox/v1/calls/:id")
	}
	if !slices.ContainsFunc(i.Endpoints, read) {
		t.Error("the sandbox's index does not list its calls")
	}
}

func health(t *testing.T, s *stage) {
	for path, want := range map[string]string{"/health": `"ok"`, "/ready": `"ready"`} {
		if r := get(t, s.Server, path); r.Status != 200 || !strings.Contains(string(r.Body), want) {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
	r := get(t, s.Server, "/metrics")
	for _, name := range []string{"soniq_calls_total 1", "soniq_calls_answered_total 1", "soniq_sip_panics_total 0", "soniq_calls_active 0",
		"soniq_operation_seconds_count", "soniq_db_commits_total", "go_goroutines", "process_resident_memory_bytes"} {
		if !strings.Contains(string(r.Body), name) {
			t.Errorf("metrics have no %s", name)
		}
	}
	for _, secret := range []string{s.a.Key, s.hooks.Secret} {
		if strings.Contains(string(r.Body), secret) {
			t.Error("a secret is in the metrics")
		}
	}
}
