package command_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/internal/sandbox/softphone"
)

// refusedWith checks a refusal as refused does, with an exit code.
func (r result) refusedWith(t *testing.T, code int, words ...string) {
	t.Helper()
	if r.code != code || r.out != "" || strings.Contains(r.wrong, "goroutine ") {
		t.Errorf("exit %d with %q on standard output and %q, want %d", r.code, r.out, r.wrong, code)
	}
	says(t, r.wrong, words...)
}

// Wrong use, missing access and unknown records end with exit codes of their own. The message names the remedy.
func TestRemote_ErrorsAndExitCodes(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "off"}})
	c := s.Org("live")
	weak := s.Key(c.Org, "live", "calls:read")
	env, poor := environment(c), environment(weak)
	for _, x := range []struct {
		env   []string
		code  int
		words []string
		args  string
	}{
		{env, 2, []string{"say what to do", "soniq calls dial"}, "calls"},
		{env, 2, []string{"soniq events replay"}, "events frobnicate"},
		{env, 2, []string{"say which call: soniq calls get CALL"}, "calls get"},
		{env, 2, []string{`"b" is one word too many`}, "calls get a b"},
		{env, 2, []string{"--nonsense"[1:], "--help"}, "calls list --nonsense"},
		{env, 2, []string{"--env must be live or test"}, "calls list --env prod"},
		{env, 2, []string{"--since", "2h"}, "calls list --since yesterday"},
		{env, 2, []string{"--forward-to", "http://localhost:3000/hook"}, "listen --forward-to localhost:3000"},
		{env, 2, []string{`no event "call.exploded"`, "call.ended"}, "trigger call.exploded"},
		{env, 2, []string{`no event "x"`}, "listen --events call.ended,x"},
		{env, 2, []string{"--secret must be whsec_"}, "listen --secret hunter2"},
		{env, 2, []string{"--since"}, "events replay"},
		{env, 2, []string{"say one of --user"}, "numbers assign +12025550143"},
		{env, 2, []string{"sandbox only", "_test_"}, "trigger call.ended"},
		{env, 4, []string{"no such call (not_found)"}, "calls get call_none"},
		{env, 4, []string{"has no number +12025550199"}, "numbers get +12025550199"},
		{env, 4, []string{"there is no webhook"}, "events replay --since 1h"},
		{env, 4, []string{"no user with the extension"}, "calls dial +12025550143 --user 999"},
		{env, 1, []string{"to: ", "(validation_failed)"}, "calls dial nonsense"},
		{env, 1, []string{"status", "(invalid_query)"}, "calls list --status asleep"},
		{poor, 3, []string{"the key lacks numbers:admin", "(insufficient_scope)"}, "numbers list"},
		{[]string{env[0], "SONIQ_KEY=soniq_live_wrong"}, 3, []string{"soniq admin keys create", "(unauthenticated)"}, "calls list"},
		{[]string{env[0], "SONIQ_KEY="}, 3, []string{"no API key", "--key", "SONIQ_KEY", "--data"}, "calls list --data /nowhere"},
		{[]string{"SONIQ_URL=http://127.0.0.1:9", env[1]}, 5, []string{"http://127.0.0.1:9 cannot be reached", "soniq serve"}, "calls list"},
		{[]string{"SONIQ_URL=http://127.0.0.1:9", env[1]}, 5, []string{"cannot be reached"}, "listen"},
		{[]string{"SONIQ_URL=" + newLocal(t, "").URL, env[1]}, 3, []string{"is this the address of soniq?"}, "calls list"},
	} {
		t.Run(x.args, func(t *testing.T) {
			soniq(t, x.env, strings.Fields(x.args)...).refusedWith(t, x.code, x.words...)
		})
	}
	for _, command := range []string{"listen", "trigger", "calls", "calls dial", "events replay", "numbers assign"} {
		if r := soniq(t, nil, append(strings.Fields(command), "--help")...); r.code != 0 || r.out+r.wrong == "" {
			t.Errorf("%s --help: %+v", command, r)
		}
	}
}

