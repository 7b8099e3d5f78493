package hooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/sandbox/softphone"
)

// judge validates events against the schemas that the server publishes, with a third-party validator.
type judge map[string]*jsonschema.Schema

func newJudge(t *testing.T, c *rig.Client) judge {
	t.Helper()
	var catalogue struct {
		Data []struct {
			Event  string
			Schema json.RawMessage
			Sample json.RawMessage
		}
	}
	c.Want(200, "GET", "/webhooks/events", nil, &catalogue)
	j := judge{}
	for _, k := range catalogue.Data {
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(k.Schema))
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		if err := compiler.AddResource("https://soniq.example/"+k.Event, schema); err != nil {
			t.Fatal(err)
		}
		if j[k.Event], err = compiler.Compile("https://soniq.example/" + k.Event); err != nil {
			t.Fatal(err)
		}
		j.valid(t, string(k.Sample))
	}
	if len(j) != 12 {
		t.Errorf("%d kinds in the catalogue", len(j))
	}
	return j
}

// valid checks a whole body.
func (j judge) valid(t *testing.T, body string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	all := v.(map[string]any)
	kind, _ := all["event"].(string)
	if j[kind] == nil || len(all) != 2 {
		t.Fatalf("no event of the contract: %s", body)
	}
	if err := j[kind].Validate(all["data"]); err != nil {
		t.Errorf("%s is not as published: %v\n%s", kind, err, body)
	}
}

// phone registers a telephone that answers.
func phone(t *testing.T, s *rig.Server, u rig.User) *softphone.Phone {
	t.Helper()
	p, err := softphone.Open(t.Context(), softphone.Account{Registrar: s.SIP, Username: u.SIP.Username, Domain: u.SIP.Domain,
		Password: u.SIP.Password},
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// talk makes a recorded call of three seconds with speech.
func talk(t *testing.T, from *softphone.Phone, to string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit.Hang(0))
	defer cancel()
	line, err := from.Call(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := softphone.Conversation()
	if err != nil {
		t.Fatal(err)
	}
	if err := line.Say(ctx, lines[0].PCM[:min(len(lines[0].PCM), 24000)]); err != nil {
		t.Fatal(err)
	}
	line.HangUp()
	<-line.Over()
}

// tuned returns a receiver with settings of its own.
func tuned(c *rig.Client, settings map[string]any) *rig.Receiver {
	h := c.Hook(nil)
	c.Want(200, "PATCH", "/webhooks/"+h.ID, settings, nil)
	return h
}

// Every event of real calls matches the published catalogue. The address of a recording in an event can be fetched
// with a key, or without one if the endpoint is configured so.
func TestEvents_MatchCatalogue(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Flags: []string{"--transcriber", "off"}}, func(t *testing.T, s *rig.Server) {
		c := s.Org("live")
		j := newJudge(t, c)
		all := c.Hook(nil)
		early := tuned(c, map[string]any{"call_ended_timing": "immediate", "events": []string{"call.ended"}})
		signed := tuned(c, map[string]any{"signed_recording_urls": true, "events": []string{"call.ended", "call.recording"}})
		inbound := tuned(c, map[string]any{"filters": map[string]any{"direction": "inbound"}})
		ada, bob, eve := c.AddUser("Ada"), c.AddUser("Bob"), c.AddUser("Eve")
		bobs := tuned(c, map[string]any{"filters": map[string]any{"user_ids": []string{bob.ID}, "direction": "internal"}, "ordered": true})
		eves := tuned(c, map[string]any{"filters": map[string]any{"user_ids": []string{eve.ID}}})
		one := phone(t, s, ada)
		phone(t, s, bob)
		talk(t, one, bob.Extension)

		ended := all.Wait("call.ended", time.Minute, nil)
		fetched(t, c, all.Wait("call.recording", time.Minute, nil).Data["recording_url"], c.Key)
		fetched(t, c, ended.Data["recording_url"], c.Key)
		if ended.Data["enriched"] != true {
			t.Errorf("call.ended %s", ended.Body)
		}
		fetched(t, c, signed.Wait("call.ended", time.Minute, nil).Data["recording_url"], "")
		fetched(t, c, signed.Wait("call.recording", time.Minute, nil).Data["recording_url"], "")
		if e := early.Wait("call.ended", time.Minute, nil); e.Data["enriched"] != false || e.Data["recording_url"] != nil && e.Data["recording_url"] == ended.Data["recording_url"] {
			fetched(t, c, e.Data["recording_url"], c.Key)
		}
		inVain(t, c, one, eve, all)
		all.Wait("call.transcription", time.Minute, nil)
		bobs.Wait("call.ended", time.Minute, nil) // in order: the transcription came before
		for _, h := range []*rig.Receiver{all, early, signed, bobs, eves} {
			for _, e := range h.Events() {
				j.valid(t, e.Body)
			}
		}
		attempted(t, c, ended.Data["call_id"].(string), all.ID, ended.Header.Get("webhook-id"))
		toldOf(t, all, ended.Data["call_id"], "call.started call.answered call.ended call.recording call.transcription")
		toldOf(t, bobs, ended.Data["call_id"], "call.started call.answered call.ended call.recording call.transcription")
		toldOf(t, eves, ended.Data["call_id"], "")
		toldOf(t, inbound, ended.Data["call_id"], "")
	})
}

