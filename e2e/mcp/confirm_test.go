package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// asked calls a tool that requires confirmation, in the revision without sessions, as a client that supports
// elicitation; more is added to its parameters.
func asked(t *testing.T, c *rig.Client, args, more string) reply {
	t.Helper()
	can := strings.Replace(meta, `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{"form":{}}}`, 1)
	return post(t, address(c.Server), c.Key, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"remove_user","arguments":`+args+more+`,`+can+`}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "remove_user")
}

// message returns the JSON-RPC message of a reply, which may be a stream.
func (r reply) message(t *testing.T) (m struct {
	Result struct {
		ResultType   string
		RequestState string
		IsError      bool
		Content      []struct{ Text string }
	}
}) {
	t.Helper()
	text := r.body
	if _, data, found := strings.Cut(text, "data: "); found {
		text, _, _ = strings.Cut(data, "\n")
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v: %d %s", err, r.status, r.body)
	}
	return m
}

func TestConfirmation_OneCallOnly(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	ada, bob := org.AddUser("Ada"), org.AddUser("Bob")
	question := asked(t, org, `{"user_id":"`+ada.ID+`"}`, "").message(t)
	if question.Result.ResultType != "input_required" || question.Result.RequestState == "" {
		t.Fatalf("no question: %+v", question)
	}
	yes := `,"requestState":"` + question.Result.RequestState + `","inputResponses":{"confirm":{"action":"accept","content":{}}}`
	refused := func(name string, r reply) {
		t.Helper()
		if m := r.message(t); !m.Result.IsError || !strings.Contains(m.Result.Content[0].Text, "requestState") {
			t.Errorf("%s: %+v", name, m)
		}
	}
	refused("the yes for another user", asked(t, org, `{"user_id":"`+bob.ID+`"}`, yes))
	refused("the yes of another key", asked(t, s.Key(org.Org, "live", "all"), `{"user_id":"`+ada.ID+`"}`, yes))
	refused("a yes nobody asked for", asked(t, org, `{"user_id":"`+ada.ID+`"}`, strings.Replace(yes, question.Result.RequestState, "x.9999999999.y", 1)))
	if m := asked(t, org, `{"user_id":"`+ada.ID+`"}`, yes).message(t); m.Result.IsError || m.Result.ResultType != "complete" {
		t.Fatalf("the yes: %+v", m)
	}
	refused("the yes once more", asked(t, org, `{"user_id":"`+ada.ID+`"}`, yes))
	if org.Do("GET", "/users/"+bob.ID, nil).Status != 200 {
		t.Error("Bob was removed")
	}
}

func TestResources_PromptsAndCompletions(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	mine, theirs := s.Org("live"), s.Org("live")
	var queue struct{ ID string }
	mine.Want(201, "POST", "/queues", map[string]any{"name": "Support"}, &queue)
	for era := range eras {
		a, b := connect(t, mine, era, nil), connect(t, theirs, era, nil)
		if got := a.reads("queue://" + queue.ID + "/live"); !strings.Contains(got, "callers_waiting") {
			t.Errorf("%s: %s", era, got)
		}
		if got := b.reads("queue://" + queue.ID + "/live"); got != "" {
			t.Errorf("%s: another organisation reads %s", era, got)
		}
		if got := a.reads("calls://live"); !strings.Contains(got, "as_of") {
			t.Errorf("%s: %s", era, got)
		}
		if a.completes(queue.ID[:6]) != queue.ID || b.completes(queue.ID[:6]) != "" {
			t.Errorf("%s: completions %q, of others %q", era, a.completes(queue.ID[:6]), b.completes(queue.ID[:6]))
		}
		if got := a.prompt("caller_overview", map[string]string{"phone": "+12025550123"}); !strings.Contains(got, "+12025550123") {
			t.Errorf("%s: %s", era, got)
		}
	}
}
