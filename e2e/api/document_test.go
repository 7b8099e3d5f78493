package api_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"soniq/e2e/rig"
)

// operation is an operation as the description of the running server declares it.
type operation struct {
	ID, Method, Path string // Path without the prefix
	Scope            string
	Rollout          string
	Parameters       []string // in the path
	Body             bool
	Need             [][]string // sets of scopes, one of which the credential must hold completely; nil: any credential
	declared         *openapi3.Operation
}

// document is the description of a running server. It checks responses.
type document struct {
	operations []operation // of both environments
	sandbox    []operation // of the sandbox alone
	personal   []operation // about the user of the credential
	endless    int         // operations left out because their response does not end
	model      *openapi3.T
	router     routers.Router
	bodies     bodySchemas
}

const prefix = "/api/v1"

var validated sync.Once

func readDocument(t *testing.T, s *rig.Server) *document {
	t.Helper()
	raw := get(t, s, "/openapi.json").Body
	model, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatalf("the description cannot be read: %v", err)
	}
	validated.Do(func() { // for one server only: it takes long, and all servers have the same description
		if err := model.Validate(context.Background()); err != nil {
			t.Fatalf("the description is not valid OpenAPI 3.1: %v", err)
		}
	})
	closed(model)
	d := &document{model: model, bodies: bodySchemas{model: model}}
	if d.router, err = gorillamux.NewRouter(model); err != nil {
		t.Fatal(err)
	}
	for path, item := range model.Paths.Map() {
		for method, o := range item.Operations() {
			if o.OperationID == "events.stream" {
				d.endless++ // its response does not end: it has tests of its own
				continue
			}
			if o.Extensions["x-environment"] == "sandbox" {
				d.sandbox = append(d.sandbox, describe(t, method, path, o))
				continue
			}
			if o.Extensions["x-personal"] == true {
				d.personal = append(d.personal, describe(t, method, path, o))
				continue
			}
			d.operations = append(d.operations, describe(t, method, path, o))
		}
	}
	sort.Slice(d.operations, func(i, j int) bool { return d.operations[i].ID < d.operations[j].ID })
	return d
}

// closed makes the description forbid undescribed members. Clients must ignore such members; this test must report
// them.
func closed(model *openapi3.T) {
	for _, s := range model.Components.Schemas {
		if len(s.Value.Properties) > 0 && s.Value.AdditionalProperties.Has == nil && s.Value.AdditionalProperties.Schema == nil {
			no := false
			s.Value.AdditionalProperties.Has = &no
		}
	}
}

func describe(t *testing.T, method, path string, o *openapi3.Operation) operation {
	t.Helper()
	text := func(name string) string { s, _ := o.Extensions[name].(string); return s }
	x := operation{ID: o.OperationID, Method: method, Path: strings.TrimPrefix(path, prefix), Scope: text("x-scope"),
		Rollout: text("x-rollout"), Body: o.RequestBody != nil, declared: o}
	if x.Scope == "" {
		t.Errorf("%s has no x-scope", x.ID)
	}
	if x.Path == path {
		t.Errorf("%s is at %s, outside %s", x.ID, path, prefix)
	}
	for _, p := range o.Parameters {
		if p.Value.In == "path" {
			x.Parameters = append(x.Parameters, p.Value.Name)
		}
	}
	if x.Scope != "any" && x.Scope != "none" {
		for either := range strings.SplitSeq(x.Scope, " | ") {
			x.Need = append(x.Need, strings.Split(either, " + "))
		}
	}
	return x
}

// metBy reports whether a credential with one scope may use the operation.
func (o operation) metBy(scope string) bool {
	return o.Need == nil || slices.ContainsFunc(o.Need, func(set []string) bool { return len(set) == 1 && set[0] == scope })
}

// at fills the parameters of the path.
func (o operation) at(values map[string]string) string {
	path := o.Path
	for name, v := range values {
		path = strings.ReplaceAll(path, "{"+name+"}", v)
	}
	return path
}

// nowhere holds parameters that identify no record.
var nowhere = map[string]string{"id": "none_00000000000000000000000000", "delivery_id": "dlv_00000000000000000000000000", "phone": "+12025550199",
	"leg_id": "leg_00000000000000000000000000", "note_id": "note_00000000000000000000000000", "monitor_id": "mon_00000000000000000000000000",
	"tag": "nothing", "user_id": "usr_00000000000000000000000000", "queue_id": "que_00000000000000000000000000", "call_id": "call_00000000000000000000000000"}

// judge fails the test if a response differs from the description.
func (d *document) judge(t failer, request *http.Request, r rig.Response) {
	t.Helper()
	route, values, err := d.router.FindRoute(request)
	if err != nil {
		return // an address outside the description
	}
	if request.URL.Query().Get("fields") != "" {
		return // records with selected fields only
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, PathParams: values, Route: route},
		Status:                 r.Status, Header: r.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: true},
	}
	d.judgeCode(t, request, route.Operation, r)
	err = openapi3filter.ValidateResponse(context.Background(), in)
	if strings.Contains(r.Header.Get("Content-Type"), "json") {
		err = errors.Join(err, d.bodies.check(route.Method, route.Path, route.Operation, r))
	}
	if err != nil {
		t.Errorf("%s %s: answer %d is not as described: %v\n%.600s", request.Method, request.URL.Path, r.Status, err, r.Body)
	}
}

// judgeCode fails the test unless the code of an error is one that the operation declares for its status.
func (d *document) judgeCode(t failer, request *http.Request, o *openapi3.Operation, r rig.Response) {
	t.Helper()
	if r.Status < 400 {
		return
	}
	answer := o.Responses.Status(r.Status)
	if answer == nil {
		return // judged by the caller
	}
	codes, _ := answer.Value.Extensions["x-codes"].([]any)
	if p := problemOf(r); len(codes) > 0 && !slices.Contains(codes, any(p.Code)) {
		t.Errorf("%s %s: %s does not announce %q with %d, only %v", request.Method, request.URL.Path, o.OperationID, p.Code, r.Status,
			codes)
	}
}
