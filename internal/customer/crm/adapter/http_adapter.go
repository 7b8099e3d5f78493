package adapter

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/jsonpath"
	"soniq/internal/platform/placeholder"
	"soniq/internal/platform/strictjson"
)

// HTTPSettings configure a system with an HTTP API by templates: the requests, and the paths of values in the
// answers.
type HTTPSettings struct {
	Auth              *Auth             `json:"auth,omitempty"`
	Headers           map[string]string `json:"headers,omitempty" doc:"Sent with every request; secret"`
	Lookup            *LookupTemplate   `json:"lookup,omitempty" doc:"How the system is asked who a number belongs to"`
	EmailLookup       *LookupTemplate   `json:"email_lookup,omitempty" doc:"The same for an e-mail address"`
	Upsert            *WriteTemplate    `json:"upsert,omitempty" doc:"How a contact is written"`
	Update            *WriteTemplate    `json:"update,omitempty" doc:"How a contact is changed that is there already, where that is another request"`
	Note              *WriteTemplate    `json:"note,omitempty" doc:"How a note is written"`
	CallLog           *WriteTemplate    `json:"call_log,omitempty" doc:"How a finished call is written"`
	CallUpdate        *WriteTemplate    `json:"call_update,omitempty" doc:"How a call that was written is changed, with {{record_id}}, when its summary and its words have come; without it, a call is written when they have had their time"`
	RecordURL         string            `json:"record_url,omitempty" doc:"Where people look at a record, with {{external_id}}"`
	RequestsPerMinute int               `json:"requests_per_minute,omitempty" doc:"How often the system may be asked; 600 unless given"`
}

// Auth holds the credentials for an HTTP system.
type Auth struct {
	Type     string `json:"type" enum:"bearer,basic,header"`
	Token    string `json:"token,omitempty" doc:"Of bearer, and the value of header; secret"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty" doc:"Secret"`
	Header   string `json:"header,omitempty" doc:"Name of the header, such as X-Api-Key"`
}

// LookupTemplate is the template of a request that searches for people.
type LookupTemplate struct {
	URL     string   `json:"url" doc:"With {{phone}} or {{email}}"`
	Method  string   `json:"method,omitempty" enum:"GET,POST"`
	Body    any      `json:"body,omitempty" doc:"JSON, with placeholders in its texts"`
	Formats []string `json:"formats,omitempty" doc:"Ways to write {{phone}}, tried one after the other: e164, international, national, plain, nsn, digits, zeros"`
	Results string   `json:"results,omitempty" doc:"Path to the list of records, such as $.data; the whole answer unless given"`
}

// WriteTemplate is the template of a request that writes a record.
type WriteTemplate struct {
	URL    string `json:"url"`
	Method string `json:"method,omitempty" enum:"POST,PUT,PATCH"`
	Body   any    `json:"body,omitempty"`
	ID     string `json:"id,omitempty" doc:"Path to the id in the answer; $.id unless given"`
}

// phoneFormats maps the names of number formats to their functions.
var phoneFormats = map[string]func(contact.Formats) string{
	"e164": func(f contact.Formats) string { return f.E164 }, "international": func(f contact.Formats) string { return f.International },
	"national": func(f contact.Formats) string { return f.National }, "plain": func(f contact.Formats) string { return f.Plain },
	"nsn": func(f contact.Formats) string { return f.NSN }, "digits": func(f contact.Formats) string { return f.Digits },
	"zeros": func(f contact.Formats) string { return f.Zeros },
}

