package published

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// breaking returns the guarantees of the old description that the new one does not keep, one line each, sorted.
// Additions break nothing: operations, optional members and parameters of requests, members of answers, further
// values of their enums.
func breaking(old, fresh *openapi3.T, now time.Time) []string {
	c := &comparison{seen: map[pair]bool{}}
	for _, path := range sorted(old.Paths.Map()) {
		for method, o := range old.Paths.Value(path).Operations() {
			at := c.at(method + " " + path)
			item := fresh.Paths.Value(path)
			switch {
			case item != nil && item.Operations()[method] != nil:
				at.operation(o, item.Operations()[method])
			case !sunsetPassed(o, now):
				at.report("the operation is gone")
			}
		}
	}
	for name, hook := range old.Webhooks {
		at := c.at("webhook " + name)
		if fresh.Webhooks[name] == nil || fresh.Webhooks[name].Post == nil {
			at.report("the event is gone")
			continue
		}
		at.webhook(hook.Post, fresh.Webhooks[name].Post)
	}
	for name, scheme := range old.Components.SecuritySchemes {
		if f := fresh.Components.SecuritySchemes[name]; f == nil || f.Value.Type != scheme.Value.Type ||
			f.Value.Scheme != scheme.Value.Scheme ||
			f.Value.In != scheme.Value.In || f.Value.Name != scheme.Value.Name {
			c.at("security scheme " + name).report("is gone or another")
		}
	}
	slices.Sort(c.found)
	return slices.Compact(c.found)
}

// sunsetPassed reports whether the announced sunset of a deprecated operation has passed (RFC 8594).
func sunsetPassed(o *openapi3.Operation, now time.Time) bool {
	day, _ := o.Extensions["x-sunset"].(string)
	at, err := time.Parse(time.DateOnly, day)
	return o.Deprecated && err == nil && now.After(at)
}

// comparison collects the breaking changes.
type comparison struct {
	found []string
	seen  map[pair]bool // pairs of schemas that were compared or are being compared
}

// location is a location in the description.
type location struct {
	*comparison
	name string
}

func (c *comparison) at(name string) location { return location{c, name} }

func (p location) in(name string) location { return location{p.comparison, p.name + " " + name} }

func (p location) report(format string, args ...any) {
	p.found = append(p.found, p.name+": "+fmt.Sprintf(format, args...))
}

func (p location) operation(old, fresh *openapi3.Operation) {
	if old.OperationID != fresh.OperationID {
		p.report("operationId %s became %s", old.OperationID, fresh.OperationID)
	}
	p.credentials(old, fresh)
	p.parameters(old, fresh)
	p.request(old.RequestBody, fresh.RequestBody)
	p.answers(old, fresh)
}

// webhook compares an event that we send: its headers and its body are treated like an answer.
func (p location) webhook(old, fresh *openapi3.Operation) {
	for _, o := range old.Parameters {
		if f := fresh.Parameters.GetByInAndName(o.Value.In, o.Value.Name); f == nil || o.Value.Required && !f.Required {
			p.report("header %s is gone or not always there", o.Value.Name)
		}
	}
	p.content(answer, old.RequestBody.Value.Content, fresh.RequestBody.Value.Content)
}

// credentials reports credentials that were sufficient and no longer are.
func (p location) credentials(old, fresh *openapi3.Operation) {
	was, is := scopes(old), scopes(fresh)
	for _, held := range was {
		if !slices.ContainsFunc(is, func(need []string) bool { return within(need, held) }) {
			p.report("who holds %q is not let in any more: it needs %v", strings.Join(held, " + "), fresh.Extensions["x-scope"])
		}
	}
	if open(old) && !open(fresh) {
		p.report("needs a credential now")
	}
	if e := fresh.Extensions["x-environment"]; e != nil && e != old.Extensions["x-environment"] {
		p.report("is only in %v now", e)
	}
}

// open reports whether an operation needs no credential.
func open(o *openapi3.Operation) bool { return o.Extensions["x-scope"] == "none" }

// scopes returns the alternative sets of scopes, one of which is required in full. It returns one empty set if any
// credential suffices.
func scopes(o *openapi3.Operation) (sets [][]string) {
	text, _ := o.Extensions["x-scope"].(string)
	if text == "any" || text == "none" {
		return [][]string{{}}
	}
	for set := range strings.SplitSeq(text, " | ") {
		sets = append(sets, strings.Split(set, " + "))
	}
	return sets
}

func within(small, large []string) bool {
	return !slices.ContainsFunc(small, func(s string) bool { return !slices.Contains(large, s) })
}

func (p location) parameters(old, fresh *openapi3.Operation) {
	for _, o := range old.Parameters {
		at := p.in(o.Value.In + " parameter " + o.Value.Name)
		f := fresh.Parameters.GetByInAndName(o.Value.In, o.Value.Name)
		if f == nil {
			at.report("is gone")
			continue
		}
		if f.Required && !o.Value.Required {
			at.report("is required now")
		}
		at.schema(request, o.Value.Schema, f.Schema)
	}
	for _, f := range fresh.Parameters {
		if f.Value.Required && old.Parameters.GetByInAndName(f.Value.In, f.Value.Name) == nil {
			p.in(f.Value.In + " parameter " + f.Value.Name).report("is new and required")
		}
	}
}

func (p location) request(old, fresh *openapi3.RequestBodyRef) {
	p = p.in("request")
	switch {
	case old == nil && fresh == nil:
	case old == nil && fresh.Value.Required:
		p.report("a body is required now")
	case old != nil && fresh == nil:
		p.report("takes no body any more")
	case old != nil:
		if fresh.Value.Required && !old.Value.Required {
			p.report("a body is required now")
		}
		p.content(request, old.Value.Content, fresh.Value.Content)
	}
}

func (p location) answers(old, fresh *openapi3.Operation) {
	for status, o := range old.Responses.Map() {
		at := p.in("answer " + status)
		f := fresh.Responses.Value(status)
		if f == nil {
			at.report("is gone")
			continue
		}
		for name := range o.Value.Headers {
			if f.Value.Headers[name] == nil {
				at.report("header %s is gone", name)
			}
		}
		at.codes(o.Value, f.Value)
		at.content(answer, o.Value.Content, f.Value.Content)
	}
}

// codes reports error codes that are missing from their status, because clients distinguish them.
func (p location) codes(old, fresh *openapi3.Response) {
	was, _ := old.Extensions["x-codes"].([]any)
	is, _ := fresh.Extensions["x-codes"].([]any)
	for _, code := range was {
		if !slices.Contains(is, code) {
			p.report("code %v is gone", code)
		}
	}
}

func (p location) content(d direction, old, fresh openapi3.Content) {
	for mediaType, o := range old {
		f := fresh[mediaType]
		if f == nil {
			p.report("%s is gone", mediaType)
			continue
		}
		p.in(mediaType).schema(d, o.Schema, f.Schema)
	}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
