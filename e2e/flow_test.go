package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// The tones of prompts.
const (
	greetingTone = 620.0
	againTone    = 700.0
	pinTone      = 820.0
	otherTone    = 930.0
)

func TestACallerPressesAKeyAndIsConnected(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := &office{site: newSite(s)}
		o.bob, o.carol = o.AddUser("Bob"), o.AddUser("Carol")
		o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
		o.carolPhone = o.phone(o.carol, carolTone, rig.PhoneOptions{Auto: true})
		greeting := o.sound(greetingTone, 3*time.Second)
		f := o.flow(
			node("menu", "menu", map[string]any{"prompt": map[string]any{"audio_id": greeting}, "digits": map[string]any{"1": "Bob", "2": "Carol"},
				"timeout_seconds": 3, "retries": 1}, "1", "bob", "2", "tag", "timeout", "bye", "invalid", "bye"),
			node("bob", "transfer", map[string]any{"to": "ext:" + o.bob.Extension}, "failed", "bye"),
			node("tag", "tag", map[string]any{"tags": []string{"sales"}}, "done", "carol"),
			node("carol", "transfer", map[string]any{"to": "user:" + o.carol.ID}, "failed", "bye"),
			node("bye", "hangup", nil))
		way := o.line(f)

		v := o.visit(way, "+12125550171")
		at := v.hears(0, greetingTone)
		if live := o.live(nil); live["stage"] != "ivr" || live["status"] != "ringing" || live["flow_id"] != f || live["answered_at"] != nil {
			t.Errorf("the call in the menu: %v", live)
		}
		v.press("9")
		at = v.hears(v.Mark()+800, greetingTone) // once more, from its beginning
		v.press("2")
		o.carolPhone.Wait("CALL_ESTABLISHED", "")
		v.hears(at, carolTone)
		if d := presence(o.carolPhone.Since(o.carolPhone.Mark(), 2*time.Second), visitorTone); d < time.Second {
			t.Errorf("Carol heard the caller for %s of 2 s", d)
		}
		if live := o.live(nil); live["status"] != "in_progress" || live["agent_id"] != o.carol.ID {
			t.Errorf("the call that was connected: %v", live)
		}
		v.line.HangUp()
		r := o.record("+12125550171")
		if r.String() != "inbound completed caller_hangup caller 0" || r.FlowID == nil || *r.FlowID != f || r.FlowVersion == nil || *r.FlowVersion != 1 {
			t.Errorf("record: %s, flow %v version %v", r, r.FlowID, r.FlowVersion)
		}
		if len(r.Tags) != 1 || r.Tags[0] != "sales" || r.Agent == nil || r.Agent.ID != o.carol.ID || r.Talk < 2 {
			t.Errorf("record: tags %v, agent %+v, %d s of talk", r.Tags, r.Agent, r.Talk)
		}
		if way, steps, _ := o.passed(r.CallID); way != "menu:2 tag:done carol:answered" || steps[0].Type != "menu" {
			t.Errorf("way of the caller: %s", way)
		}
	})
}

