package mcp

import "soniq/internal/platform/access"

func numberTools() []*tool {
	return []*tool{
		{name: "search_numbers", title: "Find numbers to order", scope: access.NumbersAdmin, hints: lookupHints,
			operation: "numbers.search",
			about:     "Finds telephone numbers that can be ordered in a country, by area code, prefix or digits they contain. Order one with allocate_number.",
			args: joinArgs(requiredArgs(queryArgs("country", "area_code", "prefix", "contains", "type", "capabilities"), "country"),
				limitArg(inQuery)),
			shape: shape{members: [][2]string{{"numbers", "data"}}}, run: searchNumbers, summarize: rows("numbers", "number can be had",
				"numbers can be had")},
		{name: "allocate_number", title: "Order a number", scope: access.NumbersAdmin, hints: hints{openWorld: true},
			operation: "numbers.create",
			about:     "Orders a number found with search_numbers, or adds one of your own, and leads its calls to a flow. This may cost money.",
			args:      joinArgs(bodyArgs("number!", "flow_id", "label"), confirmArg(), idempotencyKeyArg()), shape: shape{wrapIn: "number"},
			question: orderQuestion,
			summarize: func(out schema) string {
				n, _ := out["number"].(schema)
				return "Number " + text(n["number"]) + " is " + text(n["status"]) + "."
			}},
		{name: "list_numbers", title: "Numbers", scope: access.NumbersAdmin, hints: readOnlyHints, operation: "numbers.list",
			about: "Lists the telephone numbers of the organisation and where their calls go (assigned_to).",
			args:  joinArgs(queryArgs("status", "flow_id"), limitArg(inQuery), cursorArg()), shape: listShape("numbers"),
			summarize: rows("numbers", "number", "numbers")},
	}
}

func searchNumbers(c *toolCall) (schema, *toolError) {
	c.progress("Asking for free numbers")
	return c.runOperation()
}

func flowTools() []*tool {
	return []*tool{
		{name: "list_call_flows", title: "Call flows", scope: access.FlowsAdmin, hints: readOnlyHints, operation: "flows.list",
			about: "Lists what callers are led through before a person answers (menus, hunt groups, AI agents), with the numbers that lead there.",
			args:  joinArgs(queryArgs("kind", "status", "q"), limitArg(inQuery), cursorArg()), shape: listShape("flows"),
			summarize: rows("flows", "flow", "flows")},
		{name: "create_call_flow", title: "Build a call flow", scope: access.FlowsAdmin, hints: createHints, operation: "flows.create",
			about: "Builds a call flow. Give a name and one of: ivr (a menu of digits), hunt_group (phones that ring together or in turn), ai_agent (an assistant that answers), or nodes with entry for anything else. publish puts it in force, number_ids leads numbers to it. A person confirms number_ids. Errors name each node that is wrong.",
			args:  bodyArgs("name!", "ivr", "hunt_group", "ai_agent", "nodes", "entry", "publish", "number_ids"), resultSchema: flowSchema,
			run: createFlow, question: flowQuestion, summarize: func(out schema) string {
				f, _ := out["flow"].(schema)
				return "Flow " + text(f["name"]) + " was made; it is " + text(f["status"]) + "."
			}},
	}
}

// createFlow creates a flow and returns its warnings in a member of their own.
func createFlow(c *toolCall) (schema, *toolError) {
	made, f := c.runOperation()
	if f != nil {
		return nil, f
	}
	warnings, _ := made["warnings"].([]any)
	if warnings == nil {
		warnings = []any{}
	}
	delete(made, "warnings")
	return schema{"flow": made, "warnings": warnings}, nil
}

func flowSchema(doc *document, s *Server) (schema, error) {
	flow, err := doc.result(s.operations["flows.create"])
	if err != nil {
		return nil, err
	}
	all, _ := flow["properties"].(schema)
	warnings, _ := all["warnings"].(schema)
	return objectSchema(schema{"flow": without(flow, "warnings"), "warnings": schema{"type": "array", "items": warnings["items"]}}, "flow",
		"warnings"), nil
}

func supervisorTools() []*tool {
	return []*tool{
		{name: "monitor_call", title: "Listen to a call", scope: access.SupervisorWrite, hints: hints{openWorld: true},
			operation: "calls.monitor.start",
			about:     "Lets a supervisor listen to a call in progress: their phone rings, and once they answer they hear both sides. Nobody on the call hears them. Laws may ask for the consent of those who talk.",
			args:      joinArgs(pathArg("call_id", "id", "The call"), bodyArgs("device_id", "user_id")), shape: shape{wrapIn: "monitor"},
			run: monitor, question: monitorQuestion,
			summarize: func(schema) string { return "The supervisor's phone rings; they hear the call once they answer." }},
	}
}

// monitor starts a supervision in mode listen only.
func monitor(c *toolCall) (schema, *toolError) {
	r := c.buildRequest()
	if r.body == nil {
		r.body = schema{}
	}
	r.body["mode"] = "listen"
	answer, f := c.callOperation(c.t.operation, r)
	return c.t.shape.apply(answer), f
}
