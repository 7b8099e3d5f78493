package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/op"
)

// Documentation for language models (https://llmstxt.org): /llms.txt with one line per operation, and /llms-full.txt
// with parameters, bodies and examples. Both are generated from the operations.

// llmsPages registers both pages. Each is generated at its first request.
func (s *Server) llmsPages() {
	for path, generate := range map[string]func() string{"/llms.txt": s.llms, "/llms-full.txt": s.llmsFull} {
		text := sync.OnceValue(generate)
		s.router.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
			_, _ = io.WriteString(w, text())
		})
	}
}

// llms returns the overview.
func (s *Server) llms() string {
	var b strings.Builder
	s.preface(&b)
	for _, tag := range s.api.OpenAPI().Tags {
		_, _ = fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", tag.Name, tag.Description)
		for _, o := range s.operationsOf(tag.Name) {
			_, _ = fmt.Fprintf(&b, "- `%s %s` (%s): %s%s\n", o.Method, op.Prefix+o.Path, o.ID, o.Summary, requirements(o))
		}
	}
	s.writeWebhooks(&b)
	writeErrors(&b)
	return b.String()
}

// llmsFull returns the full text.
func (s *Server) llmsFull() string {
	var b strings.Builder
	s.preface(&b)
	for _, tag := range s.api.OpenAPI().Tags {
		_, _ = fmt.Fprintf(&b, "\n## %s\n\n%s\n", tag.Name, tag.Description)
		for _, o := range s.operationsOf(tag.Name) {
			s.writeOperation(&b, o)
		}
	}
	s.writeWebhooks(&b)
	writeErrors(&b)
	return b.String()
}

// preface writes the introduction.
func (s *Server) preface(b *strings.Builder) {
	_, _ = fmt.Fprintf(b, `# soniq

> %s

- [OpenAPI 3.1 description](/openapi.json): every schema
- [API reference](/docs): for people
- [Postman collection](/postman.json): every operation as a request
- [Index](/v1): the operations as JSON
- [All details](/llms-full.txt): parameters, bodies and examples of every operation
`, s.api.OpenAPI().Info.Description)
}

// operationsOf returns the operations of a resource, in the order of their paths.
func (s *Server) operationsOf(resource string) []op.Operation {
	var all []op.Operation
	for _, o := range s.cfg.Operations {
		if o.Resource() == resource {
			all = append(all, o)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].Path < all[j].Path })
	return all
}

// requirements returns the required scope of an operation, and its restrictions.
func requirements(o op.Operation) string {
	scope := ". Scope: " + o.Need.String()
	if o.Need.IsPublic() {
		scope = ". No credential"
	}
	if o.OnlyEnvironment != "" {
		scope += ". Only in " + o.OnlyEnvironment
	}
	if o.Rollout != op.RolloutLive {
		scope += ". Not live: " + string(o.Rollout)
	}
	return scope
}

// writeOperation writes one operation with its parameters, bodies and errors.
func (s *Server) writeOperation(b *strings.Builder, o op.Operation) {
	h := findDescribed(s.api.OpenAPI().Paths[op.Prefix+o.Path], o.ID)
	if h == nil {
		return
	}
	_, _ = fmt.Fprintf(b, "\n### %s\n\n`%s %s`\n\n%s\n\n", o.ID, o.Method, op.Prefix+o.Path, h.Description)
	for _, p := range h.Parameters {
		_, _ = fmt.Fprintf(b, "- %s `%s`: %s\n", p.In, p.Name, p.Description)
	}
	if h.RequestBody != nil {
		writeBodies(b, "Request", h.RequestBody.Content)
	}
	for _, status := range []string{"200", "201"} {
		if r := h.Responses[status]; r != nil {
			writeBodies(b, "Answer "+status, r.Content)
		}
	}
	_, _ = fmt.Fprintf(b, "\nErrors: %s\n", strings.Join(o.Codes(), ", "))
}

func findDescribed(item *huma.PathItem, id string) *huma.Operation {
	if item == nil {
		return nil
	}
	for _, h := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
		if h != nil && h.OperationID == id {
			return h
		}
	}
	return nil
}

// writeBodies writes the example of each media type.
func writeBodies(b *strings.Builder, title string, content map[string]*huma.MediaType) {
	var names []string
	for name := range content {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text, isText := content[name].Example.(string)
		if !isText && content[name].Example != nil {
			encoded, _ := json.Marshal(content[name].Example)
			text = string(encoded)
		}
		_, _ = fmt.Fprintf(b, "\n%s (%s)", title, name)
		if text != "" {
			_, _ = fmt.Fprintf(b, ":\n\n```\n%s\n```", strings.TrimSuffix(text, "\n"))
		}
		b.WriteString("\n")
	}
}

// writeWebhooks lists the webhooks, and how a receiver verifies them.
func (s *Server) writeWebhooks(b *strings.Builder) {
	b.WriteString("\n## Webhooks\n\nPOST of `{\"event\", \"data\"}` to your address; verify webhook-signature (Standard Webhooks), deduplicate by webhook-id.\n\n")
	var kinds []string
	for kind := range s.api.OpenAPI().Webhooks {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		_, _ = fmt.Fprintf(b, "- `%s`: %s\n", kind, s.api.OpenAPI().Webhooks[kind].Post.Summary)
	}
}

// writeErrors lists the error codes with their meaning and remedy.
func writeErrors(b *strings.Builder) {
	b.WriteString("\n## Errors\n\nRefusals are problems (RFC 9457, application/problem+json) with one of these codes.\n\n")
	for _, code := range op.Codes() {
		status, title, help, _ := op.Help(code)
		_, _ = fmt.Fprintf(b, "- `%s` (%d): %s. %s\n", code, status, title, help)
	}
}
