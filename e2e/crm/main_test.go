// Package crm tests connections with real third-party servers: directories, address books and business systems.
package crm

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"soniq/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// quiet reduces the log to warnings.
var quiet = map[string]string{"SONIQ_LOG_LEVEL": "warn"}

// company is an organisation in London with its connections.
type company struct{ *rig.Client }

func newCompany(s *rig.Server) company {
	s.T.Helper()
	return company{s.Key(s.Command("admin", "orgs", "create", "--name", "Org of "+s.T.Name(), "--country", "GB"), "live", "all")}
}

// connect connects a system and returns the id of the connection.
func (c company) connect(provider, name string, settings map[string]any, more ...any) string {
	c.T.Helper()
	body := map[string]any{"provider": provider, "name": name, "settings": settings}
	for i := 0; i+1 < len(more); i += 2 {
		body[more[i].(string)] = more[i+1]
	}
	var made struct{ ID string }
	c.Want(201, "POST", "/crm/connections", body, &made)
	return made.ID
}

// connection returns a connection as the API shows it.
func (c company) connection(id string) map[string]any {
	c.T.Helper()
	var all struct{ Data []map[string]any }
	c.Want(200, "GET", "/crm/connections", nil, &all)
	for _, x := range all.Data {
		if x["id"] == id {
			return x
		}
	}
	c.T.Fatalf("no connection %s in %v", id, all.Data)
	return nil
}

// copied waits until a connection has copied n people.
func (c company) copied(id string, n int) {
	c.T.Helper()
	var x map[string]any
	defer func() {
		if c.T.Failed() {
			c.T.Log(x)
		}
	}()
	rig.Until(c.T, fmt.Sprintf("%d entries", n), 5*time.Minute, func() bool {
		x = c.connection(id)
		return x["entries"] == float64(n) && x["last_error"] == nil
	})
}

// lookupResult is the result of a lookup.
type lookupResult struct {
	Status                       int `json:"-"`
	Name, Company, Source, Match string
	External_id                  string
	Lookup_ms                    int
	Complete, Cached             bool
	Phone, Email                 string
	Sources                      []lookupSource
	Alternatives                 []struct{ Name, Source string }
}

// lookupSource is the status of one system in the result of a lookup.
type lookupSource struct{ Source, Status string }

func (w lookupResult) status(source string) string {
	for _, s := range w.Sources {
		if s.Source == source {
			return s.Status
		}
	}
	return ""
}

// lookup looks up a person by an attribute, "phone" or "email".
func (c company) lookup(attribute, value string, more ...string) lookupResult {
	c.T.Helper()
	path := "/contacts/lookup?" + attribute + "=" + url.QueryEscape(value)
	for _, m := range more {
		path += "&" + m
	}
	r := c.Do("GET", path, nil)
	w := lookupResult{Status: r.Status}
	decode(c.T, r.Body, &w)
	return w
}

// ask makes lookups of two seconds, the longest there are, until no system is too slow for one.
func (c company) ask(attribute, value string, more ...string) (w lookupResult) {
	c.T.Helper()
	rig.Until(c.T, "an answer in time", time.Minute, func() bool {
		w = c.lookup(attribute, value, append(more, "timeout_ms=2000")...)
		return !slices.ContainsFunc(w.Sources, func(s lookupSource) bool { return s.Status == "timeout" || s.Status == "circuit_open" })
	})
	return w
}
