package op

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
)

// introduction is the description of the API in CommonMark.
const introduction = `Self-hosted cloud telephony: calls, recordings, transcripts, call memory, webhooks.

**Credentials.** Send ` + "`Authorization: Bearer <API key>`" +
	`. Live keys work below /api/v1 (and /v1), test keys below /sandbox/v1, where no call leaves the machine; the paths behind these prefixes are the same. What a key may do are its scopes: each operation names those it needs in x-scope. Pages of this server use the session in which their user is signed in: without Authorization, and with the header Soniq-Page: 1 in every request but GET and HEAD.

**Changes** may be repeated safely with an Idempotency-Key: the first answer is kept for 24 hours. An answer that refuses the request as such (400, 401, 403, 413, 415, 422, 429) is not kept: the corrected request may have the same key. A change of a record may carry If-Match with the ETag it was made from. A member of a request that may be left out is taken as left out where it is null, unless null is among its values: then it clears what was there.

**Lists** come in pages: repeat the request with cursor set to next_cursor until that is null.

**Errors** are problems (RFC 9457) with a stable code; each code is explained at /errors/{code}.

**Events** come by webhook (see Webhooks) or over the event stream, GET /events/stream.`

// introduce describes the service: servers, security schemes, webhooks.
func introduce(doc *huma.OpenAPI) {
	doc.Info.Description = introduction
	doc.Servers = []*huma.Server{{URL: "/", Description: "This server; its sandbox has the same paths below /sandbox/v1 in place of /api/v1"}}
	doc.Components.SecuritySchemes["webhookSignature"] = &huma.SecurityScheme{Type: "apiKey", In: "header", Name: "webhook-signature",
		Description: "What we sign a delivery with: Standard Webhooks, v1,<base64> of HMAC-SHA256 over id.timestamp.body"}
	for _, item := range doc.Webhooks {
		item.Post.Security = []map[string][]string{{"webhookSignature": {}}}
		item.Post.Description = item.Post.Summary +
			" Answer with a 2xx within timeout_seconds; check the signature over the bytes as they came."
	}
	doc.Components.Examples = map[string]*huma.Example{}
}

// tags describe the resources.
var tags = map[string]string{
	"calls":        "Calls in progress and past ones: place, answer, hold, transfer, record, end them.",
	"cdr":          "Call detail records: one unchanging line for each call that ended.",
	"recordings":   "Recordings of calls, their audio, retention and legal hold.",
	"queues":       "Callers who wait, the agents who take them, what happens when nobody does.",
	"agents":       "Users in their role as agents: presence, queues, what they do now.",
	"users":        "People of the organisation, their extensions, forwarding and credentials of their phones.",
	"contacts":     "Who is calling, from the connected sources.",
	"memory":       "What earlier calls were about, by person and by meaning.",
	"sms":          "Text messages.",
	"numbers":      "Telephone numbers and where their calls go.",
	"flows":        "What callers are led through before a person answers.",
	"devices":      "Telephones: credentials, registration, provisioning.",
	"voicemail":    "Messages that callers left.",
	"webhooks":     "Events sent to your server, their deliveries, replay, and the twelve kinds of events.",
	"partners":     "Organisations of customers that a partner sets up and looks after.",
	"analytics":    "Figures over calls, queues and agents.",
	"api-keys":     "Credentials of programs and their scopes.",
	"audio":        "Sounds that callers hear.",
	"callbacks":    "Calls to be placed later.",
	"events":       "The stream of events, live and from where you left off.",
	"me":           "Who the credential is, and the own settings, devices and numbers of its user.",
	"organization": "The organisation's settings, limits and usage.",
	"sandbox":      "What only the sandbox has: events and failures on demand.",
	"tags":         "Labels of calls.",
	"transcripts":  "What was said, by whom and when, with summary and mood.",
	"trunks":       "Connections to carriers and other exchanges.",
	"crm":          "Connected customer systems: where contacts come from and calls are written to.",
	"audit-log":    "Who changed what, when and from where.",
	"scim":         "Users provisioned by an identity provider (RFC 7644).",
}

// tag returns the tag of a resource.
func tag(resource string) *huma.Tag {
	doc := tags[resource]
	if doc == "" {
		doc = "Operations on " + strings.ReplaceAll(resource, "-", " ") + "."
	}
	return &huma.Tag{Name: resource, Description: doc}
}

