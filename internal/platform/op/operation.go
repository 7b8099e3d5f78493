// Package op says what an operation is (name, route, scope, input, output, errors), and walks every request
// through the one corridor: scope, validation, idempotency, the typed function, audit.
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

// Rollout is how far an operation is: live, beta, or planned (which answers 501 not_enabled).
type Rollout string

// The rollout states.
const (
	RolloutLive    Rollout = "live"
	RolloutPlanned Rollout = "planned"
)

// An Operation is one thing the outside world can do. It is declared once and becomes a REST endpoint, an entry of
// the OpenAPI document, a documented scope and, where it has a tool name, an MCP tool.
type Operation struct {
	ID      string
	Method  string
	Path    string // below the prefix, such as /calls/{id}
	Summary string
	Need    access.Need

	ToolName     string
	SuccessCode  int
	Rollout      Rollout
	Outside      bool   // acts on the outside world: not run inside a transaction
	Accepts      bool   // may answer 202 where the client prefers not to wait
	Signed       bool   // the address may carry a signature instead of a credential
	Own          bool   // a user's credential may use it on that user, without the scope
	ReadOnly     bool   // changes nothing although it is no GET, such as a search with a body
	EnvironmentO string // "" both, or the only environment it is offered in
	about        string // more than the summary says
	answers      []alternative
	takes        []alternative // bodies of an Upload
	mostBody     int64         // 0: maxBody
	class        Class         // "": what the method says
	farewell     *Farewell
	fails        []string // codes beside those that follow from the declaration
	read         Reader   // of a GET: its ETag
	record       Reader   // of a change: the ETag of what it changes
	made         Reader   // of a POST to a collection: the ETag of what it made
	madeAt       string   // the parameter of that
	versioned    bool     // a GET of what can be changed
	list         bool     // answers a Page
	tagged       bool     // answers a record that tells its version
	register     func(api huma.API, c *Corridor, o Operation)
}

// Out is the ordinary result: a status, two headers, a body.
type Out[T any] struct {
	Status   int    `json:"-"`
	Location string `header:"Location" json:"-"`
	ETag     string `header:"ETag" json:"-"`
	Link     string `header:"Link" json:"-"`
	Body     T
}

// OK wraps a result.
func OK[T any](v T) (*Out[T], error) { return &Out[T]{Body: v}, nil }

// None is the result of an operation that answers without a body (204).
type None struct{}

// New declares an operation that answers a typed body. Route is "METHOD /path".
func New[I, O any](id, route string, need access.Requirement, summary string, fn func(context.Context, *I) (*Out[O], error)) Operation {
	o := declare(id, route, need, summary)
	o.read, o.tagged = Read(fn), tells(reflect.TypeFor[O]())
	_, o.list = any(*new(O)).(interface{ unknownFields() []Violation })
	o.register = func(api huma.API, c *Corridor, o Operation) {
		if o.SuccessCode == http.StatusNoContent {
			huma.Register(api, o.huma(), corridorNone(c, o, func(ctx context.Context, in *I) error {
				_, err := fn(ctx, in)
				return err
			}))
			return
		}
		huma.Register(api, o.huma(), corridor(c, o, fn))
		if o.Accepts {
			describeAccepted(api.OpenAPI(), o)
		}
	}
	return o
}

// Delete declares an operation that answers 204 without a body.
func Delete[I any](id, route string, need access.Requirement, summary string, fn func(context.Context, *I) error) Operation {
	o := declare(id, route, need, summary)
	o.SuccessCode = http.StatusNoContent
	o.register = func(api huma.API, c *Corridor, o Operation) { huma.Register(api, o.huma(), corridorNone(c, o, fn)) }
	return o
}

// NewStream declares an operation that writes its own answer: a file with ranges, text, or server-sent events.
func NewStream[I any](id, route string, need access.Requirement, summary string, fn func(context.Context, *I) (*huma.StreamResponse, error)) Operation {
	o := declare(id, route, need, summary)
	o.Outside = true
	o.register = func(api huma.API, c *Corridor, o Operation) {
		h := o.huma()
		h.Responses = o.responses(api.OpenAPI().Components.Schemas)
		huma.Register(api, h, corridorStream(c, o, fn))
	}
	return o
}

