package mcp

import (
	"fmt"

	"soniq/internal/platform/access"
)

func callTools() []*tool {
	return []*tool{
		{name: "get_live_calls", title: "Calls in progress", scope: access.CallsRead, hints: readOnlyHints, operation: "calls.live",
			about: "Lists the calls in progress right now, with who talks to whom, since when, and where each call is (ringing, queue, agent, on hold). Use get_call_history for calls that ended.",
			args:  queryArgs("direction", "queue_id", "agent_id"),
			shape: shape{members: [][2]string{{"calls", "data"}, {"as_of", "as_of"}}}, summarize: rows("calls", "call in progress",
				"calls in progress")},
		{name: "get_call_history", title: "Call history", scope: access.CallsRead, hints: readOnlyHints, operation: "cdr.list",
			about: "Lists calls that ended, newest first, one record for each (CDR), with duration, result and AI summary. Filter by time, number, agent, queue, status or tag.",
			args:  joinArgs(queryArgs("since", "until", "phone", "agent_id", "queue_id", "status", "tag"), limitArg(inQuery), cursorArg()),
			shape: listShape("records"), summarize: rows("records", "call", "calls")},
		{name: "get_call_detail", title: "One call in detail", scope: access.CallsRead, hints: readOnlyHints, operation: "calls.get",
			about: "Shows one call with everything known of it: state, transcript, summary, notes and the address of its recording. A long transcript comes in parts: call again with segment_from set to next_segment.",
			args: joinArgs(pathArg("call_id", "id", "The call"),
				ownArg("include_words", schema{"type": "boolean", "description": "Single words with their times"}),
				ownArg("segment_from", schema{"type": "integer", "minimum": 0,
					"description": "First segment of the transcript that is shown; 0 unless given"})),
			resultSchema: detailSchema, run: callDetail, summarize: func(out schema) string { return callLine(out) }},
		{name: "get_missed_calls", title: "Missed calls", scope: access.CallsRead, hints: readOnlyHints, operation: "calls.missed",
			about: "Lists calls nobody answered, newest first, with the caller and whether someone has called back. Only those not handled yet, unless unhandled_only is false.",
			args: joinArgs(queryArgs("since", "until", "queue_id"),
				ownArg("unhandled_only", schema{"type": "boolean", "default": true,
					"description": "Only calls nobody has called back yet"}), limitArg(inQuery), cursorArg()),
			shape: listShape("calls"), run: missedCalls, summarize: rows("calls", "missed call", "missed calls")},
		{name: "get_queue_status", title: "Queues now", scope: access.CallsRead, hints: readOnlyHints, operation: "queues.stats",
			about: "Shows queues as they are now: how many callers wait, how long, and who of the agents is available. All queues unless queue_id is given.",
			args:  ownArg("queue_id", schema{"type": "string", "description": "Only this queue"}), resultSchema: queueSchema,
			run: queueStatus, summarize: rows("queues", "queue", "queues")},
		{name: "make_call", title: "Place a call", scope: access.CallsWrite, hints: hints{destructive: true, openWorld: true},
			operation: "calls.create",
			about:     "Places a call: first the phones of the user ring (user_id, or the user of this connection), then the number is called and both are connected. With flow_id who answers is led through that call flow instead. This rings real telephones.",
			args:      joinArgs(bodyArgs("to!", "from", "user_id", "flow_id", "record", "reason"), idempotencyKeyArg()),
			shape:     shape{wrapIn: "call"},
			run:       makeCall, question: callQuestion,
			summarize: callLine},
		{name: "add_call_note", title: "Add a note to a call", scope: access.CallsWrite, hints: createHints, operation: "calls.note",
			about: "Adds a note to a call. It is written to the connected CRM systems too, unless crm_sync is false.",
			args:  joinArgs(pathArg("call_id", "id", "The call"), bodyArgs("body!", "crm_sync")), shape: shape{wrapIn: "note"},
			summarize: func(schema) string { return "The note was added." }},
	}
}

// rows returns a summary function that counts the rows of a result.
func rows(name, one, many string) func(schema) string {
	return func(out schema) string {
		all, _ := out[name].([]any)
		text := fmt.Sprintf("%d %s.", len(all), many)
		if len(all) == 1 {
			text = "1 " + one + "."
		}
		if next, ok := out["next_cursor"].(string); ok && next != "" {
			text += " There are more: call again with cursor set to next_cursor."
		}
		if out["truncated"] == true {
			text += " The rest was left out: it would have been too long."
		}
		return text
	}
}

func callLine(out schema) string {
	one, _ := out["call"].(schema)
	line := fmt.Sprintf("Call %s from %s to %s is %s.", text(one["id"]), spoken(one["from_number"]), spoken(one["to_number"]),
		text(one["status"]))
	if next := out["next_segment"]; next != nil {
		line += " The transcript goes on: call again with segment_from set to next_segment."
	}
	return line
}

// spoken returns a value for a sentence of ours. A caller may show any text in place of a number; such text stays in its member.
func spoken(v any) string {
	if s := text(v); closedForm.MatchString(s) {
		return s
	}
	return "an unusual number"
}

// makeCall places a call. An identical call of the same client within duplicateWindow has no second effect.
func makeCall(c *toolCall) (schema, *toolError) {
	r := c.buildRequest()
	if r.header.Get("Idempotency-Key") == "" {
		r.header.Set("Idempotency-Key", c.s.duplicateCalls.key(c.sender.owner(), c.t.name+c.canonical()))
	}
	answer, f := c.callOperation(c.t.operation, r)
	return c.t.shape.apply(answer), f
}

func missedCalls(c *toolCall) (schema, *toolError) {
	r := c.buildRequest()
	if only, given := c.args["unhandled_only"].(bool); !given || only {
		r.query.Set("handled", "false")
	}
	answer, f := c.callOperation(c.t.operation, r)
	return c.t.shape.apply(answer), f
}
