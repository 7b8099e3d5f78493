package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
)

// A site is an organisation with what its tests need.
type site struct {
	*rig.Client
	hooks *rig.Receiver
}

// newSite makes an organisation whose events are received.
func newSite(s *rig.Server) *site {
	s.T.Helper()
	c := s.Org("live")
	return &site{Client: c, hooks: c.Hook(nil)}
}

// in returns the site for a subtest.
func (s *site) in(t *testing.T) *site {
	server, client := *s.Server, *s.Client
	server.T, client.T, client.Server = t, t, &server
	return &site{Client: &client, hooks: s.hooks}
}

// A carrier is a trunk and the address it calls from and is called at.
type carrier struct {
	ip, trunk string
	port      int
	number    string // of the organisation, carried by it
}

var addresses atomic.Int64

// carrier adds a trunk with an address of its own and a number that rings a user.
func (s *site) carrier(userID string, extra map[string]any) carrier {
	s.T.Helper()
	n := addresses.Add(1)
	c := carrier{ip: fmt.Sprintf("127.1.%d.%d", n/250, 1+n%250), port: rig.FreePort(s.T), number: fmt.Sprintf("+1202555%04d", 1000+n)}
	body := map[string]any{"name": "carrier", "host": c.ip, "port": c.port, "inbound": map[string]any{"allowed_ips": []string{c.ip}}}
	for k, v := range extra {
		body[k] = v
	}
	var made struct{ ID string }
	s.Want(200, "PATCH", "/organization", map[string]any{"emergency": map[string]any{"acknowledged": true}}, nil)
	s.Want(201, "POST", "/trunks", body, &made)
	c.trunk = made.ID
	number := map[string]any{"number": c.number, "trunk_id": c.trunk}
	if userID != "" {
		number["user_id"] = userID
	}
	s.Want(201, "POST", "/numbers", number, nil)
	return c
}

// sippPhone registers a sipp as a user's telephone and returns the port it is reached at.
func (s *site) sippPhone(l rig.Login) int {
	s.T.Helper()
	registration := s.Server.Sipp(rig.Script{Scenario: "register", Login: &l})
	registration.Wait()
	return registration.Port
}

// A cdr is a call detail record as the API gives it.
type cdr struct {
	ID           string  `json:"id"`
	CallID       string  `json:"call_id"`
	Direction    string  `json:"direction"`
	Status       string  `json:"status"`
	From         string  `json:"from_number"`
	FromName     *string `json:"from_name"`
	To           string  `json:"to_number"`
	NumberID     *string `json:"number_id"`
	TrunkID      *string `json:"trunk_id"`
	Agent        *struct{ ID, Name, Extension string }
	AnsweredAt   *time.Time `json:"answered_at"`
	StartedAt    time.Time  `json:"started_at"`
	EndedAt      time.Time  `json:"ended_at"`
	Ring         int        `json:"ring_seconds"`
	Hold         int        `json:"hold_seconds"`
	Talk         int        `json:"talk_duration_seconds"`
	Total        int        `json:"total_seconds"`
	EndReason    string     `json:"end_reason"`
	HangupBy     string     `json:"hangup_by"`
	MissedReason *string    `json:"missed_reason"`
	SIPStatus    *int       `json:"sip_status"`
	Q850         *int       `json:"q850_cause"`
	FlowID       *string    `json:"flow_id"`
	FlowVersion  *int       `json:"flow_version"`
	Tags         []string   `json:"tags"`
	RecordingURL *string    `json:"recording_url"`
	TranscriptID *string    `json:"transcript_id"`
	Summary      *string    `json:"ai_summary"`
	VoicemailID  *string    `json:"voicemail_id"`
}

// String is what most tests compare: direction, status, end_reason, hangup_by and sip_status.
func (c cdr) String() string {
	status := 0
	if c.SIPStatus != nil {
		status = *c.SIPStatus
	}
	return fmt.Sprintf("%s %s %s %s %d", c.Direction, c.Status, c.EndReason, c.HangupBy, status)
}

// records waits until there are n call detail records that match, and returns them, newest first.
func (s *site) records(n int, query string) []cdr {
	s.T.Helper()
	var page struct{ Data []cdr }
	rig.Until(s.T, fmt.Sprintf("%d call detail records (%s)", n, query), 60*time.Second, func() bool {
		page.Data = nil
		s.Want(200, "GET", "/cdr?limit=200&"+query, nil, &page)
		return len(page.Data) >= n
	})
	if len(page.Data) != n {
		s.T.Fatalf("%d call detail records (%s), want %d: %v", len(page.Data), query, n, page.Data)
	}
	return page.Data
}

// record waits for the one call detail record with a number on either side.
func (s *site) record(number string) cdr {
	s.T.Helper()
	return s.records(1, "phone="+url.QueryEscape(number))[0]
}

// live returns the one call in progress, with its legs.
func (s *site) live(ready func(map[string]any) bool) map[string]any {
	s.T.Helper()
	var found map[string]any
	rig.Until(s.T, "call in progress", 20*time.Second, func() bool {
		var snapshot struct{ Data []map[string]any }
		s.Want(200, "GET", "/calls/live", nil, &snapshot)
		if len(snapshot.Data) != 1 {
			return false
		}
		found = snapshot.Data[0]
		return ready == nil || ready(found)
	})
	return found
}

// tone writes a minute of a sine as telephones speak it: a WAV file, and raw mu-law for sipp.
func tone(t testing.TB, hz float64) (wav, ulaw string) {
	t.Helper()
	return spoken(t, fmt.Sprintf("tone%.0f", hz), media.Tone(hz, -10, time.Minute, 8000))
}

func (s *site) kinds(callID string) []string {
	var all []string
	for _, e := range s.hooks.Events() {
		if e.Data["call_id"] == callID {
			all = append(all, e.Event)
		}
	}
	return all
}

// inOrder fails unless the events of a call came in this order, none missing and none twice.
func (s *site) inOrder(callID string, want ...string) {
	s.T.Helper()
	s.hooks.Wait(want[len(want)-1], time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == callID })
	if got := strings.Join(s.kinds(callID), " "); got != strings.Join(want, " ") {
		s.T.Errorf("events of the call: %s; want %s", got, strings.Join(want, " "))
	}
}

// ready is the status of the server's readiness.
func (s *site) ready() int {
	r, err := http.Get("http://" + s.Server.HTTP + "/ready")
	if err != nil {
		s.T.Fatal(err)
	}
	defer r.Body.Close()
	return r.StatusCode
}

func temporary(t testing.TB, name string) string { return filepath.Join(t.TempDir(), name) }