// attempted finds the delivery attempt of an event in the timeline of its call.
func attempted(t *testing.T, c *rig.Client, call, webhook, event string) {
	t.Helper()
	found := func() bool {
		var steps struct {
			Data []struct {
				Kind   string
				Detail map[string]any
			}
		}
		c.Want(200, "GET", "/calls/"+call+"/events?limit=200", nil, &steps)
		for _, x := range steps.Data {
			if x.Detail["webhook_id"] == webhook && x.Detail["event_id"] == event {
				return x.Kind == "webhook.call.ended" && x.Detail["attempt"] == 1.0 && x.Detail["response_status"] == 200.0
			}
		}
		return false
	}
	rig.Until(t, "the attempt is a step of the call", 10*time.Second, found)
}

// inVain calls a user without a phone: the end of a call that was never answered.
func inVain(t *testing.T, c *rig.Client, one *softphone.Phone, eve rig.User, all *rig.Receiver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit.Hang(0))
	defer cancel()
	if line, err := one.Call(ctx, eve.Extension); err == nil {
		line.HangUp()
		t.Error("somebody without a phone answered")
	}
	all.Wait("call.ended", 30*time.Second, func(e rig.Event) bool { return e.Data["answered_at"] == nil && e.Data["to_number"] == eve.Extension })
}

// fetched fetches an address of a recording with a key, "" for none. The response must be audio.
func fetched(t *testing.T, c *rig.Client, address any, key string) {
	t.Helper()
	text, _ := address.(string)
	q, err := http.NewRequest("GET", text, nil)
	if err != nil || text == "" {
		t.Errorf("address of the recording: %v", address)
		return
	}
	if key != "" {
		q.Header.Set("Authorization", "Bearer "+key)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	if r.StatusCode != 200 || !bytes.HasPrefix(b, []byte("RIFF")) || len(b) < 8000 {
		t.Errorf("GET %s with key %t: %d, %d bytes", text, key != "", r.StatusCode, len(b))
	}
}

// toldOf checks the kinds of events of a call that an endpoint received, each once.
func toldOf(t *testing.T, h *rig.Receiver, call any, want string) {
	t.Helper()
	count := map[string]int{}
	for _, k := range strings.Fields(want) {
		count[k]++
	}
	var got []string
	for _, e := range h.Events() {
		if e.Data["call_id"] == call {
			count[e.Event]--
			got = append(got, e.Event)
		}
	}
	for k, n := range count {
		if n != 0 {
			t.Errorf("%s is missing or came %d times too often: %v", k, -n, got)
		}
	}
}

// If the transcript takes longer than 30 s, call.ended is sent then, without it. The event contains the recording.
func TestCallEnded_WaitsThirtySecondsForTranscript(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "call.ended waits 30 s for the transcript")
	over := make(chan struct{})
	engine := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(over); engine.Close() })
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", engine.URL + "/v1"}, Upset: true})
	c := s.Org("live")
	j := newJudge(t, c)
	all, early := c.Hook(nil), tuned(c, map[string]any{"call_ended_timing": "immediate"})
	ada, bob := c.AddUser("Ada"), c.AddUser("Bob")
	one := phone(t, s, ada)
	phone(t, s, bob)
	talk(t, one, bob.Extension)
	over1 := time.Now()
	early.Wait("call.ended", 15*time.Second, nil)
	e := all.Wait("call.ended", 50*time.Second, nil)
	if took := time.Since(over1); took < 25*time.Second || took > 40*time.Second {
		t.Errorf("told after %s, want 30 s", took)
	}
	if e.Data["enriched"] != false || e.Data["ai_summary"] != nil {
		t.Errorf("told %s", e.Body)
	}
	fetched(t, c, e.Data["recording_url"], c.Key)
	j.valid(t, e.Body)
}
