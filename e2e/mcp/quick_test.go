package mcp_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"testing"

	"soniq/e2e/rig"
)

// as calls a method in the revision without sessions, with the given clientInfo.
func as(t *testing.T, c *rig.Client, client, method, name, params string, header ...string) reply {
	t.Helper()
	about := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":` + client + `}`
	all := append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}, header...)
	if name != "" {
		params, all = fmt.Sprintf(`"name":%q,"arguments":%s,`, name, params), append([]string{"Mcp-Name", name}, all...)
	}
	return post(t, address(c.Server), c.Key, `{"jsonrpc":"2.0","id":"a-1","method":"`+method+`","params":{`+params+about+`}}`, all...)
}

// momentary matches values that differ in each call.
var momentary = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|req_[0-9A-Z]{26}`)

// content returns the content of a reply without the momentary values.
func content(t *testing.T, r reply) any {
	t.Helper()
	var v any
	text := regexp.MustCompile(`(?m)^data: `).Split(r.body, 2)
	if r.status != 200 || len(text) != 2 || json.Unmarshal([]byte(momentary.ReplaceAllString(text[1], "then")), &v) != nil {
		t.Fatalf("%d: %s", r.status, r.body)
	}
	return v
}

// The library answers the first request of a client. The fast path answers the usual requests that follow, with the
// same content.
func TestFastPath_SameAsLibrary(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	few := s.Key(org.Org, "live", "calls:read")
	for i, c := range []struct {
		who                  *rig.Client
		method, name, params string
	}{
		{org, "tools/list", "", ""}, {few, "tools/list", "", ""}, {org, "tools/call", "get_live_calls", `{}`}, {few, "tools/call", "get_queue_status", `{}`},
		{org, "tools/call", "get_call_detail", `{}`}, {org, "tools/call", "get_call_detail", `{"call_id":"call_<none>"}`}, {org, "tools/call", "get_call_history", `{"limit":500,"x":1}`},
		{org, "tools/call", "create_contact", `{"first_name":"Zoë & <b>","phones":["+12025550123"]}`}, {org, "tools/call", "list_users", `{"limit":2}`},
		{org, "tools/call", "get_call_analytics", `[]`}, {org, "tools/call", "get_missed_calls", `null`},
	} {
		client := fmt.Sprintf(`{"name":"quick <%d>","version":"1"}`, i)
		slow, quick := as(t, c.who, client, c.method, c.name, c.params), as(t, c.who, client, c.method, c.name, c.params)
		if slow.header.Get("Content-Length") != "" || c.method == "tools/call" && quick.header.Get("Content-Length") == "" {
			t.Errorf("%s %s: not answered in two ways: %v, %v", c.method, c.name, slow.header, quick.header)
		}
		for _, name := range []string{"Content-Type", "Cache-Control"} {
			if slow.header.Get(name) != quick.header.Get(name) {
				t.Errorf("%s %s: %s %q, quickly %q", c.method, c.name, name, slow.header.Get(name), quick.header.Get(name))
			}
		}
		if a, b := content(t, slow), content(t, quick); c.name != "create_contact" && !reflect.DeepEqual(a, b) {
			t.Errorf("%s %s %s:\n%v\nquickly:\n%v", c.method, c.name, c.params, a, b)
		}
	}
}

func TestFastPath_UnusualLeftToLibrary(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	const client = `{"name":"odd","version":"1"}`
	as(t, org, client, "tools/call", "get_live_calls", `{}`)
	for what, r := range map[string]reply{
		"another method in the header": as(t, org, client, "tools/call", "get_live_calls", `{}`, "Mcp-Method", "tools/list"),
		"another tool in the header":   as(t, org, client, "tools/call", "get_live_calls", `{}`, "Mcp-Name", "list_users"),
		"a client without a name":      as(t, org, `{"name":7}`, "tools/call", "get_live_calls", `{}`),
		"another revision":             as(t, org, client, "tools/call", "get_live_calls", `{}`, "MCP-Protocol-Version", "2027-01-01"),
	} {
		if r.status != 400 {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
	if r := as(t, org, client, "tools/call", "get_live_calls", `{}`, "Accept", "application/json"); r.status != 400 {
		t.Errorf("who takes no stream: %d", r.status)
	}
	if r := as(t, org, client, "tools/call", "no_such_tool", `{}`); r.status != 200 && r.status != 400 {
		t.Errorf("a tool that is not there: %d %s", r.status, r.body)
	}
}
