package crm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// TestMeasure_Lists measures copying ten thousand people from real servers, reading them again without a change, and
// applying one change. It runs with SONIQ_BENCH only.
func TestMeasure_Lists(t *testing.T) {
	if os.Getenv("SONIQ_BENCH") == "" {
		t.Skip("measured with SONIQ_BENCH=1")
	}
	const people = 10_000
	c := newCompany(rig.Start(t, rig.Options{Env: quiet}))
	text := table(crowd("7942", "Ada", people))
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
	defer list.Close()
	r, d := rig.StartRadicale(t, crowd("7943", "Bea", people)), rig.StartSlapd(t, crowd("7944", "Cem", people))
	c.copyTimed("csv", map[string]any{"url": list.URL}, people)
	c.copyTimed("ldap", reading(d, "mode", "copy"), people)
	id := c.copyTimed("carddav", book(r), people)
	began := time.Now()
	r.Put(rig.Person{ID: "new", Name: "Bert New", Phones: []string{"020 7946 9999"}})
	c.notice(id)
	rig.Until(t, "the change", time.Minute, func() bool { return c.lookup("phone", "+442079469999").Status == 200 })
	t.Logf("carddav: one change is found %s after it was made, and told by a notice", time.Since(began))
}

// TestMeasure_LDAP measures lookups in a directory of ten thousand people, with and without indexes for the number
// attributes. It runs with SONIQ_BENCH only.
func TestMeasure_LDAP(t *testing.T) {
	if os.Getenv("SONIQ_BENCH") == "" {
		t.Skip("measured with SONIQ_BENCH=1")
	}
	const people = 10_000
	d := rig.StartSlapd(t, crowd("7944", "Cem", people))
	s := rig.Start(t, rig.Options{Env: quiet})
	for what, attributes := range map[string][]string{"indexed": {"telephoneNumber", "mobile"}, "one of three not indexed": {"telephoneNumber", "mobile", "homePhone"}} {
		c := newCompany(s)
		c.connect("ldap", "Directory", reading(d, "requests_per_minute", 60000, "attributes", map[string]any{"phones": attributes}))
		for way := range ways {
			var took []time.Duration
			for i := way; len(took) < 200; i += 5 {
				began := time.Now()
				if w := c.lookup("phone", e164("7944", i), "timeout_ms=2000"); w.Status != 200 {
					t.Fatalf("%+v", w)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			t.Logf("%s, written %s: p50 %s, p95 %s, p99 %s", what, ways[way]("7944", "0000"), took[100], took[190], took[198])
		}
	}
}

// copyTimed connects a list and waits until it is copied.
func (c company) copyTimed(provider string, settings map[string]any, people int) string {
	c.T.Helper()
	began := time.Now()
	id := c.connect(provider, "Measured "+provider, settings)
	c.copied(id, people)
	took := time.Since(began)
	c.T.Logf("%s: %d people in %s, %s", provider, people, took, fmt.Sprintf("%.0f/s", float64(people)/took.Seconds()))
	return id
}