// Placeholders that templates may contain, by purpose.
var (
	phonePlaceholders = append([]string{"phone"}, mapSlice(slices.Sorted(maps.Keys(phoneFormats)),
		func(n string) string { return "phone_" + n })...)
	personPlaceholders  = []string{"external_id", "contact_id", "name", "company", "phone", "email"}
	contactPlaceholders = []string{"external_id", "contact_id", "name", "first_name", "last_name", "company", "title", "phone", "email",
		"tags"}
	notePlaceholders = append(slices.Clone(personPlaceholders), "note", "note_id", "author", "call_id", "created_at")
	callPlaceholders = append(slices.Clone(personPlaceholders), "call_id", "direction", "status", "from", "to", "started_at", "ended_at",
		"duration_seconds", "talk_seconds", "summary", "transcript", "agent", "disposition", "recording_url")
	callUpdatePlaceholders = append(slices.Clone(callPlaceholders), "record_id")
	// FieldPaths are the fields that a field_map may contain, with their default paths.
	FieldPaths = map[string]string{"id": "id", "name": "name", "first_name": "first_name", "last_name": "last_name", "company": "company",
		"title": "title", "email": "email", "phone": "phone", "phones": "phones", "url": "url", "updated_at": "updated_at"}
)

func mapSlice[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	for i := range list {
		out[i] = f(list[i])
	}
	return out
}

// maxAnswerBytes bounds the answer to one request.
const maxAnswerBytes = 1 << 20

// httpAdapter is the adapter for a system that is configured by templates.
type httpAdapter struct {
	s      HTTPSettings
	client *http.Client
	fields map[string]jsonpath.Path
	paths  map[string]jsonpath.Path // the compiled paths of the templates, by their text
}

const defaultID = "id" // path of the id in the answer to a write

func newHTTP(s HTTPSettings, fields map[string]string, client *http.Client) *httpAdapter {
	a := &httpAdapter{s: s, client: client, fields: map[string]jsonpath.Path{}, paths: map[string]jsonpath.Path{}}
	for name, usual := range FieldPaths {
		at := usual
		if given, ok := fields[name]; ok {
			at = given
		}
		a.fields[name], _ = jsonpath.Parse(at)
	}
	texts := []string{defaultID}
	for _, f := range []*LookupTemplate{s.Lookup, s.EmailLookup} {
		if f != nil {
			texts = append(texts, f.Results)
		}
	}
	for _, w := range []*WriteTemplate{s.Upsert, s.Update, s.Note, s.CallLog, s.CallUpdate} {
		if w != nil {
			texts = append(texts, w.ID)
		}
	}
	for _, text := range texts {
		a.paths[text], _ = jsonpath.Parse(text) // checked when the settings were saved
	}
	return a
}

// Can reports the abilities for which there are templates.
func (a *httpAdapter) Can() Capabilities {
	return Capabilities{Lookup: a.s.Lookup != nil || a.s.EmailLookup != nil, Create: a.s.Upsert != nil, Update: a.s.Upsert != nil ||
		a.s.Update != nil, Notes: a.s.Note != nil, CallLog: a.s.CallLog != nil}
}

// RequestsPerMinute returns the rate that the settings allow.
func (a *httpAdapter) RequestsPerMinute() int { return a.s.RequestsPerMinute }

