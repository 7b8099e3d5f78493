package smscarrier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/jsonpath"
	"soniq/internal/platform/op"
	"soniq/internal/platform/placeholder"
	"soniq/internal/platform/strictjson"
)

// HTTPSettings are the settings of a carrier with its own HTTP API.
type HTTPSettings struct {
	Send HTTPSend `json:"send"`
	// ID and Error are the paths in the response to the message's identifier and to an error. If the response has an
	// error, the message is refused, whatever the status.
	ID    string `json:"id"`
	Error string `json:"error"`
	// Idempotent means that the carrier deduplicates by {{reference}}. A message with unknown outcome may then be
	// sent again.
	Idempotent bool         `json:"idempotent"`
	Callback   HTTPCallback `json:"callback"`
}

// HTTPSend is a template of the request that sends a message. At most one of Form and JSON is set.
type HTTPSend struct {
	Method  string            `json:"method"` // default POST
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Form    map[string]string `json:"form"`
	JSON    any               `json:"json"`
}

// httpLimits bounds the time and size of requests to carriers.
var httpLimits = egress.Limits{Connect: 5 * time.Second, Total: 30 * time.Second, Body: 256 << 10, Idle: 16}

// httpAdapter is the adapter for carriers with their own HTTP API.
type httpAdapter struct {
	settings          HTTPSettings
	info              CarrierInfo
	client            *http.Client
	idPath, errorPath jsonpath.Path
	callbackFields    callbackPaths
}

func buildHTTP(s *Service, about CarrierInfo, raw json.RawMessage) (Adapter, []op.Violation) {
	g := &httpAdapter{info: about, client: s.cfg.Guard.Client(httpLimits)}
	if wrong := op.DecodeSettings(raw, &g.settings); wrong != nil {
		return nil, wrong
	}
	x := &g.settings
	if x.Send.Method == "" {
		x.Send.Method = http.MethodPost
	}
	wrong := x.Send.validate(s.cfg.Guard)
	at := func(field, text string) jsonpath.Path {
		p, err := jsonpath.Parse(text)
		if err != nil {
			wrong = append(wrong, op.Field("settings."+field, "invalid_path", err.Error()))
		}
		return p
	}
	g.idPath, g.errorPath = at("id", x.ID), at("error", x.Error)
	g.callbackFields = x.Callback.parsePaths(at)
	return g, append(wrong, x.Callback.validate()...)
}

// placeholders are the names that a request template may use.
var placeholders = []string{"from", "to", "from_digits", "to_digits", "text", "reference", "callback_url"}

func (x HTTPSend) validate(guard *egress.Guard) (wrong []op.Violation) {
	var fault *egress.Fault
	if err := guard.Check(placeholder.Fill(x.URL, nil, func(string) string { return "0" })); errors.As(err, &fault) {
		wrong = append(wrong, op.Field("settings.send.url", fault.Code, fault.Message))
	}
	if u, err := url.Parse(x.URL); err != nil || len(placeholder.Names(u.Host)) > 0 {
		wrong = append(wrong, op.Field("settings.send.url", "invalid_url", "must have a host without placeholders"))
	}
	switch x.Method {
	case http.MethodPost, http.MethodPut, http.MethodGet:
	default:
		wrong = append(wrong, op.Field("settings.send.method", "invalid_value", "must be POST, PUT or GET"))
	}
	if x.Form != nil && x.JSON != nil {
		wrong = append(wrong, op.Field("settings.send", "invalid_value", "has form or json, not both"))
	}
	templates := []any{x.URL, x.JSON}
	for name, v := range x.Headers {
		if strings.ContainsAny(name+v, "\r\n") || name == "" {
			wrong = append(wrong, op.Field("settings.send.headers", "invalid_value", "must be names and values of one line"))
		}
	}
	for _, v := range x.Form {
		templates = append(templates, v)
	}
	for _, t := range templates {
		if err := placeholder.Check(t, placeholders); err != nil {
			wrong = append(wrong, op.Field("settings.send", "unknown_placeholder", err.Error()))
		}
	}
	return wrong
}