// Planned declares a published operation that is not built yet. It answers 501 not_enabled, never 404.
func Planned(id, route string, need access.Requirement, summary string) Operation {
	e := &Error{Code: "not_enabled", Detail: id + " is declared but not built yet", Extra: map[string]any{"rollout": RolloutPlanned}}
	var o Operation
	if strings.Contains(route, "{id}") {
		o = New(id, route, need, summary, func(context.Context, *named) (*Out[map[string]any], error) { return nil, e })
	} else {
		o = New(id, route, need, summary, func(context.Context, *struct{}) (*Out[map[string]any], error) { return nil, e })
	}
	o.Rollout = RolloutPlanned
	o.Outside = true
	return o
}

// named is the input of a planned operation on one thing.
type named struct {
	ID string `path:"id"`
}

func declare(id, route string, need access.Requirement, summary string) Operation {
	method, path, _ := strings.Cut(route, " ")
	return Operation{ID: id, Method: method, Path: path, Summary: summary, Need: need.Need(),
		SuccessCode: http.StatusOK, Rollout: RolloutLive}
}

// Tool offers the operation to assistants under a name of the contract.
func (o Operation) Tool(name string) Operation { o.ToolName = name; return o }

// Status sets the status of success.
func (o Operation) Status(code int) Operation { o.SuccessCode = code; return o }

// Acts says that the operation acts on the outside world, so it is not run inside a transaction.
func (o Operation) Acts() Operation { o.Outside = true; return o }

// Async says that the operation may answer 202 with the same body, before its effect.
func (o Operation) Async() Operation { o.Accepts = true; return o }

// About says more than the summary, in whole sentences.
func (o Operation) About(text string) Operation { o.about = text; return o }

// ForSelf lets a credential of a user, whatever its scopes, use the operation on that user: the id in the path is theirs.
func (o Operation) ForSelf() Operation { o.Own = true; return o }

// Reads says that the operation changes nothing although it is no GET.
func (o Operation) Reads() Operation { o.ReadOnly = true; return o }

// AllowSigned lets an address with a valid signature in it stand for a credential.
func (o Operation) AllowSigned() Operation { o.Signed = true; return o }

// Only offers the operation in one environment.
func (o Operation) Only(e access.Environment) Operation { o.EnvironmentO = string(e); return o }

// Writes reports whether the operation changes something.
func (o Operation) Writes() bool { return o.Method != http.MethodGet && !o.ReadOnly }

// Resource is the first segment of the path.
func (o Operation) Resource() string {
	first, _, _ := strings.Cut(strings.TrimPrefix(o.Path, "/"), "/")
	return first
}

// huma describes the operation to the library that routes, binds and validates.
func (o Operation) huma() huma.Operation {
	h := huma.Operation{
		OperationID: o.ID, Method: o.Method, Path: Prefix + o.Path, Summary: o.Summary,
		DefaultStatus: o.SuccessCode, Tags: []string{o.Resource()},
		MaxBodyBytes:                 o.bodyLimit(),
		RejectUnknownQueryParameters: o.Rollout != RolloutPlanned,
		Extensions:                   map[string]any{"x-scope": o.Need.String(), "x-rollout": string(o.Rollout)},
		Metadata:                     map[string]any{operationKey: o},
		Errors:                       statuses(o.Codes()),
		Deprecated:                   o.farewell != nil,
	}
	if o.EnvironmentO != "" {
		h.Extensions["x-environment"] = o.EnvironmentO
	}
	if o.Own {
		h.Extensions["x-own"] = true
	}
	if o.ToolName != "" {
		h.Extensions["x-mcp-tool"] = o.ToolName
	}
	if !o.Need.IsPublic() {
		h.Security = []map[string][]string{{"apiKey": {}}}
	}
	if o.farewell != nil {
		h.Extensions["x-sunset"] = o.farewell.Sunset.Format(time.DateOnly)
	}
	return h
}

// Prefix is where operations are registered; /v1 and /sandbox/v1 are rewritten to it.
const Prefix = "/api/v1"

const operationKey = "operation"