func TestAMenuEndsByItself(t *testing.T) {
	t.Parallel()
	s := newSite(rig.Start(t, rig.Options{Env: quiet}))
	greeting, sorry := s.sound(greetingTone, time.Second), s.sound(againTone, time.Second)
	f := s.flow(
		node("menu", "menu", map[string]any{"prompt": greeting, "digits": map[string]any{"1": "x"}, "timeout_seconds": 1, "retries": 1},
			"1", "bye", "timeout", "sorry", "invalid", "bye"),
		node("sorry", "play", map[string]any{"audio_id": sorry}, "done", "bye"),
		node("bye", "hangup", nil))
	way := s.line(f)
	for from, c := range map[string]struct{ keys, way, record string }{
		"+12125550101": {"", "menu:timeout sorry:done bye", "inbound missed no_answer system 0"},
		"+12125550102": {"45", "menu:invalid bye", "inbound missed no_answer system 0"},
		"+12125550103": {"1", "menu:1 bye", "inbound missed no_answer system 0"},
	} {
		v := s.visit(way, from)
		at := v.hears(0, greetingTone)
		for _, k := range strings.Split(c.keys, "") {
			v.press(k)
			if k == "4" {
				at = v.hears(v.Mark()+800, greetingTone)
			}
		}
		if c.keys == "" {
			v.hears(at, againTone)
		}
		v.ends()
		r := s.record(from)
		if r.String() != c.record || r.MissedReason == nil || *r.MissedReason != "abandoned_in_menu" {
			t.Errorf("%s: record %s, missed %v", from, r, r.MissedReason)
		}
		if got, _, _ := s.passed(r.CallID); got != c.way {
			t.Errorf("%s: way %q, want %q", from, got, c.way)
		}
	}
	v := s.visit(way, "+12125550104")
	v.hears(0, greetingTone)
	v.line.HangUp()
	r := s.record("+12125550104")
	if r.String() != "inbound missed caller_hangup caller 0" || r.MissedReason == nil || *r.MissedReason != "abandoned_in_menu" {
		t.Errorf("who hung up in the menu: %s, missed %v", r, r.MissedReason)
	}
	s.inOrder(r.CallID, "call.started", "call.missed", "call.ended")
	if got, _, _ := s.passed(r.CallID); got != "menu:gone" {
		t.Errorf("way of who hung up in the menu: %s", got)
	}
}

func TestDigitsThatAreMaskedAreToldNobody(t *testing.T) {
	t.Parallel()
	s := newSite(rig.Start(t, rig.Options{Env: quiet}))
	asked := &server{answer: func(*http.Request, string) (int, string) { return 200, `{"known": true, "level": 7}` }}
	address := asked.start(t)
	pin, welcome := s.sound(pinTone, time.Second), s.sound(otherTone, time.Second)
	f := s.flow(
		node("pin", "collect", map[string]any{"prompt": pin, "min": 4, "max": 6, "variable": "pin", "mask": true, "timeout_seconds": 2},
			"done", "ask", "timeout", "bye"),
		node("ask", "http", map[string]any{"url": address + "/check?from={{caller.number}}&pin={{variables.pin}}", "variable": "answer", "signed": true}, "success", "level", "error", "bye"),
		node("level", "condition", map[string]any{"expression": `variables.answer.known && variables.answer.level > 5`}, "true", "note", "false", "bye"),
		node("note", "set", map[string]any{"variables": map[string]any{"who": "{{caller.number}}", "n": 3}}, "done", "told"),
		node("told", "http", map[string]any{"url": address + "/told", "body": `{"who": "{{variables.who}}", "n": {{variables.n}}}`}, "success", "welcome", "error", "bye"),
		node("welcome", "play", map[string]any{"audio_id": welcome}, "done", "bye"),
		node("bye", "hangup", map[string]any{"reason": "said all"}))
	var hook struct{ Secret string }
	s.Want(201, "POST", "/webhooks", map[string]any{"url": address + "/hook", "events": []string{"sms.sent"}}, &hook)
	way := s.line(f)
	v := s.visit(way, "+12125550101")
	at := v.hears(0, pinTone)
	v.press("73519#")
	v.hears(at, otherTone)
	v.ends()
	all := asked.all()
	if len(all) != 2 || all[0].query != "from=%2B12125550101&pin=73519" || all[1].body != `{"who": "+12125550101", "n": 3}` {
		t.Fatalf("what the server was asked: %+v", all)
	}
	var told struct {
		CallID    string `json:"call_id"`
		Variables map[string]any
	}
	if err := json.Unmarshal([]byte(all[0].body), &told); err != nil || told.CallID == "" || len(told.Variables) != 0 {
		t.Errorf("body of the request: %s", all[0].body)
	}
	if got, want := all[0].header.Get("X-Service-Signature"), rig.Signature(hook.Secret, all[0].body); got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
	r := s.record("+12125550101")
	got, _, timeline := s.passed(r.CallID)
	if got != "pin:done ask:success level:true note:done told:success welcome:done bye" {
		t.Errorf("way of the caller: %s", got)
	}
	for _, where := range []string{timeline, string(s.Do("GET", "/calls/"+r.CallID, nil).Body), string(s.Do("GET", "/cdr/"+r.ID, nil).Body)} {
		if strings.Contains(where, "73519") {
			t.Errorf("the digits are told: %s", where)
		}
	}
	for _, e := range s.hooks.Events() {
		if strings.Contains(e.Body, "73519") {
			t.Errorf("the digits are in an event: %s", e.Body)
		}
	}
	v = s.visit(way, "+12125550102")
	v.hears(0, pinTone)
	v.press("12")
	v.ends()
	if got, _, _ := s.passed(s.record("+12125550102").CallID); got != "pin:timeout bye" {
		t.Errorf("way of who pressed too little: %s", got)
	}
}

