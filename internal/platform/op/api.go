package op

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// NewAPI registers the operations on the router, and returns the API with its OpenAPI description. more adds to the
// description.
func NewAPI(mux *http.ServeMux, c *Pipeline, operations []Operation, more ...func(*huma.OpenAPI)) huma.API {
	installProblemBodies()
	operations = linkRecords(operations)
	config := huma.DefaultConfig("soniq", Version)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.Formats = map[string]huma.Format{"application/json": strictFormat(), "json": strictFormat()}
	config.CreateHooks, config.Transformers = nil, nil // the $schema links cost a fifth of the throughput
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"apiKey": {Type: "http", Scheme: "bearer", Description: "An API key: soniq_live_…, soniq_test_… or soniq_partner_…"},
	}
	config.Components.Schemas = registry("#/components/schemas/")
	api := humago.New(mux, config)
	api.UseMiddleware(c.admit(api))
	for _, o := range operations {
		o.register(api, c, o)
	}
	addTags(api.OpenAPI(), operations)
	describeUploads(api.OpenAPI(), operations)
	for _, describe := range more {
		describe(api.OpenAPI())
	}
	describeAnswers(api.OpenAPI())
	introduce(api.OpenAPI())
	for _, o := range operations {
		if h := described(api.OpenAPI(), o); h != nil {
			describeFailures(h, o)
			describeRecord(h, o)
			describeHeaders(h)
			describeOperation(h, o)
			describeExamples(api.OpenAPI(), h, o)
		}
	}
	describeNulls(api.OpenAPI())
	return api
}

// described returns an operation of the description; nil if there is none.
func described(doc *huma.OpenAPI, o Operation) *huma.Operation {
	item := doc.Paths[Prefix+o.Path]
	if item == nil {
		return nil
	}
	for _, h := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
		if h != nil && h.OperationID == o.ID {
			return h
		}
	}
	return nil
}

// describeHeaders adds Retry-After to the responses 429 and 503.
func describeHeaders(h *huma.Operation) {
	for _, status := range []string{"429", "503"} {
		if r := h.Responses[status]; r != nil {
			r.Headers = map[string]*huma.Param{"Retry-After": {Description: "Seconds to wait",
				Schema: &huma.Schema{Type: huma.TypeInteger}}}
		}
	}
}

// Version is the version of the published contract.
const Version = "1.0.0"

// addTags adds a tag for each resource, in the order of the operations.
func addTags(doc *huma.OpenAPI, operations []Operation) {
	seen := map[string]bool{}
	for _, o := range operations {
		if r := o.Resource(); !seen[r] {
			seen[r] = true
			doc.Tags = append(doc.Tags, tag(r))
		}
	}
}

// JSON returns the OpenAPI 3.1 document.
func JSON(api huma.API) ([]byte, error) { return json.MarshalIndent(api.OpenAPI(), "", "  ") }

var installProblems sync.Once

// installProblemBodies replaces the library's error bodies by Problem, and makes names of members case-sensitive. Both are
// process-wide settings of the library.
func installProblemBodies() {
	installProblems.Do(func() {
		huma.ValidateStrictCasing = true // encoding/json compares names without regard to case
		huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
			return problemFrom(status, message, errs, "")
		}
		huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
			return problemFrom(status, message, errs, requestID(ctx))
		}
	})
}

func requestID(ctx huma.Context) string {
	if ctx == nil {
		return ""
	}
	return RequestID(ctx.Context())
}