// TestCalls_DialWatchListEnd dials, watches, lists and ends real calls between telephones.
func TestCalls_DialWatchListEnd(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "off"}})
	c := s.Org("live")
	env := environment(c)
	if r := soniq(t, env, "calls", "list"); r.code != 0 || r.out != "" || !strings.Contains(r.wrong, "there are none") {
		t.Errorf("without calls: %+v", r)
	}
	ada, bob := c.AddUser("Ada"), c.AddUser("Bob")
	for _, u := range []rig.User{ada, bob} {
		answering(t, s, u)
	}
	watch := launch(t, env, "", "calls", "watch")
	dial := launch(t, env, ": ", "calls", "dial", "ext:"+bob.Extension, "--user", ada.Extension, "--wait")
	id, _, _ := strings.Cut(dial.said(), ":")
	says(t, dial.line("call.answered"), id)
	got := soniq(t, env, "calls", "get", id)
	says(t, got.out, "status", "in_progress", bob.Extension)
	list := soniq(t, env, "calls", "list", "--status", "in_progress")
	says(t, list.out, "STARTED", "DIRECTION", "in_progress", id)
	one := launch(t, env, "", "calls", "watch", id)
	says(t, one.line("now"), id, "in_progress")
	if r := soniq(t, env, "calls", "end", id, "--reason", "over", "--json"); r.code != 0 || !json.Valid([]byte(r.out)) {
		t.Errorf("end: %+v", r)
	}
	says(t, one.line("call.ended"), id, "completed")
	says(t, dial.line("call.ended"), id, "s of talk")
	if one.wait() != 0 || dial.wait() != 0 {
		t.Errorf("watch: %s; dial: %s", one.said(), dial.said())
	}
	says(t, watch.line("call.ended"), id)
	if watch.end() != 0 {
		t.Error("Ctrl-C does not end watch with 0")
	}
	if r := soniq(t, env, "calls", "watch", id); r.code != 0 || !strings.Contains(r.out, "completed") {
		t.Errorf("watch of a call that is over: %+v", r)
	}
	nobody := soniq(t, env, "calls", "dial", "ext:999", "--user", ada.ID, "--wait")
	if nobody.code != 1 {
		t.Errorf("dial of nobody: %+v", nobody)
	}
	if r := soniq(t, env, "calls", "end", id); r.code != 0 || !strings.Contains(r.out, "completed") {
		t.Errorf("the end of a call that is over: %+v", r)
	}
	events := soniq(t, env, "events", "list", "--call", id, "--kind", "call.started,call.ended")
	says(t, events.out, "SEQUENCE", "call.started", "call.ended", id)
	if n := strings.Count(events.out, "\n"); n != 3 {
		t.Errorf("%d lines of events: %s", n, events.out)
	}
	every := soniq(t, env, "events", "list", "--json", "--limit", "2")
	if strings.Count(every.out, "\n") != 2 {
		t.Errorf("two events: %s", every.out)
	}
}

// answering registers a telephone that answers every call and stays on it.
func answering(t *testing.T, s *rig.Server, u rig.User) {
	t.Helper()
	p, err := softphone.Open(t.Context(), softphone.Account{Registrar: s.SIP, Username: u.SIP.Username, Domain: u.SIP.Domain,
		Password: u.SIP.Password},
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
}

// TestNumbers_Route changes the destination of a number.
func TestNumbers_Route(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "off"}})
	c := s.Org("live")
	env := environment(c)
	ada := c.AddUser("Ada")
	var trunk, number struct{ ID string }
	c.Want(201, "POST", "/trunks", map[string]any{"name": "Carrier", "host": "sip.carrier.example"}, &trunk)
	c.Want(201, "POST", "/numbers", map[string]any{"number": "+12025550143", "trunk_id": trunk.ID}, &number)
	c.Want(201, "POST", "/numbers", map[string]any{"number": "+12025550144", "trunk_id": trunk.ID}, nil)
	says(t, soniq(t, env, "numbers", "list").out, "NUMBER", "+12025550143", "+12025550144", number.ID)
	for _, to := range []string{ada.ID, ada.Extension, "ada@example.com"} {
		if r := soniq(t, env, "numbers", "assign", "(202) 555-0143", "--user", to); r.code != 0 || !strings.Contains(r.out, "+12025550143 leads to user Ada") {
			t.Errorf("to %s: %+v", to, r)
		}
		if r := soniq(t, env, "numbers", "assign", number.ID, "--nobody"); r.code != 0 || strings.Contains(r.out, "Ada") {
			t.Errorf("to nobody: %+v", r)
		}
	}
	says(t, soniq(t, env, "numbers", "get", "+12025550144").out, "number", "+12025550144", "status")
}

// TestEvents_Replay delivers events that a receiver has missed.
func TestEvents_Replay(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "off"}})
	c := s.Org("test")
	env := environment(c)
	hook := c.Hook(nil)
	c.Want(200, "PATCH", "/webhooks/"+hook.ID, map[string]any{"events": []string{"call.missed"}}, nil)
	c.Want(200, "POST", "/sandbox/webhooks/fail", map[string]any{"webhook_id": hook.ID, "times": 1, "status": 410}, nil)
	for range 3 {
		soniq(t, env, "trigger", "call.missed")
	}
	rig.Until(t, "it is disabled", 20*time.Second, func() bool {
		var w struct{ Status string }
		c.Want(200, "GET", "/webhooks/"+hook.ID, nil, &w)
		return w.Status == "disabled"
	})
	soniq(t, env, "events", "replay", "--since", "1h").refusedWith(t, 1, "disabled", "(invalid_state)")
	c.Want(200, "PATCH", "/webhooks/"+hook.ID, map[string]any{"status": "active"}, nil)
	had := len(hook.Events())
	r := soniq(t, env, "events", "replay", hook.ID, "--since", "1h")
	says(t, r.out, " events are sent to "+hook.ID+" again")
	rig.Until(t, "all three came", 20*time.Second, func() bool { return len(hook.Events()) == 3 })
	if n := 3 - had; !strings.HasPrefix(r.out, fmt.Sprint(n)+" ") && had == 0 {
		t.Errorf("%s; %d were missing", r.out, n)
	}
	if r := soniq(t, env, "events", "replay", "--since", "1h"); !strings.HasPrefix(r.out, "0 events") {
		t.Errorf("what was received is sent again: %s", r.out)
	}
	var log struct{ Data []struct{ ID string } }
	c.Want(200, "GET", "/webhooks/"+hook.ID+"/deliveries", nil, &log)
	if r := soniq(t, env, "events", "replay", hook.ID, "--delivery", log.Data[0].ID); r.code != 0 ||
		!strings.Contains(r.out, log.Data[0].ID) {
		t.Errorf("one delivery: %+v", r)
	}
	rig.Until(t, "it came again", 20*time.Second, func() bool { return len(hook.Events()) == 4 })
}
