package mcp_test

import (
	"slices"
	"strconv"
	"testing"

	"soniq/e2e/rig"
)

// published lists the tools of the contract, in its order, with the scope that each needs.
var published = [][2]string{
	{"get_live_calls", "calls:read"}, {"get_call_history", "calls:read"}, {"get_call_detail", "calls:read"}, {"get_missed_calls", "calls:read"},
	{"get_queue_status", "calls:read"}, {"make_call", "calls:write"}, {"add_call_note", "calls:write"}, {"lookup_contact", "contacts:read"},
	{"get_screen_pop", "contacts:read"}, {"create_contact", "contacts:write"}, {"update_contact", "contacts:write"},
	{"get_caller_memory", "memory:read"}, {"search_call_memory", "memory:read"}, {"get_call_analytics", "memory:read"},
	{"list_users", "users:admin"}, {"create_user", "users:admin"}, {"update_user", "users:admin"}, {"remove_user", "users:admin"},
	{"search_numbers", "numbers:admin"}, {"allocate_number", "numbers:admin"}, {"list_numbers", "numbers:admin"},
	{"list_call_flows", "flows:admin"}, {"create_call_flow", "flows:admin"}, {"monitor_call", "supervisor:write"},
}

func TestTools_ContractInEveryRevision(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	for era := range eras {
		a := connect(t, org, era, nil)
		list, err := a.session.ListTools(a.ctx, nil)
		if err != nil {
			t.Fatalf("%s: %v", era, err)
		}
		if len(list.Tools) != len(published) {
			t.Fatalf("%s: %d tools", era, len(list.Tools))
		}
		for i, tool := range list.Tools {
			if tool.Name != published[i][0] {
				t.Errorf("%s: tool %d is %s, want %s", era, i, tool.Name, published[i][0])
			}
			if tool.Title == "" || tool.Annotations == nil || tool.Annotations.DestructiveHint == nil ||
				tool.Annotations.OpenWorldHint == nil ||
				tool.OutputSchema == nil || len(tool.Description) > 600 || len(tool.Description) < 40 {
				t.Errorf("%s: %+v", tool.Name, tool)
			}
		}
		a.want("get_live_calls", nil)
	}
}

func TestTools_RunOrganisation(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	a := connect(t, org, "streamable", nil)

	made := a.want("create_user", map[string]any{"email": "ada@example.com", "first_name": "Ada", "idempotency_key": "one"})
	again := a.want("create_user", map[string]any{"email": "ada@example.com", "first_name": "Ada", "idempotency_key": "one"})
	user := text(made, "user", "id")
	if user == "" || user != text(again, "user", "id") || text(made, "sip", "password") != "" || text(made, "sip", "username") == "" ||
		text(made, "user", "invitation", "url") != "" {
		t.Fatalf("create_user: %v, again %v", made, again)
	}
	if got := a.want("update_user", map[string]any{"user_id": user, "name": "Ada Lovelace", "role": "viewer"}); text(got, "user", "last_name") != "Lovelace" {
		t.Errorf("update_user: %v", got)
	}
	var queue struct{ ID string }
	org.Want(201, "POST", "/queues", map[string]any{"name": "Support"}, &queue)
	a.want("update_user", map[string]any{"user_id": user, "queue_ids": []string{queue.ID}})
	if got := a.want("list_users", map[string]any{"queue_id": queue.ID, "limit": 1}); text(got, "users", "0", "id") != user || text(got, "users", "0", "presence", "status") == "" {
		t.Errorf("list_users: %v", got)
	}
	if got := a.want("get_queue_status", map[string]any{"queue_id": queue.ID}); text(got, "queues", "0", "name") != "Support" || text(got, "queues", "0", "agents", "0", "name") != "Ada Lovelace" {
		t.Errorf("get_queue_status: %v", got)
	}
	flow := a.want("create_call_flow", map[string]any{"name": "Desk", "publish": true, "hunt_group": map[string]any{
		"members": []map[string]any{{"user_id": user}}, "no_answer_to": "hangup"}})
	if got := a.want("list_call_flows", nil); text(got, "flows", "0", "id") != text(flow, "flow", "id") {
		t.Errorf("list_call_flows: %v", got)
	}
	if code := a.refused("allocate_number", map[string]any{"number": "+12025550160"}); code != "confirmation_required" {
		t.Errorf("allocate_number without a person's word: %s", code)
	}
	a.want("search_numbers", map[string]any{"country": "US"})
	a.want("list_numbers", nil)
	contact := a.want("create_contact", map[string]any{"first_name": "Grace", "phones": []map[string]any{{"number": "+12025550123"}}})
	a.want("update_contact", map[string]any{"contact_id": text(contact, "contact", "id"), "company": "Navy"})
	found := a.want("lookup_contact", map[string]any{"phone": "+12025550123"})
	if text(found, "company") != "Navy" || !listed(found, "name") {
		t.Errorf("lookup_contact: %v; what outsiders are called is to be listed in untrusted", found)
	}
	a.want("get_screen_pop", map[string]any{"phone": "+12025550123"})
	a.want("get_caller_memory", map[string]any{"phone": "+12025550123"})
	a.want("search_call_memory", map[string]any{"query": "invoice"})
	a.want("get_call_analytics", map[string]any{"since": "2026-01-01", "until": "2026-03-01", "interval": "month"})
	a.want("get_call_history", map[string]any{"limit": 5})
	a.want("get_missed_calls", nil)
	if code := a.refused("remove_user", map[string]any{"user_id": user}); code != "confirmation_required" {
		t.Errorf("remove_user without a person's word: %s", code)
	}
	if code := a.refused("remove_user", map[string]any{"user_id": user, "confirm": true}); code != "in_use" { // the flow rings the user
		t.Errorf("remove_user to whom a flow leads: %s", code)
	}
	org.Want(204, "DELETE", "/flows/"+text(flow, "flow", "id"), nil, nil)
	gone := a.want("remove_user", map[string]any{"user_id": user, "confirm": true})
	if text(gone, "released_extension") == "" || org.Do("GET", "/users/"+user, nil).JSON()["status"] == "active" {
		t.Errorf("remove_user: %v", gone)
	}
	wrongArguments(t, a)
	audited(t, org)
}