// Lookup searches with each number format in turn until there is a match.
func (a *httpAdapter) Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	if q.Email != "" {
		if a.s.EmailLookup == nil {
			return nil, contact.ErrSkipped
		}
		return a.search(ctx, *a.s.EmailLookup, map[string]string{"email": q.Email})
	}
	if a.s.Lookup == nil {
		return nil, contact.ErrSkipped
	}
	values := map[string]string{}
	for name, write := range phoneFormats {
		values["phone_"+name] = write(q.Phone)
	}
	formats := a.s.Lookup.Formats
	if len(formats) == 0 {
		formats = []string{"e164"}
	}
	for _, f := range formats {
		values["phone"] = phoneFormats[f](q.Phone)
		if found, err := a.search(ctx, *a.s.Lookup, values); err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

func (a *httpAdapter) search(ctx context.Context, f LookupTemplate, values map[string]string) ([]contact.Record, error) {
	method := f.Method
	if method == "" {
		method = http.MethodGet
	}
	doc, err := a.do(ctx, method, f.URL, f.Body, values, "")
	if errors.Is(err, errNotFound) || errors.Is(err, errEmptyAnswer) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []contact.Record
	for _, v := range a.paths[f.Results].Values(doc) {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, one := range list[:min(len(list), 50)] {
			if r, ok := a.record(one); ok && len(found) < 50 {
				found = append(found, r)
			}
		}
	}
	return found, nil
}

// record reads one record of an answer. It returns false if the record has neither a name nor a company.
func (a *httpAdapter) record(v any) (contact.Record, bool) {
	if _, ok := v.(map[string]any); !ok {
		return contact.Record{}, false
	}
	text := func(name string) string { return a.fields[name].Text(v) }
	r := contact.Record{ExternalID: text("id"), Name: text("name"), Company: text("company"), Title: text("title"), Email: text("email"),
		URL: text("url")}
	if r.Name == "" {
		r.Name = strings.TrimSpace(text("first_name") + " " + text("last_name"))
	}
	r.Phones = append(a.fields["phones"].Texts(v), a.fields["phone"].Texts(v)...)
	r.Phones = r.Phones[:min(len(r.Phones), 20)]
	if at, err := time.Parse(time.RFC3339, text("updated_at")); err == nil {
		r.UpdatedAt = at
	}
	if r.URL == "" && a.s.RecordURL != "" && r.ExternalID != "" {
		r.URL = placeholder.Fill(a.s.RecordURL, map[string]string{"external_id": r.ExternalID}, placeholder.EscapeURL)
	}
	return r, r.Name != "" || r.Company != ""
}

// errNotFound is a 404, errEmptyAnswer an answer without content. For a lookup, both mean no match.
var (
	errNotFound    = errors.New("the system has nothing there")
	errEmptyAnswer = errors.New("the system's answer is empty")
)

// do sends one request and decodes the JSON of its answer.
func (a *httpAdapter) do(ctx context.Context, method, address string, body any, values map[string]string, key string) (any, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(placeholder.FillJSON(body, values))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRefused, err)
		}
		content = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, placeholder.Fill(address, values, placeholder.EscapeURL), content)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	a.setHeaders(r, key)
	answer, err := a.client.Do(r)
	if err != nil {
		return nil, WithoutURL(ctx, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, WithoutURL(ctx, err)
	}
	if err := statusError(answer); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errEmptyAnswer
	}
	var doc any
	if err := json.Unmarshal(strictjson.WithoutDamaged(text), &doc); err != nil {
		return nil, errors.New("the answer is no JSON")
	}
	return doc, nil
}

// setHeaders adds the headers of the settings, and the idempotency key by which the system recognises a repeated
// request.
func (a *httpAdapter) setHeaders(r *http.Request, key string) {
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "soniq")
	if r.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	a.s.Auth.setHeader(r)
	for name, value := range a.s.Headers {
		r.Header.Set(name, value)
	}
}

func (a *Auth) setHeader(r *http.Request) {
	switch {
	case a == nil:
	case a.Type == "bearer":
		r.Header.Set("Authorization", "Bearer "+a.Token)
	case a.Type == "header":
		r.Header.Set(a.Header, a.Token)
	case a.Type == "basic":
		r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(a.Username+":"+a.Password)))
	}
}

// statusError turns the status of an answer into an error.
func statusError(r *http.Response) error {
	switch {
	case r.StatusCode >= 200 && r.StatusCode < 300:
		return nil
	case r.StatusCode == http.StatusNotFound:
		return errNotFound
	case r.StatusCode == http.StatusUnauthorized, r.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: %d", ErrAuth, r.StatusCode)
	case r.StatusCode == http.StatusTooManyRequests:
		return &BusyError{After: parseRetryAfter(r.Header.Get("Retry-After"))}
	case r.StatusCode >= 300 && r.StatusCode < 500 && r.StatusCode != http.StatusRequestTimeout:
		return fmt.Errorf("%w: it answered %d", ErrRefused, r.StatusCode)
	}
	return fmt.Errorf("the system answered %d", r.StatusCode)
}

// parseRetryAfter returns the pause that a system requests (Retry-After, RFC 9110 §10.2.3): 30 s if it is missing,
// ten minutes at most.
func parseRetryAfter(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 30 * time.Second
	}
	return min(time.Duration(n)*time.Second, 10*time.Minute)
}

// WithoutURL removes the address from an error of a request, because it contains the caller's number.
func WithoutURL(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
