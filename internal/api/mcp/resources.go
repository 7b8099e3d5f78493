package mcp

import (
	"context"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// resourceSource maps a resource to the operation that reads it.
type resourceSource struct {
	uri, name, title, about string
	operation               string
	parameter               string // of the operation, taken from the URI
	inQuery                 bool
	query                   url.Values
}

// resourceSources are all resources. They use the same operations as the tools.
var resourceSources = []resourceSource{
	{uri: "calls://live", name: "live_calls", title: "Calls in progress", about: "The calls in progress right now",
		operation: "calls.live"},
	{uri: "call://{id}", name: "call", title: "A call", about: "One call with its legs and notes", operation: "calls.get", parameter: "id",
		query: url.Values{"expand": {"notes"}}},
	{uri: "call://{id}/transcript", name: "transcript", title: "Transcript of a call", about: "What was said, by whom and when",
		operation: "calls.transcript", parameter: "id"},
	{uri: "queue://{id}/live", name: "queue", title: "A queue now", about: "How many wait, how long, and who can answer",
		operation: "queues.stats", parameter: "id"},
	{uri: "contact://{phone}", name: "contact", title: "Who a number belongs to", about: "The contact of a telephone number",
		operation: "contacts.lookup", parameter: "phone", inQuery: true},
}

func (s *Server) addResources() {
	for _, x := range resourceSources {
		if x.parameter == "" {
			s.server.AddResource(&sdk.Resource{URI: x.uri, Name: x.name, Title: x.title, Description: x.about,
				MIMEType: "application/json"}, s.reader(x))
			continue
		}
		s.server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: x.uri, Name: x.name, Title: x.title, Description: x.about,
			MIMEType: "application/json"}, s.reader(x))
	}
}

// reader returns the handler that reads a resource with the scopes of the sender.
func (s *Server) reader(x resourceSource) sdk.ResourceHandler {
	return func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		out, err := s.readResource(ctx, x, req.Params.URI, clientName(req.ClientInfo()))
		if err != nil {
			return nil, err
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json",
			Text: string(out)}}}, nil
	}
}

func (s *Server) readResource(ctx context.Context, x resourceSource, uri, client string) ([]byte, error) {
	v, _ := ctx.Value(senderKey{}).(*sender)
	if v == nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	r := operationRequest{path: map[string]string{}, query: url.Values{}}
	for name, values := range x.query {
		r.query[name] = values
	}
	value := x.parameterValue(uri)
	if x.inQuery {
		r.query.Set(x.parameter, value)
	} else {
		r.path[x.parameter] = value
	}
	ctx = v.operationContext(ctx, "resource "+x.name, client)
	out, f := s.callOperation(ctx, x.operation, r)
	status, code := 200, ""
	if f != nil {
		status, code = f.status, f.code
	}
	s.audit(ctx, v.principal, "resources."+x.name, value, status, code)
	switch {
	case f == nil:
	case f.status == 404:
		return nil, sdk.ResourceNotFoundError(uri)
	default:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: f.code + ": " + text(f.problem["detail"])}
	}
	markUntrusted(out)
	b, err := encode(out)
	if len(b) > 4*maxResultBytes {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "result_too_large: read it in parts with get_call_detail"}
	}
	return b, err
}

// parameterValue returns the value of the parameter in a URI.
func (x resourceSource) parameterValue(uri string) string {
	before, after, found := strings.Cut(x.uri, "{"+x.parameter+"}")
	if !found {
		return ""
	}
	value := strings.TrimSuffix(strings.TrimPrefix(uri, before), after)
	if plain, err := url.PathUnescape(value); err == nil {
		return plain
	}
	return value
}