// describeOperation adds description and parameter texts from the declaration.
func describeOperation(h *huma.Operation, o Operation) {
	if h.Description == "" {
		h.Description = o.Describe()
	}
	if o.Writes() && o.Method == http.MethodPost {
		addHeader(h, "Idempotency-Key", "A value of your own, at most 255 characters: a repeated request with it gets the first answer, and has no second effect")
	}
	h.Parameters = slices.DeleteFunc(h.Parameters, func(p *huma.Param) bool {
		return p.In == "header" && strings.EqualFold(p.Name, "Content-Type") // the body has its own media type (OpenAPI 3.1 §4.8.12)
	})
	for _, p := range h.Parameters {
		if p.Description == "" {
			p.Description = o.parameter(p)
		}
	}
}

// Describe returns the declaration of the operation in a few sentences: scope, environment and behaviour.
func (o Operation) Describe() string {
	all := []string{strings.TrimSuffix(o.Summary, ".") + "."}
	if o.Need.IsPublic() {
		all = append(all, "Needs no credential.")
	} else {
		all = append(all, fmt.Sprintf("Needs `%s`.", o.Need))
	}
	if o.SelfService {
		all = append(all, "A user's own credential may do it for that user without the scope.")
	}
	if o.Personal {
		all = append(all, "It is about the user of the credential; a credential without a user is answered 404.")
	}
	if o.sensitive {
		all = append(all, "A browser session needs a password or code that was entered within the last 15 minutes.")
	}
	if o.OnlyEnvironment == string(access.Sandbox) {
		all = append(all, "In the sandbox only.")
	}
	if o.AcceptsAsync {
		all = append(all, "Answers once the effect is confirmed, or 202 at once with `Prefer: respond-async`.")
	}
	if o.about != "" {
		all = append(all, o.about)
	} else if o.HasSideEffects && o.Writes() {
		all = append(all, "Acts on the call at once; what was done is not undone by an error that follows.")
	}
	if o.Rollout == RolloutPlanned {
		all = append(all, "Declared, not built yet: answers 501 `not_enabled`.")
	}
	return strings.Join(all, " ")
}

// parameterDocs are the default descriptions of parameters, by name.
var parameterDocs = map[string]string{
	"direction": "Only calls of this direction", "agent_id": "Only calls this user was connected to",
	"queue_id":  "Only those of this queue",
	"number_id": "Only calls over this number of the organisation", "user_id": "Only those of this user",
	"flow_id": "Only those led through this flow",
	"call_id": "Only those of this call", "skill": "Only agents who have this skill", "from_number": "Only calls from this number",
	"to_number": "Only calls to this number", "has_recording": "Only calls with, or without, a recording",
	"has_transcript": "Only calls with, or without, a transcript", "sentiment": "Only calls of this mood",
	"min_talk_seconds":     "Only calls that were talked on for at least so long",
	"min_duration_seconds": "Only recordings of at least this length",
	"sort":                 "By what the list is ordered; - is descending", "stage": "Only calls that are there now",
	"expand":  "What is added to the record",
	"include": "What is added to each record", "status": "Only those of this status; may be repeated",
	"kind":        "Only those of this kind; may be repeated",
	"disposition": "Only calls that were given this disposition", "missed_reason": "Only calls missed for this reason",
	"hangup_by": "Only calls ended by this side", "registered": "Only phones that are, or are not, registered",
	"vendor":     "Only phones of this maker",
	"capability": "Only numbers that can do this", "plan": "Only those on this plan", "interval": "Length of each step of the series",
	"signed_in": "Only members who are, or are not, signed in", "presence": "Only members of this presence; may be repeated",
	"legal_hold": "Only recordings that are, or are not, on hold", "format": "Format of the answer",
	"org":     "Of a signed address: the organisation",
	"expires": "Of a signed address: when it ends, in Unix seconds", "signature": "Of a signed address: its signature",
	"role": "Only users of this role; may be repeated",
}

// parameter returns the description of a parameter.
func (o Operation) parameter(p *huma.Param) string {
	if p.In == "path" {
		return o.inPath(p.Name)
	}
	if doc := parameterDocs[p.Name]; doc != "" {
		return doc
	}
	return "Only those with this " + word(p.Name)
}

// inPath describes a path parameter by the segment before it.
func (o Operation) inPath(name string) string {
	before, _, _ := strings.Cut(o.Path, "/{"+name+"}")
	collection := before[strings.LastIndex(before, "/")+1:]
	if name == "id" || strings.HasSuffix(name, "_id") {
		return "Identifier of the " + strings.ReplaceAll(singular(strings.ReplaceAll(collection, "-", "_")), "_", " ")
	}
	return "The " + word(name)
}

// addHeader describes a request header that is not described yet.
func addHeader(h *huma.Operation, name, doc string) {
	for _, p := range h.Parameters {
		if p.In == "header" && strings.EqualFold(p.Name, name) {
			return
		}
	}
	h.Parameters = append(h.Parameters, &huma.Param{Name: name, In: "header", Description: doc,
		Schema: &huma.Schema{Type: huma.TypeString}})
}
