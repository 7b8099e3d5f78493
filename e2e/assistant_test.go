package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/e2e/rig"
)

// An assistant is the official Go client of the tool server.
type assistant struct {
	t       testing.TB
	ctx     context.Context
	session *sdk.ClientSession
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// assistant lets one in. Where it can ask its person, they answer with the action.
func (o *site) assistant(action string) *assistant {
	o.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	o.T.Cleanup(cancel)
	options := &sdk.ClientOptions{}
	if action != "" {
		options.ElicitationHandler = func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: action, Content: map[string]any{}}, nil
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "desk", Version: "2"}, options)
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: "http://" + o.Server.HTTP + "/mcp/sse",
		HTTPClient: &http.Client{Transport: bearer(o.Key)}}, nil)
	if err != nil {
		o.T.Fatalf("connect: %v", err)
	}
	o.T.Cleanup(func() { _ = session.Close() })
	return &assistant{o.T, ctx, session}
}

// use calls a tool; the result is its structured content, or the words of its error.
func (a *assistant) use(name string, args map[string]any) (out map[string]any, refused string) {
	a.t.Helper()
	r, err := a.session.CallTool(a.ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	if r.IsError {
		return nil, r.Content[0].(*sdk.TextContent).Text
	}
	b, _ := json.Marshal(r.StructuredContent)
	if err := json.Unmarshal(b, &out); err != nil {
		a.t.Fatalf("%s: %v in %s", name, err, b)
	}
	return out, ""
}

func (a *assistant) must(name string, args map[string]any) map[string]any {
	a.t.Helper()
	out, refused := a.use(name, args)
	if refused != "" {
		a.t.Fatalf("%s: %s", name, refused)
	}
	return out
}

func TestAnAssistantPlacesACallAndASupervisorHearsItOnlyThemselves(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	place := map[string]any{"to": "ext:" + o.bob.Extension, "user_id": o.ada.ID, "reason": "the broken heating"}
	if _, refused := o.assistant("decline").use("make_call", place); !strings.Contains(refused, `"declined"`) {
		t.Fatalf("make_call that the person declined: %q", refused)
	}
	a := o.assistant("accept")
	if calls := a.must("get_live_calls", nil)["calls"].([]any); len(calls) != 0 {
		t.Fatalf("a declined call was placed: %v", calls)
	}
	made := a.must("make_call", place)["call"].(map[string]any)
	again := a.must("make_call", place)["call"].(map[string]any)
	if made["id"] != again["id"] || made["source"] != "mcp" {
		t.Errorf("the same call at once: %v, %v, source %v", made["id"], again["id"], made["source"])
	}
	o.adaPhone.Wait("CALL_ESTABLISHED", "")
	o.bobPhone.Wait("CALL_ESTABLISHED", "")
	o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
	seen := a.must("get_live_calls", nil)["calls"].([]any)
	if len(seen) != 1 || seen[0].(map[string]any)["id"] != made["id"] {
		t.Fatalf("live calls: %v", seen)
	}
	id := made["id"].(string)
	a.must("monitor_call", map[string]any{"call_id": id, "user_id": o.carol.ID})
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.talks("Carol, listening,", o.carolPhone, adaTone, bobTone)
	o.talks("Ada", o.adaPhone, bobTone)
	o.talks("Bob", o.bobPhone, adaTone)
	a.must("add_call_note", map[string]any{"call_id": id, "body": "promised a visit on Tuesday"})
	o.adaPhone.Do("hangup", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	o.record(o.ada.Extension)
	remembers(t, a, id)
}

// remembers checks what the tools tell of a call that ended.
func remembers(t *testing.T, a *assistant, id string) {
	t.Helper()
	if rows := a.must("get_call_history", map[string]any{"limit": 5})["records"].([]any); len(rows) != 1 || rows[0].(map[string]any)["call_id"] != id {
		t.Errorf("history: %v", rows)
	}
	detail := a.must("get_call_detail", map[string]any{"call_id": id})
	var bodies []string
	for _, n := range detail["notes"].([]any) {
		note := n.(map[string]any)
		bodies = append(bodies, note["body"].(string))
		if kind := note["author"].(map[string]any)["type"]; kind != "mcp" {
			t.Errorf("author of %v: %v", note["body"], kind)
		}
	}
	if !slices.Contains(bodies, "promised a visit on Tuesday") || !slices.Contains(bodies, "the broken heating") {
		t.Errorf("notes: %v", bodies)
	}
}

// recalls checks that an assistant finds a call by what it was about, and reads what was said as the words of outsiders.
func (s *site) recalls(question, id string) {
	s.T.Helper()
	a := s.assistant("")
	found := a.must("search_call_memory", map[string]any{"query": question, "limit": 3})["results"].([]any)
	if !slices.ContainsFunc(found, func(r any) bool { return r.(map[string]any)["call_id"] == id }) {
		s.T.Errorf("%q does not lead an assistant to %s: %v", question, id, found)
	}
	detail := a.must("get_call_detail", map[string]any{"call_id": id})
	transcript, _ := detail["transcript"].(map[string]any)
	segments, _ := transcript["segments"].([]any)
	outside, _ := detail["untrusted"].([]any)
	if len(segments) == 0 || !slices.Contains(outside, any("transcript.segments[].text")) {
		s.T.Errorf("call %s: %d segments, untrusted %v", id, len(segments), outside)
	}
	a.must("get_caller_memory", map[string]any{"phone": "+12025550123"})
}