// A server is one of the organisation, which flows ask.
type server struct {
	answer func(r *http.Request, body string) (int, string)

	mu   sync.Mutex // guards seen
	seen []requested
}

type requested struct {
	path, query, body string
	header            http.Header
}

func (x *server) start(t *testing.T) string {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		buffer := make([]byte, 4096)
		for {
			n, err := r.Body.Read(buffer)
			b.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		x.mu.Lock()
		x.seen = append(x.seen, requested{r.URL.Path, r.URL.RawQuery, b.String(), r.Header.Clone()})
		x.mu.Unlock()
		status, body := x.answer(r, b.String())
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(h.Close)
	return h.URL
}

func (x *server) all() []requested {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]requested(nil), x.seen...)
}

func TestAServerThatFailsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := newSite(rig.Start(t, rig.Options{Env: quiet}))
	release := make(chan struct{})
	asked := &server{answer: func(r *http.Request, _ string) (int, string) {
		switch r.URL.Path {
		case "/slow":
			<-release
		case "/large":
			return 200, `"` + strings.Repeat("x", 70<<10) + `"`
		case "/moved":
			return 302, ""
		}
		return 500, "no"
	}}
	address := asked.start(t)
	t.Cleanup(func() { close(release) })
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	sorry := s.sound(againTone, time.Second)
	next := func(id, to string) map[string]any {
		return map[string]any{"id": id, "type": "http", "config": map[string]any{"url": to, "timeout_ms": 500}, "next": map[string]string{"success": "bye", "error": ""}}
	}
	urls := []string{gone.URL, address + "/slow", address + "/large", address + "/moved", address + "/bad", "https://10.1.2.3/x", address + "/signed"}
	var nodes []map[string]any
	for i, u := range urls {
		n := next(string(rune('a'+i)), u)
		n["config"].(map[string]any)["signed"] = strings.HasSuffix(u, "/signed")
		to := string(rune('a' + i + 1))
		if i == len(urls)-1 {
			to = "sorry"
		}
		n["next"].(map[string]string)["error"] = to
		nodes = append(nodes, n)
	}
	way := s.line(s.flow(append(nodes, node("sorry", "play", map[string]any{"audio_id": sorry}, "done", "bye"), node("bye", "hangup", nil))...))
	v := s.visit(way, "+12125550101")
	v.hears(0, againTone)
	v.ends()
	got, steps, _ := s.passed(s.record("+12125550101").CallID)
	if got != "a:error b:error c:error d:error e:error f:error g:error sorry:done bye" {
		t.Errorf("way of the caller: %s", got)
	}
	for i, want := range []string{"refused", "no answer in time", "64 KiB", "answered with 302", "answered with 500", "not allowed", "no webhook"} {
		if !strings.Contains(steps[i].Problem, want) || strings.Contains(steps[i].Problem, "127.0.0.1:") && i > 0 {
			t.Errorf("problem of %s: %q, want %q", steps[i].Node, steps[i].Problem, want)
		}
	}
}

