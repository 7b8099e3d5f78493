package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"soniq/internal/platform/access"
)

func userTools() []*tool {
	return []*tool{
		{name: "list_users", title: "People", scope: access.UsersAdmin, hints: readOnlyHints, operation: "users.list",
			about: "Lists the people of the organisation with role, extension, queues and whether they are available right now.",
			args: joinArgs(queryArgs("role", "presence"),
				ownArg("queue_id", schema{"type": "string", "description": "Only members of this queue"}), queryArgs("q"),
				limitArg(inQuery), cursorArg()),
			shape: listShape("users"), run: listUsers, summarize: rows("users", "user", "users")},
		{name: "create_user", title: "Add a user", scope: access.UsersAdmin, hints: createHints, operation: "users.create",
			about:        "Adds a user with an extension and a phone. Passwords and links are not returned: the person gets an invitation by mail, or from somebody who administers users. A person confirms roles above agent.",
			args:         joinArgs(bodyArgs("email!", "first_name", "last_name", "role", "extension", "queue_ids"), idempotencyKeyArg()),
			resultSchema: createdSchema, run: createUser, question: newUserQuestion, summarize: func(out schema) string {
				u, _ := out["user"].(schema)
				return "User " + text(u["name"]) + " was added with extension " + text(u["extension"]) + "."
			}},
		{name: "update_user", title: "Change a user", scope: access.UsersAdmin, hints: updateHints, operation: "users.update",
			about: "Changes role, extension, name, queues or skills of a user; what is not given stays. queue_ids replaces the whole list. A person confirms roles above agent.",
			args: joinArgs(pathArg("user_id", "id", "The user"), bodyArgs("role", "extension"),
				ownArg("name", schema{"type": "string", "description": "First and last name"}),
				bodyArgs("queue_ids", "skills")), shape: shape{wrapIn: "user"}, run: updateUser,
			question:  roleQuestion,
			summarize: func(schema) string { return "The user was changed." }},
		{name: "remove_user", title: "Remove a user", scope: access.UsersAdmin, hints: updateHints, operation: "users.delete",
			about: "Removes a user: phones are signed out, queues left, numbers given to reassign_to, the extension becomes free. This cannot be undone.",
			args:  joinArgs(pathArg("user_id", "id", "The user"), confirmArg(), queryArgs("reassign_to")), resultSchema: removedSchema,
			run: removeUser, question: removalQuestion,
			summarize: func(out schema) string { return "The user was removed." }},
	}
}

// listUsers returns users with presence. For a queue it filters the pages of all users until it has enough members.
func listUsers(c *toolCall) (schema, *toolError) {
	r, queue := c.buildRequest(), text(c.args["queue_id"])
	r.query.Set("include", "presence")
	if queue == "" {
		answer, f := c.callOperation(c.t.operation, r)
		return c.t.shape.apply(answer), f
	}
	want := defaultRows
	if n, ok := c.args["limit"].(json.Number); ok {
		i, _ := n.Int64()
		want = int(i)
	}
	out := schema{"users": []any{}, "next_cursor": nil}
	const mostPages = 50
	for range mostPages {
		found := out["users"].([]any)
		r.query.Set("limit", fmt.Sprint(want-len(found)))
		page, f := c.callOperation(c.t.operation, r)
		if f != nil {
			return nil, f
		}
		all, _ := page["data"].([]any)
		for _, v := range all {
			one, _ := v.(schema)
			queues, _ := one["queue_ids"].([]any)
			if slices.Contains(queues, any(queue)) {
				found = append(found, v)
			}
		}
		out["users"], out["next_cursor"] = found, page["next_cursor"]
		next, more := page["next_cursor"].(string)
		if !more || next == "" || len(found) >= want {
			break
		}
		r.query.Set("cursor", next)
	}
	return out, nil
}

// createUser adds a user. Without a first name it uses the local part of the e-mail address.
func createUser(c *toolCall) (schema, *toolError) {
	r := c.buildRequest()
	if r.body["first_name"] == nil {
		before, _, _ := strings.Cut(text(r.body["email"]), "@")
		r.body["first_name"] = before
	}
	made, f := c.callOperation(c.t.operation, r)
	if f != nil {
		return nil, f
	}
	out := schema{"user": made, "sip": made["sip"], "devices": made["devices"]}
	delete(made, "sip")
	delete(made, "devices")
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil })
	return out, nil
}

func createdSchema(doc *document, s *Server) (schema, error) {
	user, err := doc.result(s.operations["users.create"])
	if err != nil {
		return nil, err
	}
	all, _ := user["properties"].(schema)
	return objectSchema(schema{"user": without(without(user, "sip"), "devices"), "sip": all["sip"], "devices": all["devices"]}, "user"), nil
}

func updateUser(c *toolCall) (schema, *toolError) {
	r := c.buildRequest()
	if name := strings.TrimSpace(text(c.args["name"])); name != "" {
		first, last, _ := strings.Cut(name, " ")
		if r.body == nil {
			r.body = schema{}
		}
		r.body["first_name"], r.body["last_name"] = first, strings.TrimSpace(last)
	}
	answer, f := c.callOperation(c.t.operation, r)
	return c.t.shape.apply(answer), f
}

func removeUser(c *toolCall) (schema, *toolError) {
	r := c.buildRequest()
	u, f := c.callOperation("users.get", operationRequest{path: r.path, query: url.Values{}})
	if f != nil {
		return nil, f
	}
	if _, f := c.callOperation(c.t.operation, r); f != nil {
		return nil, f
	}
	return schema{"removed": schema{"id": u["id"], "name": u["name"], "email": u["email"]}, "released_extension": u["extension"]}, nil
}

func removedSchema(*document, *Server) (schema, error) {
	word := schema{"type": "string"}
	return objectSchema(schema{"removed": objectSchema(schema{"id": word, "name": word, "email": word}, "id"),
		"released_extension": schema{"type": []any{"string", "null"}}}, "removed", "released_extension"), nil
}
