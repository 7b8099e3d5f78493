package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// patience is the time limit for one test's exchange with the server.
var patience = limit.Hang(0)

// keyed adds the credential to every request.
type keyed struct {
	key  string
	next http.RoundTripper
}

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return k.next.RoundTrip(r)
}

func (k keyed) client() *http.Client {
	if k.next == nil {
		k.next = http.DefaultTransport
	}
	return &http.Client{Transport: k}
}

// assistant is the official Go client with a key.
type assistant struct {
	t       testing.TB
	ctx     context.Context
	session *sdk.ClientSession
	schemas map[string]any // of the results, by tool
}

// eras holds the transports of the three revisions, all at the same address.
var eras = map[string]func(address string, c *http.Client) sdk.Transport{
	"2024-11-05 over SSE": func(a string, c *http.Client) sdk.Transport {
		return &sdk.SSEClientTransport{Endpoint: a, HTTPClient: c}
	},
	"streamable": func(a string, c *http.Client) sdk.Transport {
		return &sdk.StreamableClientTransport{Endpoint: a, HTTPClient: c}
	},
}

func address(s *rig.Server) string { return "http://" + s.HTTP + "/mcp/sse" }

// connect connects an assistant with a key; options may be nil.
func connect(t testing.TB, c *rig.Client, era string, o *sdk.ClientOptions) *assistant {
	t.Helper()
	return through(t, eras[era](address(c.Server), keyed{key: c.Key}.client()), o)
}

func through(t testing.TB, way sdk.Transport, o *sdk.ClientOptions) *assistant {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit.Hang(0))
	t.Cleanup(cancel)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(ctx, way, nil)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = session.Close() })
	a := &assistant{t, ctx, session, map[string]any{}}
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		t.Fatalf("list tools: %v", err)
	}
	for _, tool := range list.Tools {
		a.schemas[tool.Name] = tool.OutputSchema
	}
	return a
}

// call uses a tool.
func (a *assistant) call(name string, args map[string]any) (*sdk.CallToolResult, error) {
	return a.session.CallTool(a.ctx, &sdk.CallToolParams{Name: name, Arguments: args})
}

// want uses a tool that must succeed.
func (a *assistant) want(name string, args map[string]any) map[string]any {
	a.t.Helper()
	r, err := a.call(name, args)
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	if r.IsError {
		a.t.Fatalf("%s: %s", name, words(r))
	}
	b, err := json.Marshal(r.StructuredContent)
	var out map[string]any
	if err != nil || json.Unmarshal(b, &out) != nil {
		a.t.Fatalf("%s: %v in %s", name, err, b)
	}
	a.fits(name, b)
	return out
}

// fits checks a result against the schema of its tool.
func (a *assistant) fits(name string, result []byte) {
	a.t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("tool.json", a.schemas[name]); err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	s, err := c.Compile("tool.json")
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(result))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		a.t.Errorf("%s: the result is not what its schema says: %v in %s", name, err, result)
	}
}

// words returns the texts of a result.
func words(r *sdk.CallToolResult) string {
	var all string
	for _, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			all += text.Text + "\n"
		}
	}
	return all
}

// refused returns the error code of a tool call.
func (a *assistant) refused(name string, args map[string]any) string {
	a.t.Helper()
	r, err := a.call(name, args)
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	var p struct {
		Code string `json:"code"`
		What string `json:"what_to_do"`
	}
	if !r.IsError || len(r.Content) == 0 || json.Unmarshal([]byte(r.Content[0].(*sdk.TextContent).Text), &p) != nil || p.What == "" {
		a.t.Fatalf("%s: want a refusal that says what to do, got %+v %s", name, r, words(r))
	}
	return p.Code
}

// reads returns the text of a resource, or "" if it does not exist.
func (a *assistant) reads(uri string) string {
	r, err := a.session.ReadResource(a.ctx, &sdk.ReadResourceParams{URI: uri})
	if err != nil || len(r.Contents) == 0 {
		return ""
	}
	return r.Contents[0].Text
}

// completes returns the first completion of a queue id, or "" if there is none.
func (a *assistant) completes(typed string) string {
	a.t.Helper()
	r, err := a.session.Complete(a.ctx, &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/resource", URI: "queue://{id}/live"},
		Argument: sdk.CompleteParamsArgument{Name: "id", Value: typed}})
	if err != nil {
		a.t.Fatal(err)
	}
	if len(r.Completion.Values) == 0 {
		return ""
	}
	return r.Completion.Values[0]
}

// prompt returns the text of a prompt.
func (a *assistant) prompt(name string, args map[string]string) string {
	a.t.Helper()
	r, err := a.session.GetPrompt(a.ctx, &sdk.GetPromptParams{Name: name, Arguments: args})
	if err != nil {
		a.t.Fatal(err)
	}
	return r.Messages[0].Content.(*sdk.TextContent).Text
}