func TestHoursLeadCallersElsewhere(t *testing.T) {
	t.Parallel()
	s := newSite(rig.Start(t, rig.Options{Env: quiet}))
	open, closed, holiday := s.sound(greetingTone, time.Second), s.sound(againTone, 3*time.Second), s.sound(otherTone, time.Second)
	day := []map[string]string{{"from": "00:00", "to": "24:00"}}
	always := map[string]any{}
	for _, d := range strings.Fields("mon tue wed thu fri sat sun") {
		always[d] = day
	}
	flow := func(zone string, hours map[string]any, holidays ...string) carrier {
		return s.line(s.publishes(map[string]any{"entry": "hours", "timezone": zone, "nodes": []map[string]any{
			node("hours", "hours", map[string]any{"hours": hours, "holidays": holidays}, "open", "open", "closed", "closed", "holiday", "holiday"),
			node("open", "play", map[string]any{"audio_id": open}, "done", "bye"),
			node("closed", "play", map[string]any{"audio_id": closed}, "done", "bye"),
			node("holiday", "play", map[string]any{"audio_id": holiday}, "done", "bye"),
			node("bye", "hangup", nil)}}))
	}
	there, _ := time.LoadLocation("Pacific/Kiritimati")
	for from, c := range map[string]struct {
		way  carrier
		tone float64
		want string
	}{
		"+12125550101": {flow("", map[string]any{"weekly": always}), greetingTone, "abandoned_in_menu"},
		"+12125550102": {flow("", map[string]any{"weekly": map[string]any{}}), againTone, "after_hours"},
		"+12125550103": {flow("Pacific/Kiritimati", map[string]any{"weekly": always}, time.Now().In(there).Format("01-02")), otherTone, "after_hours"},
	} {
		v := s.visit(c.way, from)
		v.hears(0, c.tone)
		if from == "+12125550102" {
			v.line.HangUp()
		}
		v.ends()
		if r := s.record(from); r.MissedReason == nil || *r.MissedReason != c.want || r.Status != "missed" {
			t.Errorf("%s: record %s, missed %v, want %s", from, r, r.MissedReason, c.want)
		}
	}
}

func TestACallKeepsTheFlowItEntered(t *testing.T) {
	t.Parallel()
	s := newSite(rig.Start(t, rig.Options{Env: quiet}))
	first, old, fresh := s.sound(greetingTone, 700*time.Millisecond), s.sound(againTone, time.Second), s.sound(otherTone, time.Second)
	nodes := func(then string) []map[string]any {
		return []map[string]any{
			node("menu", "menu", map[string]any{"prompt": first, "digits": map[string]any{"1": "x"}, "timeout_seconds": 20}, "1", "then", "timeout", "bye", "invalid", "bye"),
			node("then", "play", map[string]any{"audio_id": then}, "done", "bye"), node("bye", "hangup", nil)}
	}
	f := s.flow(nodes(old)...)
	way := s.line(f)
	v := s.visit(way, "+12125550101")
	at := v.hears(0, greetingTone)
	s.Want(200, "PATCH", "/flows/"+f, map[string]any{"nodes": nodes(fresh), "entry": "menu"}, nil)
	s.Want(200, "POST", "/flows/"+f+"/publish", map[string]any{}, nil)
	w := s.visit(way, "+12125550102")
	w.press("1") // before the prompt has been heard
	w.hears(0, otherTone)
	v.press("1")
	v.hears(at, againTone)
	v.ends()
	w.ends()
	for from, version := range map[string]int{"+12125550101": 1, "+12125550102": 2} {
		if r := s.record(from); r.FlowVersion == nil || *r.FlowVersion != version {
			t.Errorf("%s: version %v of the flow, want %d", from, r.FlowVersion, version)
		}
	}
}

