package mcp

import (
	"net/url"

	"soniq/internal/platform/access"
)

func memoryTools() []*tool {
	return []*tool{
		{name: "get_caller_memory", title: "What we know of a number", scope: access.MemoryRead, hints: readOnlyHints,
			operation: "memory.caller",
			about:     "Shows the whole history of a telephone number as the AI remembers it: summary, open items, mood over time, earlier calls, messages and voicemails.",
			args:      joinArgs(pathArg("phone", "phone", "The number, in E.164"), limitArg(inQuery)),
			summarize: func(out schema) string { return text(out["calls_total"]) + " calls with this number." }},
		{name: "search_call_memory", title: "Search what was said", scope: access.MemoryRead, hints: readOnlyHints,
			operation: "memory.search",
			about:     "Searches everything said and written on calls by meaning, not only by words: transcripts, summaries, notes, voicemails, messages. Returns the passages that answer the query best, with call and time.",
			args:      joinArgs(bodyArgs("query!", "phone", "since", "until", "agent_id", "kinds"), limitArg(inBody)),
			shape:     shape{members: [][2]string{{"results", "results"}, {"took_ms", "took_ms"}}}, summarize: rows("results", "passage",
				"passages")},
		{name: "get_call_analytics", title: "Figures over calls", scope: access.MemoryRead, hints: readOnlyHints,
			operation:    "analytics.calls",
			about:        "Counts calls over a time: volume, answer and miss rates, durations, in steps and by group, with topics, moods and repeat callers. Periods may be up to a year.",
			args:         requiredArgs(queryArgs("since", "until", "interval", "group_by", "queue_id", "agent_id"), "since", "until"),
			resultSchema: analyticsSchema, run: callAnalytics, summarize: func(out schema) string {
				totals, _ := out["totals"].(schema)
				return "Figures over " + text(totals["calls"]) + " calls."
			}},
	}
}

func requiredArgs(all []argument, names ...string) []argument {
	for i := range all {
		for _, n := range names {
			all[i].required = all[i].required || all[i].name == n
		}
	}
	return all
}

// callAnalytics combines the figures with the topics. The tool shows both under its own scope.
func callAnalytics(c *toolCall) (schema, *toolError) {
	r := c.buildRequest()
	figures, f := c.callOperation("analytics.calls", r, access.CallsRead)
	if f != nil {
		return nil, f
	}
	out := schema{"totals": figures["totals"], "series": figures["series"], "groups": figures["groups"]}
	if out["groups"] == nil {
		out["groups"] = []any{}
	}
	about := url.Values{}
	for _, name := range []string{"since", "until", "interval", "queue_id", "agent_id"} {
		if r.query.Has(name) {
			about[name] = r.query[name]
		}
	}
	insights, f := c.callOperation("analytics.insights", operationRequest{query: about})
	if f != nil {
		return nil, f
	}
	out["insights"] = insights
	return out, nil
}

func analyticsSchema(doc *document, s *Server) (schema, error) {
	figures, err := doc.result(s.operations["analytics.calls"])
	if err != nil {
		return nil, err
	}
	insights, err := doc.result(s.operations["analytics.insights"])
	if err != nil {
		return nil, err
	}
	all, _ := figures["properties"].(schema)
	groups := all["groups"].(schema)
	return objectSchema(schema{"totals": all["totals"], "series": all["series"],
		"groups": schema{"type": "array", "items": groups["items"]}, "insights": insights}, "totals", "series", "groups", "insights"), nil
}
