package ivr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/strictjson"
)

// Limits of an HTTP step. The timeout of the node applies in addition, and is shorter.
const (
	requestTimeout  = 30 * time.Second
	maxResponseSize = 64 << 10 // bytes
)

// httpRequest sends a request to a server of the organisation. It stores the response in the node's variable, if
// there is one. Any status other than 2xx is an error.
func (w *flowRun) httpRequest(ctx context.Context, node string, x *flow.HTTP) (outcome string) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(x.TimeoutMS)*time.Millisecond)
	defer cancel()
	r, err := w.newRequest(ctx, node, x)
	if err != nil {
		w.problem = err.Error()
		return "error"
	}
	answer, err := w.fetch(r)
	if err != nil {
		w.problem = requestFailure(err)
		return "error"
	}
	if x.Variable != "" {
		w.flowContext.Variables[x.Variable] = answer
	}
	return "success"
}

// requestFailure returns why a request failed, without its URL, because the URL can contain secrets.
func requestFailure(err error) string {
	var in *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &in) && in.Timeout():
		return "no answer in time"
	case errors.Is(err, egress.ErrBlocked):
		return egress.ErrBlocked.Error()
	case errors.Is(err, egress.ErrTooLarge):
		return "the answer is larger than 64 KiB"
	case errors.As(err, &in):
		return in.Err.Error()
	}
	return err.Error()
}

// newRequest builds the HTTP request of a node.
func (w *flowRun) newRequest(ctx context.Context, node string, x *flow.HTTP) (*http.Request, error) {
	body := ""
	if x.Method != http.MethodGet && x.Method != http.MethodDelete || x.Body != "" {
		body = w.requestBody(ctx, node, x)
	}
	to := w.fillWith(ctx, x.URL, urlValue)
	r, err := http.NewRequestWithContext(ctx, x.Method, to, strings.NewReader(body))
	if err != nil {
		return nil, errors.New("the address is not valid once it is filled in")
	}
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("User-Agent", "soniq-flows/1.0")
	for name, v := range x.Headers {
		r.Header.Set(name, strings.Map(replaceControl, w.fillTemplate(ctx, v)))
	}
	if !x.Signed {
		return r, nil
	}
	return r, w.s.cfg.Signer.SignRequest(ctx, w.org, r, body)
}

// replaceControl replaces control characters with spaces, so that a value cannot add header lines.
func replaceControl(c rune) rune {
	if c < ' ' || c == 0x7f {
		return ' '
	}
	return c
}

// requestBody returns the body of the request: the node's template, or else a JSON object with the call and the
// unmasked variables.
func (w *flowRun) requestBody(ctx context.Context, node string, x *flow.HTTP) string {
	if x.Body != "" {
		return w.fillWith(ctx, x.Body, jsonValue)
	}
	i := w.v.Info()
	told := map[string]any{}
	for name, v := range w.flowContext.Variables {
		if !w.flowContext.Masked[name] {
			told[name] = v
		}
	}
	b, err := json.Marshal(map[string]any{"call_id": i.CallID, "flow_id": w.program.FlowID, "node_id": node, "from_number": i.From,
		"from_name": i.FromName, "to_number": i.To, "direction": i.Direction, "sandbox": i.Sandbox, "variables": told})
	if err != nil {
		return "{}"
	}
	return string(b)
}

// fillWith is fillTemplate with a function that escapes the values for the syntax of the text.
func (w *flowRun) fillWith(ctx context.Context, text string, form func(any) string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	t, err := flow.ParseTemplate(text)
	if err != nil {
		w.problem = err.Error()
		return ""
	}
	return t.FillWith(w.scope(ctx, text), form)
}

// urlValue returns a value escaped for the path or the query of a URL.
func urlValue(v any) string {
	return strings.ReplaceAll(url.QueryEscape(fmt.Sprint(v)), "+", "%20")
}

// jsonValue returns a value escaped for a JSON text: a string without its quotes, any other value as JSON.
func jsonValue(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if _, words := v.(string); words {
		return text[1 : len(text)-1]
	}
	return text
}

// fetch sends a request and returns the response as a JSON value, or as a string if it is not JSON.
func (w *flowRun) fetch(r *http.Request) (any, error) {
	a, err := w.s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	switch {
	case err != nil:
		return nil, err
	case a.StatusCode < 200 || a.StatusCode > 299:
		return nil, fmt.Errorf("answered with %d", a.StatusCode)
	}
	var v any
	if json.Unmarshal(strictjson.WithoutDamaged(b), &v) != nil {
		v = strings.ToValidUTF8(string(b), "")
	}
	return v, nil
}