func TestAGroupIsRung(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := &office{site: newSite(s)}
		o.ada, o.bob, o.carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
		o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
		o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{})
		members := []map[string]any{{"user_id": o.ada.ID}, {"user_id": o.bob.ID}}
		bye := node("bye", "hangup", map[string]any{"reason": "busy"})
		group := func(strategy string, members []map[string]any) carrier {
			return o.line(o.flow(node("group", "hunt_group", map[string]any{"members": members, "strategy": strategy, "ring_timeout_seconds": 5},
				"no_answer", "bye", "busy", "bye", "answered", "tag"), node("tag", "tag", map[string]any{"tags": []string{"taken"}}, "done", "play"),
				node("play", "play", map[string]any{"text": "Never heard."}, "done", "bye"), bye))
		}

		all := group("simultaneous", members)
		visitors := make(chan *visitor, 1)
		go func() { v, _ := o.tryVisit(all, "+12125550101"); visitors <- v }()
		o.adaPhone.Wait("CALL_INCOMING", "")
		o.bobPhone.Wait("CALL_INCOMING", "")
		o.bobPhone.Do("accept", "")
		o.adaPhone.Wait("CALL_CLOSED", "")
		o.bobPhone.Wait("CALL_ESTABLISHED", "")
		v := <-visitors
		v.hears(0, bobTone)
		o.bobPhone.Do("hangup", "")
		v.ends()
		if r := o.record("+12125550101"); r.Agent == nil || r.Agent.ID != o.bob.ID || r.EndReason != "agent_hangup" {
			t.Errorf("record of a group rung at once: %s, agent %+v", r, r.Agent)
		}

		turn := group("sequential", members)
		go func() { v, _ := o.tryVisit(turn, "+12125550102"); visitors <- v }()
		o.adaPhone.Wait("CALL_INCOMING", "")
		o.adaPhone.Do("hangup", "") // busy here: the next one is rung
		o.bobPhone.Wait("CALL_INCOMING", "")
		o.bobPhone.Do("accept", "")
		v = <-visitors
		v.hears(0, bobTone)
		v.line.HangUp()
		r := o.record("+12125550102")
		if r.Agent == nil || r.Agent.ID != o.bob.ID || len(r.Tags) != 1 || r.String() != "inbound completed caller_hangup caller 0" {
			t.Errorf("record of a group rung in turn: %s, agent %+v, tags %v", r, r.Agent, r.Tags)
		}
		if got, _, _ := o.passed(r.CallID); got != "group:answered tag:done play:gone" {
			t.Errorf("way of who was answered: %s", got)
		}

		nobody := group("longest_idle", []map[string]any{{"user_id": o.carol.ID}})
		if _, err := o.tryVisit(nobody, "+12125550103"); err == nil || !strings.Contains(err.Error(), "486") {
			t.Errorf("who called a group without a telephone: %v, want 486", err)
		}
		if r := o.record("+12125550103"); r.String() != "inbound missed busy system 486" || *r.MissedReason != "no_answer" {
			t.Errorf("record: %s, missed %v", r, r.MissedReason)
		}
	})
}

func TestAFlowGoesOnWhereATransferFails(t *testing.T) {
	t.Parallel()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
	o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	sorry := o.sound(againTone, time.Second)
	way := o.line(o.flow(
		node("ada", "transfer", map[string]any{"to": "ext:" + o.ada.Extension, "timeout_seconds": 5}, "failed", "sorry"),
		node("sorry", "play", map[string]any{"audio_id": sorry}, "done", "bob"),
		node("bob", "transfer", map[string]any{"to": "user:" + o.bob.ID}, "failed", "bye"),
		node("bye", "hangup", nil)))
	v := o.visit(way, "+12125550101")
	at := v.hears(0, againTone)
	v.hears(at, bobTone)
	v.line.HangUp()
	if got, _, _ := o.passed(o.record("+12125550101").CallID); got != "ada:failed sorry:done bob:answered" {
		t.Errorf("way of the caller: %s", got)
	}
}

