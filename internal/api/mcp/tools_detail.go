package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"soniq/internal/platform/access"
)

// Limits of one page of a transcript: segments, and bytes of them.
const (
	maxSegments     = 400
	maxSegmentBytes = 35_000
)

// callDetail combines a call with its transcript, summary and notes.
func callDetail(c *toolCall) (schema, *toolError) {
	id := map[string]string{"id": text(c.args["call_id"])}
	one, f := c.callOperation("calls.get", operationRequest{path: id, query: url.Values{"expand": {"notes"}}})
	if f != nil {
		return nil, f
	}
	out := schema{"call": one, "notes": one["notes"], "recording_url": one["recording_url"], "transcript": nil, "summary": nil}
	if out["notes"] == nil {
		out["notes"] = []any{}
	}
	for _, name := range []string{"notes", "transcript", "summary"} {
		delete(one, name)
	}
	if out["summary"], f = c.optional("calls.summary", operationRequest{path: id}); f != nil {
		return nil, f
	}
	words := url.Values{}
	if yes, _ := c.args["include_words"].(bool); yes {
		words.Set("words", "true")
	}
	transcript, f := c.optional("calls.transcript", operationRequest{path: id, query: words})
	if f != nil || transcript == nil {
		return out, f
	}
	out["transcript"] = transcript
	c.page(out, transcript.(schema))
	return out, nil
}

// optional calls an operation; a 404 or 410 returns nil.
func (c *toolCall) optional(id string, r operationRequest) (any, *toolError) {
	out, f := c.callOperation(id, r)
	if f != nil && (f.status == http.StatusNotFound || f.status == http.StatusGone) {
		return nil, nil
	}
	if f != nil {
		return nil, f
	}
	return out, nil
}

// page reduces a transcript to one page, beginning at segment_from.
func (c *toolCall) page(out, transcript schema) {
	delete(transcript, "text") // repeats the segments
	all, _ := transcript["segments"].([]any)
	from := 0
	if n, ok := c.args["segment_from"].(json.Number); ok {
		i, _ := n.Int64()
		from = int(min(max(i, 0), int64(len(all))))
	}
	size, end := 0, from
	for ; end < len(all) && end-from < maxSegments; end++ {
		b, _ := encode(all[end])
		if size += len(b); size > maxSegmentBytes && end > from {
			break
		}
	}
	transcript["segments"] = all[from:end]
	if end < len(all) {
		out["next_segment"] = json.Number(fmt.Sprint(end))
	}
}

func nullableSchema(s schema) schema { return schema{"anyOf": []any{s, schema{"type": "null"}}} }

// detailSchema returns the schema of callDetail.
func detailSchema(doc *document, s *Server) (schema, error) {
	out := schema{"next_segment": schema{"type": "integer"}, "recording_url": schema{"type": []any{"string", "null"}}}
	for name, id := range map[string]string{"call": "calls.get", "summary": "calls.summary", "transcript": "calls.transcript"} {
		answer, err := doc.result(s.operations[id])
		if err != nil {
			return nil, err
		}
		if name == "transcript" {
			answer = without(answer, "text")
		}
		if name != "call" {
			answer = nullableSchema(answer)
		}
		out[name] = answer
	}
	note, err := doc.result(s.operations["calls.note"])
	out["notes"] = schema{"type": "array", "items": note}
	return objectSchema(out, "call", "transcript", "summary", "recording_url", "notes"), err
}

// without returns a schema without a member.
func without(s schema, name string) schema {
	properties, required := schema{}, []any{}
	all, _ := s["properties"].(schema)
	for n, v := range all {
		if n != name {
			properties[n] = v
		}
	}
	needed, _ := s["required"].([]any)
	for _, n := range needed {
		if n != name {
			required = append(required, n)
		}
	}
	return objectSchema(properties, required...)
}

// queueStatus combines the statistics of queues with their agents.
func queueStatus(c *toolCall) (schema, *toolError) {
	wanted := text(c.args["queue_id"])
	stats, f := c.callOperation("queues.stats_all", operationRequest{})
	if f != nil {
		return nil, f
	}
	all, _ := stats["data"].([]any)
	out := []any{}
	for _, v := range all {
		one, _ := v.(schema)
		id := text(one["id"])
		if id == "" {
			id = text(one["queue_id"])
		}
		if wanted != "" && id != wanted {
			continue
		}
		agents, f := c.agentsOf(id)
		if f != nil {
			return nil, f
		}
		name := text(one["name"])
		delete(one, "name")
		delete(one, "id")
		delete(one, "queue_id")
		out = append(out, schema{"id": id, "name": name, "stats": one, "agents": agents})
	}
	if wanted != "" && len(out) == 0 {
		_, f := c.callOperation("queues.stats", operationRequest{path: map[string]string{"id": wanted}})
		return nil, f
	}
	return schema{"queues": out}, nil
}

// agentsOf returns the members of a queue with their presence.
func (c *toolCall) agentsOf(queue string) ([]any, *toolError) {
	answer, f := c.callOperation("agents.list", operationRequest{query: url.Values{"queue_id": {queue}, "limit": {"200"}}},
		access.QueuesRead)
	if f != nil {
		return nil, f
	}
	all, _ := answer["data"].([]any)
	out := []any{}
	for _, v := range all {
		one, _ := v.(schema)
		presence := text(one["presence"])
		if p, ok := one["presence"].(schema); ok {
			presence = text(p["status"])
		}
		out = append(out, schema{"id": one["id"], "name": one["name"], "presence": presence})
	}
	return out, nil
}

func queueSchema(doc *document, s *Server) (schema, error) {
	stats, err := doc.result(s.operations["queues.stats"])
	if err != nil {
		return nil, err
	}
	word := schema{"type": "string"}
	agent := objectSchema(schema{"id": word, "name": word, "presence": word}, "id", "name", "presence")
	queue := objectSchema(schema{"id": word, "name": word, "stats": stats, "agents": schema{"type": "array", "items": agent}}, "id", "name",
		"stats", "agents")
	return objectSchema(schema{"queues": schema{"type": "array", "items": queue}}, "queues"), nil
}
