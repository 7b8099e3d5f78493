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

// TestMeasureLists tells how long it takes to copy ten thousand people from real servers, to read them again where nothing changed, and to
// take over one change. With SONIQ_BENCH only.
func TestMeasureLists(t *testing.T) {
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
	c.connect("ldap", "live", reading(d, "requests_per_minute", 60000, "base_dn", d.Base), "priority", 1)
	var took []time.Duration
	for i := range 1000 {
		began := time.Now()
		c.lookup("phone", e164("7944", i*7%people), "fresh=true", "timeout_ms=2000")
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("asked live, of %d people: p50 %s, p95 %s, p99 %s", people, took[500], took[950], took[990])
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