// buildRequest fills in the template.
func (g *httpAdapter) buildRequest(ctx context.Context, o sms.Outgoing) (*http.Request, error) {
	values := map[string]string{"from": o.From, "to": o.To, "from_digits": strings.TrimPrefix(o.From, "+"),
		"to_digits": strings.TrimPrefix(o.To, "+"), "text": o.Body, "reference": o.Reference, "callback_url": g.info.CallbackURL}
	x := g.settings.Send
	var body []byte
	kind := ""
	switch {
	case x.JSON != nil:
		raw, err := json.Marshal(placeholder.FillJSON(x.JSON, values))
		if err != nil {
			return nil, err
		}
		body, kind = raw, "application/json"
	case x.Form != nil:
		form := url.Values{}
		for name, v := range x.Form {
			form.Set(name, placeholder.Fill(v, values, placeholder.Verbatim))
		}
		body, kind = []byte(form.Encode()), "application/x-www-form-urlencoded"
	}
	r, err := http.NewRequestWithContext(ctx, x.Method, placeholder.Fill(x.URL, values, placeholder.EscapeURL), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for name, v := range x.Headers {
		r.Header.Set(name, v)
	}
	return r, nil
}

// Send sends the request and parses the response.
func (g *httpAdapter) Send(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	r, err := g.buildRequest(ctx, o)
	if err != nil {
		return sms.Result{}, fmt.Errorf("%w: %w", sms.ErrUnsent, err)
	}
	answer, err := g.client.Do(r)
	if err != nil {
		return sms.Result{}, g.requestError(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil && answer.StatusCode < 300 {
		return sms.Result{}, g.requestError(err)
	}
	return g.parseResponse(answer, raw)
}

// requestError wraps the error of a failed request: sms.ErrUnsent if it can be repeated, else sms.ErrOutcomeUnknown.
func (g *httpAdapter) requestError(err error) error {
	if g.settings.Idempotent || failedBeforeSend(err) {
		return fmt.Errorf("%w: %w", sms.ErrUnsent, err)
	}
	return fmt.Errorf("%w: %w", sms.ErrOutcomeUnknown, err)
}

// failedBeforeSend reports whether a request failed before it was written, because there was no connection.
func failedBeforeSend(err error) bool {
	var dial *net.OpError
	var name *net.DNSError
	return errors.Is(err, egress.ErrBlocked) || errors.As(err, &name) || errors.As(err, &dial) && dial.Op == "dial"
}

// parseResponse returns the result for a response.
func (g *httpAdapter) parseResponse(answer *http.Response, raw []byte) (sms.Result, error) {
	var doc any
	_ = json.Unmarshal(strictjson.WithoutDamaged(raw), &doc)
	wrong := textAt(g.errorPath, doc)
	status := answer.StatusCode
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return sms.Result{}, &sms.BusyError{After: retryAfter(answer.Header), Cause: fmt.Errorf("answered with %d", status)}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return sms.Result{}, fmt.Errorf("%w: %w: answered with %d", sms.ErrUnsent, ErrAuth, status)
	case status >= 500:
		return sms.Result{}, g.requestError(fmt.Errorf("answered with %d", status))
	case status >= 300 || wrong != "":
		code := wrong
		if code == "" {
			code = strconv.Itoa(status)
		}
		return sms.Result{Status: sms.Failed, Fault: &sms.Fault{Code: "carrier_rejected", Message: "the carrier does not take the message",
			CarrierCode: &code}}, nil
	}
	r := sms.Result{Status: sms.Sent}
	if id := textAt(g.idPath, doc); id != "" {
		r.IDs = []string{id}
	}
	return r, nil
}

// retryAfter returns the time in Retry-After in seconds; 5 s if there is none.
func retryAfter(h http.Header) time.Duration {
	if n, err := strconv.Atoi(h.Get("Retry-After")); err == nil && n > 0 {
		return min(time.Duration(n)*time.Second, maxBusy)
	}
	return 5 * time.Second
}

// QueryStatus returns sms.ErrUnsent if the carrier deduplicates, so that the message is sent again.
func (g *httpAdapter) QueryStatus(context.Context, sms.Outgoing) (sms.Result, error) {
	if g.settings.Idempotent {
		return sms.Result{}, sms.ErrUnsent
	}
	return sms.Result{}, sms.ErrOutcomeUnknown
}