func TestWhoCannotBeLedGoesToTheFallback(t *testing.T) {
	t.Parallel()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}}))}
	o.bob = o.AddUser("Bob")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	hello := o.sound(greetingTone, time.Second)
	// This flow leads to itself for ever, as often as a caller may be led on.
	loop := o.flow(node("hello", "tag", map[string]any{"tags": []string{"x"}}, "done", "menu"),
		node("menu", "menu", map[string]any{"prompt": hello, "digits": map[string]any{"1": "x"}, "timeout_seconds": 1, "retries": 0},
			"1", "bye", "timeout", "bye", "invalid", "bye"), node("bye", "hangup", nil))
	again := []map[string]any{node("again", "transfer", map[string]any{"to": "flow:" + loop}, "failed", "bye"), node("bye", "hangup", nil)}
	o.Want(200, "PATCH", "/flows/"+loop, map[string]any{"nodes": again, "entry": "again"}, nil)
	o.Want(200, "POST", "/flows/"+loop+"/publish", map[string]any{}, nil)
	way := o.line(loop)
	if v, err := o.tryVisit(way, "+12125550101"); err == nil {
		v.ends()
	}
	r := o.record("+12125550101")
	if got, _, _ := o.passed(r.CallID); r.String() != "inbound missed no_answer system 480" || !strings.HasPrefix(got, "again:failed bye again:gone") ||
		strings.Count(got, "again") != 100 {
		t.Errorf("record of a call that went round: %s; way %s", r, got)
	}
	// One whose number has a fallback goes there.
	unpublished := struct{ ID string }{}
	o.Want(201, "POST", "/flows", map[string]any{"name": "Other", "publish": true, "ivr": map[string]any{"greeting": hello,
		"options": map[string]any{"1": "ext:" + o.bob.Extension}, "timeout_to": "hangup"}}, &unpublished)
	number := "/numbers/" + o.numberID(way)
	o.Want(200, "PATCH", number, map[string]any{"user_id": o.AddUser("Nobody").ID, "fallback": "flow:" + unpublished.ID}, nil)
	v := o.visit(way, "+12125550102")
	v.hears(0, greetingTone)
	v.press("1")
	v.hears(0, bobTone)
	v.line.HangUp()
	if r := o.record("+12125550102"); r.Agent == nil || r.Agent.ID != o.bob.ID {
		t.Errorf("record of who went to the fallback: %s", r)
	}
	// Where that cannot be reached either, the caller is told so.
	o.Want(200, "PATCH", number, map[string]any{"fallback": "+442079460018"}, nil)
	v = o.visit(way, "+12125550103")
	v.hears(0, 1400)
	v.ends()
	if r := o.record("+12125550103"); r.String() != "inbound missed no_route system 0" {
		t.Errorf("record of who reached nobody: %s", r)
	}
}

func TestASandboxCallerIsLedThroughAFlow(t *testing.T) {
	t.Parallel()
	server := rig.Start(t, rig.Options{Env: quiet})
	live := newSite(server)
	test := server.Key(live.Org, "test", "all")
	o := &office{site: &site{Client: test, hooks: test.Hook(nil)}}
	o.bob = o.AddUser("Bob")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	greeting := o.sound(greetingTone, 2*time.Second)
	way := o.line(o.publishes(map[string]any{"ivr": map[string]any{"greeting": greeting, "options": map[string]any{"3": "ext:" + o.bob.Extension},
		"timeout_to": "hangup"}}))
	o.Want(202, "POST", "/sandbox/calls/inbound", map[string]any{"from": "+12125550101", "to": way.number,
		"script": []map[string]any{{"wait": 0.5}, {"dtmf": "3"}, {"wait": 3}, {"hangup": true}}}, nil)
	o.bobPhone.Wait("CALL_ESTABLISHED", "")
	r := o.record("+12125550101")
	if r.String() != "inbound completed caller_hangup caller 0" || r.Agent == nil || r.Agent.ID != o.bob.ID {
		t.Errorf("record: %s", r)
	}
	if got, _, _ := o.passed(r.CallID); got != "menu:3 to_2:answered" {
		t.Errorf("way of the caller: %s", got)
	}
}

