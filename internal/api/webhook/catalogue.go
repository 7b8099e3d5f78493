package webhook

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
)

// kindDescriptions describe when each kind is sent.
var kindDescriptions = map[string]string{
	"call.started":       "A call was accepted for routing, or is about to be placed.",
	"call.answered":      "A person or an AI agent is connected.",
	"call.ended":         "A call is over: told once, when recording and summary are there, or 30 s after the end with what is. The event stream tells it at once, and what comes later by call.recording and call.transcription.",
	"call.missed":        "An inbound call ended without anybody connected.",
	"call.recording":     "A recording can be fetched, or has failed for good.",
	"call.transcription": "Transcript and summary are both finished, failed or skipped.",
	"voicemail.received": "A message was left.",
	"sms.received":       "A text message came in.",
	"sms.sent":           "A text message went out to the carrier.",
	"user.created":       "A user was added.",
	"number.allocated":   "A number belongs to the organisation and works.",
	"queue.call_waiting": "A caller entered a queue.",
}

// CatalogueEntry describes one kind of event.
type CatalogueEntry struct {
	Event       string          `json:"event"`
	Description string          `json:"description" doc:"When it is told"`
	Schema      json.RawMessage `json:"schema" doc:"JSON Schema (2020-12) of data"`
	Sample      json.RawMessage `json:"sample" doc:"A whole body"`
}

// CatalogueOut holds all kinds of events.
type CatalogueOut struct {
	HeaderPrefix string           `json:"header_prefix" doc:"Our own headers begin so, such as x-service-signature" example:"x-service"`
	Data         []CatalogueEntry `json:"data" nullable:"false"`
}

// Catalogue returns the kinds of events with their schemas and a sample of each.
func (s *Service) Catalogue(ctx context.Context, _ *struct{}) (*op.Out[CatalogueOut], error) {
	prefix, err := s.headerPrefix(ctx, access.Org(ctx))
	if err != nil {
		return nil, err
	}
	out := CatalogueOut{HeaderPrefix: prefix}
	for _, p := range samples() {
		body, err := event.Encode(p)
		if err != nil {
			return nil, err
		}
		schema, err := schemaOf(p)
		if err != nil {
			return nil, err
		}
		kind := string(p.Kind())
		out.Data = append(out.Data, CatalogueEntry{kind, kindDescriptions[kind], schema, body})
	}
	return op.OK(out)
}

// schemaOf returns the JSON Schema of a payload as a self-contained document.
func schemaOf(p event.Payload) (json.RawMessage, error) {
	schema, defs := op.SchemaOf(reflect.TypeOf(p))
	described, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(described, &all); err != nil {
		return nil, err
	}
	all["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	if len(defs) > 0 {
		all["$defs"] = defs
	}
	return json.Marshal(all)
}

// Describe adds the twelve webhooks to the OpenAPI document.
func (s *Service) Describe(doc *huma.OpenAPI) {
	doc.Webhooks = map[string]*huma.PathItem{}
	for _, p := range samples() {
		kind := string(p.Kind())
		sample, err := event.Encode(p)
		if err != nil {
			panic(err) // samples are constants of this package
		}
		doc.Webhooks[kind] = &huma.PathItem{Post: &huma.Operation{
			OperationID: "webhook." + kind, Summary: kindDescriptions[kind], Tags: []string{"webhooks"}, Parameters: deliveryHeaders(),
			RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
				"application/json": {Schema: envelope(doc, p), Example: json.RawMessage(sample)}}},
			Responses: responseMeanings(),
		}}
	}
}

// envelope returns the schema of a complete body.
func envelope(doc *huma.OpenAPI, p event.Payload) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Required: []string{"event", "data"}, Properties: map[string]*huma.Schema{
		"event": {Type: huma.TypeString, Enum: []any{string(p.Kind())}},
		"data":  doc.Components.Schemas.Schema(reflect.TypeOf(p), true, ""),
	}}
}

// deliveryHeaders returns the headers of a delivery. Our own headers have the prefix of the organisation or of the
// installation, which is x-service by default.
func deliveryHeaders() []*huma.Param {
	var all []*huma.Param
	for _, h := range []struct {
		name, means string
		always      bool
	}{
		{"webhook-id", "The event; the same on every attempt and every replay: deduplicate by it", true},
		{"webhook-timestamp", "When this attempt was made, in Unix seconds", true},
		{"webhook-signature", "Standard Webhooks: v1,<base64> of HMAC-SHA256 over id.timestamp.body; two of them while a secret is replaced", true},
		{"x-service-signature", "Hexadecimal HMAC-SHA256 of the body, keyed with the whole secret as it was shown", true},
		{"x-service-signature-previous", "The same with the previous secret, while a secret is replaced", false},
		{"x-service-event", "Kind of event", true},
		{"x-service-delivery", "Delivery", true},
		{"x-service-attempt", "Number of the attempt, from 1", true},
		{"x-service-sequence", "Number of the event in its organisation; events of one call may be put in order by it", true},
	} {
		all = append(all, &huma.Param{Name: h.name, In: "header", Required: h.always, Description: h.means,
			Schema: &huma.Schema{Type: huma.TypeString}})
	}
	return all
}

// responseMeanings returns the meaning of the receiver's answers.
func responseMeanings() map[string]*huma.Response {
	all := map[string]*huma.Response{}
	for line := range strings.Lines(`2XX Accepted. The header webhook-delivery: disable disables the webhook.
401 The receiver refused the signature; tried again.
410 The webhook is disabled and the event discarded.
429 Tried again, not before Retry-After.
503 Tried again, not before Retry-After.
default Tried again, twelve attempts over three days; the header webhook-delivery: abort-message ends them. Redirects are not followed.
`) {
		status, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[status] = &huma.Response{Description: text}
	}
	return all
}
