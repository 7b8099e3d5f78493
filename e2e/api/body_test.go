package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"soniq/e2e/rig"
)

// bodySchemas validates JSON bodies of responses. Each schema is compiled once: kin-openapi compiles it for every response, which took
// half the CPU time of these tests.
type bodySchemas struct {
	model *openapi3.T

	mu       sync.Mutex // guards compiler and compiled
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by location in the description
}

const documentURL = "https://soniq.example/openapi.json"

// check returns an error if a JSON body differs from the schema of its operation, status and media type.
func (b *bodySchemas) check(method, path string, o *openapi3.Operation, r rig.Response) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	key := fmt.Sprint(r.Status)
	declared := o.Responses.Value(key)
	if declared == nil {
		key, declared = "default", o.Responses.Default()
	}
	if declared == nil {
		return nil // ValidateResponse reports the status
	}
	at := "/paths/" + pointer(path) + "/" + strings.ToLower(method) + "/responses/" + key
	if name, ok := strings.CutPrefix(declared.Ref, "#/components/responses/"); ok {
		at = "/components/responses/" + pointer(name)
	}
	content := declared.Value.Content[media]
	if content == nil || content.Schema == nil {
		return fmt.Errorf("the description of %d has no %s", r.Status, media)
	}
	schema, err := b.schema(at + "/content/" + pointer(media) + "/schema")
	if err != nil {
		return err
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(r.Body))
	if err != nil {
		return err
	}
	return schema.Validate(body)
}

// pointer escapes a token of a JSON pointer (RFC 6901 §3).
func pointer(token string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(token) }

func (b *bodySchemas) schema(at string) (*jsonschema.Schema, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.compiled[at]; s != nil {
		return s, nil
	}
	if b.compiler == nil {
		raw, err := json.Marshal(b.model)
		if err != nil {
			return nil, err
		}
		all, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		b.compiled, b.compiler = map[string]*jsonschema.Schema{}, jsonschema.NewCompiler()
		b.compiler.DefaultDraft(jsonschema.Draft2020)
		b.compiler.AssertFormat()
		if err := b.compiler.AddResource(documentURL, all); err != nil {
			return nil, err
		}
	}
	s, err := b.compiler.Compile(documentURL + "#" + at)
	if err == nil {
		b.compiled[at] = s
	}
	return s, err
}