// wrongArguments checks that the error for invalid input names it, and that the call changes nothing.
func wrongArguments(t *testing.T, a *assistant) {
	t.Helper()
	for _, wrong := range []struct {
		tool string
		args map[string]any
		code string
	}{
		{"get_call_history", map[string]any{"limit": 51}, "validation_failed"},
		{"get_call_history", map[string]any{"colour": "red"}, "validation_failed"},
		{"get_call_history", map[string]any{"cursor": "nonsense"}, "invalid_cursor"},
		{"get_call_detail", map[string]any{"call_id": "call_none"}, "not_found"},
		{"get_call_detail", nil, "validation_failed"},
		{"lookup_contact", map[string]any{"phone": "+12025550123", "email": "a@example.com"}, "validation_failed"},
		{"monitor_call", map[string]any{"call_id": "call_none"}, "not_found"},
		{"make_call", map[string]any{"to": "nobody"}, "validation_failed"},
	} {
		if got := a.refused(wrong.tool, wrong.args); got != wrong.code {
			t.Errorf("%s %v: %s, want %s", wrong.tool, wrong.args, got, wrong.code)
		}
	}
}

// audited checks that every tool call has an audit entry with its client and scopes.
func audited(t *testing.T, org *rig.Client) {
	t.Helper()
	var lines struct {
		Data []struct {
			Operation string
			Outcome   string
			Actor     struct{ Client, Scopes string }
		}
	}
	org.Want(200, "GET", "/audit-log?limit=200", nil, &lines)
	seen := map[string]bool{}
	for _, l := range lines.Data {
		if l.Actor.Client == "test 1" && l.Actor.Scopes != "" {
			seen[l.Operation] = true
		}
	}
	for _, want := range []string{"tools.create_user", "tools.get_call_history", "tools.remove_user", "users.create"} {
		if !seen[want] {
			t.Errorf("no line of %s with its client in the audit log: %v", want, seen)
		}
	}
}

// text returns a value inside a result: members are selected by name, rows by position.
func text(v any, way ...string) string {
	for _, step := range way {
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(at) {
				return ""
			}
			v = at[i]
		}
	}
	s, _ := v.(string)
	return s
}

// listed reports whether a result lists a member as untrusted, because its text comes from outsiders.
func listed(v map[string]any, member string) bool {
	all, _ := v["untrusted"].([]any)
	return slices.Contains(all, any(member))
}
