package contact

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// callLog is a connected system that accepts call logs.
type callLog struct {
	*httptest.Server
	mu  sync.Mutex // guards got
	got []logEntry
}

// logEntry is one request to the connected system.
type logEntry struct {
	method, path string
	body         map[string]string
}

// newCallLog starts a connected system.
func newCallLog(t testing.TB) *callLog {
	j := &callLog{}
	j.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		e := logEntry{method: r.Method, path: r.URL.Path}
		_ = json.Unmarshal(b, &e.body)
		j.mu.Lock()
		j.got = append(j.got, e)
		j.mu.Unlock()
		fmt.Fprint(w, `{"id":"log-7"}`)
	}))
	t.Cleanup(j.Close)
	return j
}

// last returns the last request, and how many came.
func (j *callLog) last() (logEntry, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.got) == 0 {
		return logEntry{}, 0
	}
	return j.got[len(j.got)-1], len(j.got)
}

// A call is logged in a connected system when it ends, and updated there with its summary and its transcript. This
// works even if the server is killed in between.
func TestCallLog_SummaryAndTranscriptAcrossKill(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Upset: true})
	company := fixture.NewOrg(s)
	j := newCallLog(t)
	body := map[string]any{"from": "{{from}}", "summary": "{{summary}}", "transcript": "{{transcript}}", "recording": "{{recording_url}}"}
	company.Want(201, "POST", "/crm/connections", map[string]any{"provider": "http", "name": "Journal", "settings": map[string]any{
		"call_log":    map[string]any{"url": j.URL + "/calls", "body": body},
		"call_update": map[string]any{"url": j.URL + "/calls/{{record_id}}", "method": "PUT", "body": body}}}, nil)
	callAndSpeak(company, "+12125550178")
	rig.Until(t, "the call in the journal", time.Minute, func() bool { _, n := j.last(); return n > 0 })
	s.Kill()
	s.Start()
	rig.Until(t, "its words", 3*time.Minute, func() bool { e, _ := j.last(); return e.body["transcript"] != "" && e.body["summary"] != "" })
	e, _ := j.last()
	if e.method != "PUT" || e.path != "/calls/log-7" || !strings.Contains(e.body["transcript"], "Caller: ") || !strings.Contains(e.body["recording"], "/recordings/rec_") {
		t.Errorf("told last %+v", e)
	}
	posted := 0
	for _, e := range j.got {
		if e.method == "POST" {
			posted++
		}
	}
	if posted > 2 { // a kill between its response and the commit of that response repeats the request, with the same Idempotency-Key
		t.Errorf("made %d times: %+v", posted, j.got)
	}
	t.Logf("told %d times, at last %v", len(j.got), e.body)
}

// callAndSpeak makes a call from a number, speaks, and hangs up.
func callAndSpeak(s *fixture.Org, from string) {
	s.T.Helper()
	user := s.AddUser("Ada")
	way := s.AddCarrier(user.ID, nil)
	said := fixture.Synthesize(s.T, "rms", "Hello, my name is Robert. I would like to order forty boxes of paper for the office. Please call me back on Monday morning.")
	_, caller := fixture.WriteAudio(s.T, "caller", append(make([]int16, 8000), said...))
	_, silent := fixture.WriteAudio(s.T, "agent", make([]int16, 20*8000))
	phone := s.Server.Sipp(rig.Script{Scenario: "answer", Ring: 100, Port: s.RegisterSipp(user.SIP), From: user.SIP.Username, Play: silent})
	s.Server.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: from, Number: way.Number, Play: caller,
		Talk: time.Duration(len(said)/8+1500) * time.Millisecond}).Wait()
	phone.Wait()
}

// In Tryton a call is one note of the caller's party, to which the transcript is added later.
func TestCallLog_Tryton(t *testing.T) {
	t.Parallel()
	d := rig.StartTrytond(t)
	var made []int
	d.Call("model.party.party.create", &made, []any{map[string]any{"name": "Robert", "contact_mechanisms": []any{[]any{"create",
		[]any{map[string]any{"type": "phone", "value": "+1 212 555 0178"}}}}}})
	s := rig.Shared(t, rig.Options{})
	company := fixture.NewOrg(s)
	company.Want(201, "POST", "/crm/connections", map[string]any{"provider": "tryton", "name": "Tryton", "timeout_ms": 5000, "settings": map[string]any{
		"url": "http://" + d.Address, "database": d.Database, "username": d.User, "password": d.Password, "transcripts": true}}, nil)
	callAndSpeak(company, "+12125550178")
	var notes []struct{ Message string }
	rig.Until(t, "the words in Tryton", 3*time.Minute, func() bool {
		notes = nil
		d.Call("model.ir.note.search_read", &notes, []any{[]any{"resource", "=", fmt.Sprintf("party.party,%d", made[0])}}, 0, 50, nil, []string{"message"})
		return len(notes) > 0 && strings.Contains(notes[0].Message, "Caller: ")
	})
	if m := notes[0].Message; len(notes) != 1 || !strings.HasPrefix(m, "inbound call, completed") || !strings.Contains(m, "Agent: Ada") || !strings.Contains(m, "/recordings/rec_") {
		t.Errorf("notes %+v", notes)
	}
	if r := company.CDR("+12125550178"); company.Do("GET", "/calls/"+r.CallID, nil).JSON()["from_name"] != "Robert" {
		t.Errorf("the call is from %v", r.FromName)
	}
}