func TestAFlowKnowsWhoCallsAndWritesToThem(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := &office{site: newSite(s)}
		o.bob = o.AddUser("Bob")
		o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
		vip, stranger := o.sound(greetingTone, time.Second), o.sound(againTone, time.Second)
		o.Want(200, "PATCH", "/organization", map[string]any{"recording": map[string]any{"mode": "off"}}, nil)
		way, own := o.carrier("", nil), o.carrier(o.bob.ID, nil) // who calls has a number of ours, to which a message can be sent
		o.Want(200, "PATCH", "/numbers/"+o.numberID(way), map[string]any{"sms_enabled": true}, nil)
		o.Want(201, "POST", "/contacts", map[string]any{"first_name": "Vera", "phones": []map[string]any{{"number": own.number}}, "vip": true,
			"custom": map[string]string{"tier": "gold"}}, nil)
		o.leads(way, o.flow(
			node("who", "contact_lookup", map[string]any{"timeout_ms": 500, "variable": "them"}, "hit", "vip", "miss", "stranger"),
			node("vip", "condition", map[string]any{"expression": `contact.vip && variables.them.tier == "gold" && memory.calls_total < 5`}, "true", "hello", "false", "stranger"),
			node("hello", "play", map[string]any{"audio_id": vip}, "done", "text"),
			node("text", "sms", map[string]any{"from": way.number, "body": "Hello {{contact.first_name}}, you called {{caller.called}}."}, "sent", "record", "failed", "bye"),
			node("record", "record", map[string]any{"action": "start"}, "done", "bob"),
			node("bob", "transfer", map[string]any{"to": "user:" + o.bob.ID}, "failed", "bye"),
			node("stranger", "play", map[string]any{"audio_id": stranger}, "done", "bye"),
			node("bye", "hangup", nil)))
		v := o.visit(way, own.number)
		at := v.hears(0, greetingTone)
		v.hears(at, bobTone)
		o.bobPhone.Since(o.bobPhone.Mark(), time.Second)
		v.line.HangUp()
		r := o.record(own.number)
		if got, steps, _ := o.passed(r.CallID); got != "who:hit vip:true hello:done text:sent record:done bob:answered" {
			t.Errorf("way of the caller: %s %+v", got, steps)
		}
		recording := o.recording(r.CallID).ID
		hears(t, "the recording of the caller", narrow(o.audio(recording, "?channel=caller")), visitorTone, 600*time.Millisecond)
		hears(t, "the recording of Bob", narrow(o.audio(recording, "?channel=agent")), bobTone, 600*time.Millisecond)
		var page struct {
			Data []struct {
				To   string `json:"to_number"`
				Body string
			}
		}
		o.Want(200, "GET", "/sms?direction=outbound", nil, &page)
		if len(page.Data) != 1 || page.Data[0].To != own.number || page.Data[0].Body != "Hello Vera, you called "+way.number+"." {
			t.Errorf("messages: %+v", page.Data)
		}
		w := o.visit(way, "+12125550102")
		w.hears(0, againTone)
		w.ends()
		if got, _, _ := o.passed(o.record("+12125550102").CallID); got != "who:miss stranger:done bye" {
			t.Errorf("way of a stranger: %s", got)
		}
	})
}

func TestAPromptThatIsMissingIsToldAndTheFlowGoesOn(t *testing.T) {
	t.Parallel()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}}))}
	o.bob = o.AddUser("Bob")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	way := o.line(o.publishes(map[string]any{"ivr": map[string]any{"greeting": "Press 1 for Bob.", "options": map[string]any{"1": "ext:" + o.bob.Extension},
		"timeout_to": "hangup"}}))
	v := o.visit(way, "+12125550101")
	v.press("1")
	v.hears(0, bobTone)
	v.line.HangUp()
	got, steps, _ := o.passed(o.record("+12125550101").CallID)
	if got != "menu:1 to_2:answered" || !strings.Contains(steps[0].Problem, "the prompt was not heard") {
		t.Errorf("way of the caller: %s %+v", got, steps)
	}
}

