// Package op declares operations (name, route, scope, input, output, errors), and runs every request through one
// pipeline: scope, validation, idempotency, the typed function, audit.
package op

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
)

// Rollout is the state of an operation: live, beta, or planned (responds with 501 not_enabled).
type Rollout string

// Rollout states.
const (
	RolloutLive    Rollout = "live"
	RolloutPlanned Rollout = "planned"
)

// Operation is one function of the API. It is declared once and becomes a REST endpoint, an entry of the OpenAPI document and a
// documented scope. With a tool name it becomes an MCP tool too.
type Operation struct {
	ID      string
	Method  string
	Path    string // without the prefix, such as /calls/{id}
	Summary string
	Need    access.Need

	ToolName        string
	SuccessCode     int
	Rollout         Rollout
	HasSideEffects  bool     // has effects outside the database: does not run in a transaction
	AcceptsAsync    bool     // may respond with 202 to Prefer: respond-async
	Signed          bool     // the URL may have a signature instead of a credential
	SelfService     bool     // a user's credential may apply it to that user without the scope
	Personal        bool     // about the user of the credential: others are refused
	sensitive       bool     // a browser session needs a recent password or code
	ReadOnly        bool     // changes nothing although the method is not GET, such as a search with a body
	OnlyEnvironment string   // the only environment with the operation; empty: both
	Granting        bool     // gives rights to somebody
	GrantMembers    []string // members of the body that give rights
	about           string   // description beyond the summary
	answers         []alternative
	takes           []alternative // request bodies of an Upload
	maxBodyBytes    int64         // 0: maxBody
	class           Class         // quota class; empty: by method
	deprecation     *Deprecation
	fails           []string // error codes beyond those of the declaration
	read            Reader   // GET: returns the ETag
	record          Reader   // change: returns the ETag of the changed record
	created         Reader   // POST to a collection: returns the ETag of the created record
	createdParam    string   // path parameter of created
	versioned       bool     // GET of a record that can be changed
	list            bool     // the response is a Page
	hasVersion      bool     // the response is a record with a version
	register        func(api huma.API, c *Pipeline, o Operation)
}

// Out is the result of an operation: a status, headers, a body.
type Out[T any] struct {
	Status   int    `json:"-"`
	Location string `header:"Location" json:"-"`
	ETag     string `header:"ETag" json:"-"`
	Link     string `header:"Link" json:"-"`
	Body     T
}

// OK returns a result with a body.
func OK[T any](v T) (*Out[T], error) { return &Out[T]{Body: v}, nil }

// None is the result of an operation without a response body (204).
type None struct{}

// New declares an operation with a typed response body. route is "METHOD /path".
func New[I, O any](id, route string, need access.Requirement, summary string, fn func(context.Context, *I) (*Out[O], error)) Operation {
	o := declare(id, route, need, summary)
	o.read, o.hasVersion = Read(fn), hasVersion(reflect.TypeFor[O]())
	_, o.list = any(*new(O)).(interface{ unknownFields() []Violation })
	o.register = func(api huma.API, c *Pipeline, o Operation) {
		if o.SuccessCode == http.StatusNoContent {
			huma.Register(api, o.huma(), pipelineNone(c, o, func(ctx context.Context, in *I) error {
				_, err := fn(ctx, in)
				return err
			}))
			return
		}
		huma.Register(api, o.huma(), pipeline(c, o, fn))
		if o.AcceptsAsync {
			describeAccepted(api.OpenAPI(), o)
		}
	}
	return o
}

// Delete declares an operation that responds with 204 and no body.
func Delete[I any](id, route string, need access.Requirement, summary string, fn func(context.Context, *I) error) Operation {
	o := declare(id, route, need, summary)
	o.SuccessCode = http.StatusNoContent
	o.register = func(api huma.API, c *Pipeline, o Operation) { huma.Register(api, o.huma(), pipelineNone(c, o, fn)) }
	return o
}

// NewStream declares an operation that writes its own response: a file with ranges, text, or server-sent events.
func NewStream[I any](id, route string, need access.Requirement, summary string, fn func(context.Context, *I) (*huma.StreamResponse,
	error)) Operation {
	o := declare(id, route, need, summary)
	o.HasSideEffects = true
	o.register = func(api huma.API, c *Pipeline, o Operation) {
		h := o.huma()
		h.Responses = o.responses(api.OpenAPI().Components.Schemas)
		huma.Register(api, h, pipelineStream(c, o, fn))
	}
	return o
}

