package e2e

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

	"soniq/e2e/rig"
)

// A journal is a connected system that takes calls.
type journal struct {
	*httptest.Server
	mu  sync.Mutex // guards got
	got []entry
}

type entry struct {
	method, path string
	body         map[string]string
}

func newJournal(t testing.TB) *journal {
	j := &journal{}
	j.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		e := entry{method: r.Method, path: r.URL.Path}
		_ = json.Unmarshal(b, &e.body)
		j.mu.Lock()
		j.got = append(j.got, e)
		j.mu.Unlock()
		fmt.Fprint(w, `{"id":"log-7"}`)
	}))
	t.Cleanup(j.Close)
	return j
}

// last is what the journal was told last, and how often.
func (j *journal) last() (entry, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.got) == 0 {
		return entry{}, 0
	}
	return j.got[len(j.got)-1], len(j.got)
}

// A call is written to a connected system when it ends, and changed there when its summary and its words come: even where the server
// was killed in between.
func TestTheWordsOfACallReachTheSystemItWasWrittenTo(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Upset: true})
	company := newSite(s)
	j := newJournal(t)
	body := map[string]any{"from": "{{from}}", "summary": "{{summary}}", "transcript": "{{transcript}}", "recording": "{{recording_url}}"}
	company.Want(201, "POST", "/crm/connections", map[string]any{"provider": "http", "name": "Journal", "settings": map[string]any{
		"call_log":    map[string]any{"url": j.URL + "/calls", "body": body},
		"call_update": map[string]any{"url": j.URL + "/calls/{{record_id}}", "method": "PUT", "body": body}}}, nil)
	company.ordered("+12125550178")
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
	if posted > 2 { // a kill between its answer and our note of it repeats the request, with the same Idempotency-Key
		t.Errorf("made %d times: %+v", posted, j.got)
	}
	t.Logf("told %d times, at last %v", len(j.got), e.body)
}

// ordered has somebody call and say what they want, and hang up.
func (s *site) ordered(from string) {
	s.T.Helper()
	user := s.AddUser("Ada")
	way := s.carrier(user.ID, nil)
	said := say(s.T, "rms", "Hello, my name is Robert. I would like to order forty boxes of paper for the office. Please call me back on Monday morning.")
	_, caller := spoken(s.T, "caller", append(make([]int16, 8000), said...))
	_, silent := spoken(s.T, "agent", make([]int16, 20*8000))
	phone := s.Server.Sipp(rig.Script{Scenario: "answer", Ring: 100, Port: s.sippPhone(user.SIP), From: user.SIP.Username, Play: silent})
	s.Server.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: from, Number: way.number, Play: caller, Talk: time.Duration(len(said)/8+1500) * time.Millisecond}).Wait()
	phone.Wait()
}

// In Tryton a call is one note of whoever called, whose text grows.
func TestTheWordsOfACallReachTryton(t *testing.T) {
	t.Parallel()
	d := rig.StartTrytond(t)
	var made []int
	d.Call("model.party.party.create", &made, []any{map[string]any{"name": "Robert", "contact_mechanisms": []any{[]any{"create",
		[]any{map[string]any{"type": "phone", "value": "+1 212 555 0178"}}}}}})
	s := rig.Start(t, rig.Options{})
	company := newSite(s)
	company.Want(201, "POST", "/crm/connections", map[string]any{"provider": "tryton", "name": "Tryton", "timeout_ms": 5000, "settings": map[string]any{
		"url": "http://" + d.Address, "database": d.Database, "username": d.User, "password": d.Password, "transcripts": true}}, nil)
	company.ordered("+12125550178")
	var notes []struct{ Message string }
	rig.Until(t, "the words in Tryton", 3*time.Minute, func() bool {
		notes = nil
		d.Call("model.ir.note.search_read", &notes, []any{[]any{"resource", "=", fmt.Sprintf("party.party,%d", made[0])}}, 0, 50, nil, []string{"message"})
		return len(notes) > 0 && strings.Contains(notes[0].Message, "Caller: ")
	})
	if m := notes[0].Message; len(notes) != 1 || !strings.HasPrefix(m, "inbound call, completed") || !strings.Contains(m, "Agent: Ada") || !strings.Contains(m, "/recordings/rec_") {
		t.Errorf("notes %+v", notes)
	}
	if r := company.record("+12125550178"); company.Do("GET", "/calls/"+r.CallID, nil).JSON()["from_name"] != "Robert" {
		t.Errorf("the call is from %v", r.FromName)
	}
}

// A caller is known on the agent's screen in whatever way the number is written where it was found; and named on the call where it is
// surely theirs.
func TestACallerIsKnownInWhateverWayTheNumberIsWritten(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	written := []string{"+12125551000", "212 555 1001", "0012125551002", "(212) 555-1003", "212.555.1004 ext. 12"}
	rows := "id,name,phone\n"
	for i, w := range written {
		rows += fmt.Sprintf("%d,Caller %d,%q\n", i, i, w)
	}
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, rows) }))
	defer list.Close()
	company.Want(201, "POST", "/crm/connections", map[string]any{"provider": "csv", "name": "Table", "settings": map[string]any{"url": list.URL}}, nil)
	rig.Until(t, "the table", time.Minute, func() bool { return company.Do("GET", "/contacts/lookup?phone=2125551004", nil).Status == 200 })
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	port := company.sippPhone(user.SIP)
	for i := range written {
		from := fmt.Sprintf("+1212555100%d", i)
		phone := s.Sipp(rig.Script{Scenario: "answer", Ring: 300, Port: port, From: user.SIP.Username})
		told := company.stream("", func() {
			s.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: from, Number: way.number, Talk: 100 * time.Millisecond}).Wait()
			phone.Wait()
		}, func(e liveEvent) bool { return e.kind == "call.ended" })
		name := fmt.Sprintf("Caller %d", i)
		if p := pops(told, from); len(p) == 0 || !strings.Contains(fmt.Sprint(p[0]["contact"]), name) {
			t.Errorf("%s, written %s: %v", from, written[i], p)
		}
		got := company.Do("GET", "/calls/"+company.record(from).CallID, nil).JSON()["from_name"]
		if sure := i < 4; sure != (got == name) {
			t.Errorf("%s, written %s: the call is from %v", from, written[i], got)
		}
	}
}