func TestAFlowLeadsWhomAProgramCallsAndWhomAnAgentSends(t *testing.T) {
	t.Parallel()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
	o.ada, o.bob, o.carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	o.carolPhone = o.phone(o.carol, carolTone, rig.PhoneOptions{Auto: true})
	greeting := o.sound(greetingTone, 3*time.Second)
	f := o.flow(
		node("menu", "menu", map[string]any{"prompt": greeting, "digits": map[string]any{"1": "x"}}, "1", "ai", "timeout", "bye", "invalid", "bye"),
		node("ai", "ai_agent", map[string]any{"instructions": "Help.", "handoff": "user:" + o.carol.ID}, "failed", "bye"),
		node("bye", "hangup", nil))
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.bob.Extension, "flow_id": f}, nil)
	o.bobPhone.Wait("CALL_ESTABLISHED", "")
	if d := presence(o.bobPhone.Since(0, time.Second), greetingTone); d < 500*time.Millisecond {
		t.Errorf("Bob heard the greeting for %s of a second", d)
	}
	o.bobPhone.Do("sndcode", "1")
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.talks("Bob", o.bobPhone, carolTone)
	o.talks("Carol", o.carolPhone, bobTone)
	o.bobPhone.Do("hangup", "")
	r := o.records(1, "")[0]
	if got, _, _ := o.passed(r.CallID); got != "menu:1 ai:answered" {
		t.Errorf("way of who was called: %s", got)
	}
	o.carolPhone.Wait("CALL_CLOSED", "")

	way := o.carrier(o.bob.ID, nil)
	v := o.visit(way, "+12125550101")
	at := v.hears(0, bobTone)
	id := o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
	o.Want(200, "POST", "/calls/"+id+"/transfer", map[string]any{"to": "flow:" + f}, nil)
	at = v.hears(at, greetingTone)
	v.press("1")
	v.hears(at, carolTone)
	v.line.HangUp()
	if r := o.record("+12125550101"); r.Agent == nil || r.Agent.ID != o.carol.ID || r.Status != "completed" {
		t.Errorf("record of who was sent into the flow: %s, agent %+v", r, r.Agent)
	}
}

func TestANumberSaysWhetherItsCallsAreRecorded(t *testing.T) {
	t.Parallel()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
	o.bob = o.AddUser("Bob")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	direct := o.carrier(o.bob.ID, nil)
	led := o.line(o.publishes(map[string]any{"hunt_group": map[string]any{"members": []map[string]any{{"user_id": o.bob.ID}}, "no_answer_to": "hangup"}}))
	for _, c := range []struct{ organisation, number, want string }{{"on", "off", "off"}, {"off", "on", "recording"}, {"on", "inherit", "recording"}} {
		o.Want(200, "PATCH", "/organization", map[string]any{"recording": map[string]any{"mode": c.organisation}}, nil)
		for kind, way := range map[string]carrier{"direct": direct, "led": led} {
			o.Want(200, "PATCH", "/numbers/"+o.numberID(way), map[string]any{"recording_mode": c.number}, nil)
			v := o.visit(way, "+12125550101")
			v.hears(0, bobTone)
			live := o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
			if state := live["recording"].(map[string]any)["state"]; state != c.want {
				t.Errorf("%s: recording of a call to a number with %s, in an organisation with %s, is %v, want %s", kind, c.number, c.organisation, state, c.want)
			}
			v.line.HangUp()
			o.bobPhone.Wait("CALL_CLOSED", "")
			rig.Until(t, "the end of the call", 10*time.Second, func() bool {
				return len(o.Do("GET", "/calls/live", nil).JSON()["data"].([]any)) == 0
			})
		}
	}
}

func TestACallerInAMenuOutlivesAKill(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := &office{site: newSite(s)}
		o.bob = o.AddUser("Bob")
		greeting := o.sound(greetingTone, 2*time.Second)
		way := o.line(o.publishes(map[string]any{"ivr": map[string]any{"greeting": greeting, "options": map[string]any{"1": "ext:" + o.bob.Extension},
			"timeout_to": "hangup"}}))
		v := o.visit(way, "+12125550101")
		v.hears(0, greetingTone)
		s.Kill()
		s.Start()
		v.hears(v.Mark()+4000, greetingTone) // from the beginning
		o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
		v.press("1")
		v.hears(v.Mark(), bobTone)
		if d := presence(o.bobPhone.Since(o.bobPhone.Mark(), time.Second), visitorTone); d < 500*time.Millisecond {
			t.Errorf("Bob heard the caller for %s of a second", d)
		}
		v.line.HangUp()
		if r := o.record("+12125550101"); r.String() != "inbound completed caller_hangup caller 0" || r.FlowVersion == nil {
			t.Errorf("record: %s", r)
		}
	})
}