// Planned declares a published operation that is not implemented yet. It responds with 501 not_enabled, never 404.
func Planned(id, route string, need access.Requirement, summary string) Operation {
	e := &Error{Code: "not_enabled", Detail: id + " is declared but not built yet", Extra: map[string]any{"rollout": RolloutPlanned}}
	var o Operation
	if strings.Contains(route, "{id}") {
		o = New(id, route, need, summary, func(context.Context, *named) (*Out[map[string]any], error) { return nil, e })
	} else {
		o = New(id, route, need, summary, func(context.Context, *struct{}) (*Out[map[string]any], error) { return nil, e })
	}
	o.Rollout = RolloutPlanned
	o.HasSideEffects = true
	return o
}

// named is the input of a planned operation on a record.
type named struct {
	ID string `path:"id"`
}

func declare(id, route string, need access.Requirement, summary string) Operation {
	method, path, _ := strings.Cut(route, " ")
	return Operation{ID: id, Method: method, Path: path, Summary: summary, Need: need.Need(),
		SuccessCode: http.StatusOK, Rollout: RolloutLive}
}

// Tool makes the operation an MCP tool with a published name.
func (o Operation) Tool(name string) Operation { o.ToolName = name; return o }

// Status sets the HTTP status of success.
func (o Operation) Status(code int) Operation { o.SuccessCode = code; return o }

// WithSideEffects marks an operation with effects outside the database, such as on calls. It does not run in a
// transaction.
func (o Operation) WithSideEffects() Operation { o.HasSideEffects = true; return o }

// Async allows a 202 response with the same body before the effect is complete.
func (o Operation) Async() Operation { o.AcceptsAsync = true; return o }

// About adds a description in whole sentences.
func (o Operation) About(text string) Operation { o.about = text; return o }

// ForSelf allows a user's credential, whatever its scopes, to use the operation on that user: the id in the path is
// the user's.
func (o Operation) ForSelf() Operation { o.SelfService = true; return o }

// ForPerson marks an operation about the user of the credential. A credential of the organisation itself is answered 404.
func (o Operation) ForPerson() Operation { o.Personal = true; return o }

// Reads marks an operation that changes nothing although its method is not GET.
func (o Operation) Reads() Operation { o.ReadOnly = true; return o }

// AllowSigned accepts a URL with a valid signature instead of a credential.
func (o Operation) AllowSigned() Operation { o.Signed = true; return o }

// Only limits the operation to one environment.
func (o Operation) Only(e access.Environment) Operation { o.OnlyEnvironment = string(e); return o }

// Writes reports whether the operation changes data.
func (o Operation) Writes() bool { return o.Method != http.MethodGet && !o.ReadOnly }

// Resource returns the first segment of the path.
func (o Operation) Resource() string {
	first, _, _ := strings.Cut(strings.TrimPrefix(o.Path, "/"), "/")
	return first
}

// huma returns the library's declaration of the operation, for routing and validation.
func (o Operation) huma() huma.Operation {
	h := huma.Operation{
		OperationID: o.ID, Method: o.Method, Path: Prefix + o.Path, Summary: o.Summary,
		DefaultStatus: o.SuccessCode, Tags: []string{o.Resource()},
		MaxBodyBytes:                 o.bodyLimit(),
		RejectUnknownQueryParameters: o.Rollout != RolloutPlanned,
		Extensions:                   map[string]any{"x-scope": o.Need.String(), "x-rollout": string(o.Rollout)},
		Metadata:                     map[string]any{operationKey: o},
		Errors:                       statuses(o.Codes()),
		Deprecated:                   o.deprecation != nil,
	}
	if o.OnlyEnvironment != "" {
		h.Extensions["x-environment"] = o.OnlyEnvironment
	}
	o.grantExtension(h.Extensions)
	if o.SelfService {
		h.Extensions["x-own"] = true
	}
	if o.Personal {
		h.Extensions["x-personal"] = true
	}
	if o.ToolName != "" {
		h.Extensions["x-mcp-tool"] = o.ToolName
	}
	if !o.Need.IsPublic() {
		h.Security = []map[string][]string{{"apiKey": {}}}
	}
	if o.deprecation != nil {
		h.Extensions["x-sunset"] = o.deprecation.Sunset.Format(time.DateOnly)
	}
	return h
}

// Prefix is the registered path prefix. /v1 and /sandbox/v1 are rewritten to it.
const Prefix = "/api/v1"

const operationKey = "operation"
