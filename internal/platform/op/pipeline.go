package op

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/limit"
)

// Sealer encrypts stored data. The associated data binds a value to its location.
type Sealer interface {
	Seal(plain, associated []byte) ([]byte, error)
	Unseal(sealed, associated []byte) ([]byte, error)
}

// Pipeline runs the steps common to all operations: quota, scope, validation, idempotency, handler, audit.
type Pipeline struct {
	DB      *db.DB
	Sealer  Sealer
	Cursors Cursors
	Log     *slog.Logger
	Clock   clock.Clock // nil: the system clock
	// Visibility hides records of the organisation from its users; nil shows all.
	Visibility Visibility
	// Limiter counts requests per credential or address; nil disables quotas.
	Limiter *access.Limiter
	// AttemptsPerMinute is the number of requests without a valid credential per address and minute; 0 disables the
	// limit.
	AttemptsPerMinute int
	// OnMissingScope is called when a principal lacks a scope; may be nil.
	OnMissingScope func(ctx context.Context, p access.Principal)
	// OnDone is called after every operation, for metrics; may be nil.
	OnDone func(operation, code string, took time.Duration)

	transfers limit.Gate // uploads and downloads
}

// now returns the time of the pipeline's clock.
func (c *Pipeline) now() time.Time { return clock.OrSystem(c.Clock).Now() }

// admit runs steps 1 and 2: quota, and permission of the credential. It also reads the request's values for cursors,
// conditions and idempotency.
func (c *Pipeline) admit(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(h huma.Context, next func(huma.Context)) {
		o, _ := h.Operation().Metadata[operationKey].(Operation)
		ctx, err := c.prepare(h, o)
		if err == nil && o.maxBodyBytes > 0 {
			var leave func()
			if leave, err = c.enterUpload(ctx); err == nil {
				defer leave()
			}
		}
		if err == nil && o.Writes() {
			ctx, err = withIdempotency(ctx, h, o)
		}
		if err != nil {
			c.refuse(api, huma.WithContext(h, ctx), o, err)
			return
		}
		next(huma.WithContext(h, ctx))
	}
}

func (c *Pipeline) prepare(h huma.Context, o Operation) (context.Context, *Error) {
	ctx := withTransfers(withCondition(h, o), &c.transfers)
	signed := o.Signed && h.Query("signature") != ""
	_, w := unwrap(h)
	o.deprecation.writeHeaders(w.Header())
	if err := c.Charge(ctx, w.Header(), o.Class(), o.Need.IsPublic() || signed); err != nil {
		return ctx, err
	}
	if signed {
		if err := checkSignedQuery(h); err != nil {
			return ctx, err
		}
	}
	if err := admitted(ctx, o, signed, h.Param("id")); err != nil {
		if p, known := access.From(ctx); known && err.Code == "insufficient_scope" && c.OnMissingScope != nil {
			c.OnMissingScope(ctx, p)
		}
		return ctx, err
	}
	r, _ := unwrap(h)
	err := cmp.Or(checkPath(r.URL.Path), CheckEncoding(r.Header), checkCharset(h.Header("Content-Type")), checkLength(r, o))
	if err != nil {
		return ctx, err
	}
	bound, err := normalizeQuery(h)
	if err != nil {
		return ctx, err
	}
	if !signed {
		if err := c.maskAddress(ctx, h, o); err != nil {
			return ctx, err
		}
	}
	return withCursorScope(ctx, bound), nil
}

func (c *Pipeline) refuse(_ huma.API, h huma.Context, o Operation, e *Error) {
	c.noteDenied(h.Context(), o, e)
	r, w := unwrap(h)
	Write(w, r.WithContext(h.Context()), e)
}

func admitted(ctx context.Context, o Operation, signed bool, id string) *Error {
	if o.Need.IsPublic() || o.Signed && signed {
		return nil
	}
	p, ok := access.From(ctx)
	if !ok {
		return refusal(ctx)
	}
	if o.OnlyEnvironment != "" && o.OnlyEnvironment != string(p.Environment) {
		return NotFound("operation in this environment")
	}
	if o.SelfService && p.UserID != "" && p.UserID == id {
		return nil
	}
	if !o.Need.MetBy(p.Scopes) {
		return missingScope(ctx, o.Need, p)
	}
	if o.Personal && p.UserID == "" {
		return Fail("not_found", "this credential belongs to no user; use an API key with user_id, or sign in as the user")
	}
	if o.sensitive {
		return unconfirmed(ctx)
	}
	return nil
}

// MissingScope returns the error insufficient_scope, for operations whose need depends on the request.
func MissingScope(ctx context.Context, need access.Requirement) *Error {
	p, _ := access.From(ctx)
	return missingScope(ctx, need.Need(), p)
}

// missingScope returns the error insufficient_scope. For an OAuth token, the challenge lists the scopes the program has and those it
// additionally needs. So it can ask its user for all of them.
func missingScope(ctx context.Context, n access.Need, p access.Principal) *Error {
	var missing []access.Scope
	for _, set := range n.Alternatives() {
		for _, s := range set {
			if !slices.Contains(p.Scopes, s) && !slices.Contains(missing, s) {
				missing = append(missing, s)
			}
		}
	}
	ask := missing
	if p.Kind == access.OAuthToken {
		ask = append(slices.Clone(p.Scopes), missing...)
	}
	return &Error{Code: "insufficient_scope", Detail: "this operation needs " + n.String(),
		Header: http.Header{"Www-Authenticate": {challenge(ctx, `error="insufficient_scope"`, `scope="`+scopeList(ask)+`"`)}},
		Extra:  map[string]any{"required_scopes": missing}}
}

func scopeList(scopes []access.Scope) string {
	var s string
	for i, x := range scopes {
		if i > 0 {
			s += " "
		}
		s += string(x)
	}
	return s
}

type refusalKey struct{}

// WithRefusal stores the reason why the request has no principal.
func WithRefusal(ctx context.Context, e *Error) context.Context {
	return context.WithValue(ctx, refusalKey{}, e)
}

// Refusal returns the reason why the context has no principal.
func Refusal(ctx context.Context) *Error { return refusal(ctx) }

func refusal(ctx context.Context) *Error {
	if e, ok := ctx.Value(refusalKey{}).(*Error); ok && e != nil {
		return e
	}
	return &Error{Code: "unauthenticated", Detail: "send Authorization: Bearer <API key>",
		Header: http.Header{"Www-Authenticate": {challenge(ctx)}}} // RFC 9110 §11.6.1: a 401 has a challenge
}

type metadataKey struct{}

// WithMetadata stores the URL of the protected resource metadata, for challenges (RFC 9728 §5.1).
func WithMetadata(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, metadataKey{}, address)
}

// Challenged adds the challenge invalid_token to the error of a refused credential (RFC 6750 §3.1).
func Challenged(ctx context.Context, e *Error) *Error {
	c := *e
	c.Header = http.Header{"Www-Authenticate": {challenge(ctx, `error="invalid_token"`)}}
	return &c
}

// challenge returns a WWW-Authenticate value.
func challenge(ctx context.Context, words ...string) string {
	if address, _ := ctx.Value(metadataKey{}).(string); address != "" {
		words = append(words, `resource_metadata="`+address+`"`)
	}
	return strings.TrimSuffix("Bearer "+strings.Join(words, ", "), " ")
}

type requestIDKey struct{}

// WithRequestID stores the request's ID for errors, logs and the audit log.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the ID of the context's request.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// pipeline wraps a typed function with steps 4 to 6.
func pipeline[I, O any](c *Pipeline, o Operation, fn func(context.Context, *I) (*Out[O], error)) func(context.Context, *I) (*Out[O],
	error) {
	return func(ctx context.Context, in *I) (out *Out[O], err error) {
		start := c.now()
		ctx = withCursors(ctx, c.Cursors, o)
		if err = c.checkInput(ctx, in); err != nil {
			return nil, c.finish(ctx, o, start, err)
		}
		if o.Writes() {
			err = c.write(ctx, o, func(ctx context.Context) (answer, error) {
				if err = c.checkIfMatch(ctx, o); err != nil {
					return answer{}, err
				}
				if out, err = fn(ctx, in); err != nil {
					return answer{}, err
				}
				setETag(ctx, o, out)
				return answerOf(o, out), nil
			})
		} else if out, err = fn(ctx, in); err == nil && out != nil {
			err = finishRead(ctx, o, out)
		}
		if out != nil && out.Status == 0 {
			out.Status = o.SuccessCode
		}
		return out, c.finish(ctx, o, start, err)
	}
}

// checkInput refuses an input with unstorable texts, and masks the IDs of hidden records in it.
func (c *Pipeline) checkInput(ctx context.Context, in any) error {
	if err := storable(in); err != nil {
		return err
	}
	return c.maskBody(ctx, in)
}

// finishRead checks the fields parameter and sets the ETag of a response to a read.
func finishRead[O any](ctx context.Context, o Operation, out *Out[O]) error {
	if page, ok := any(out.Body).(interface{ unknownFields() []Violation }); ok {
		if wrong := page.unknownFields(); len(wrong) > 0 {
			return wrongQuery(wrong...)
		}
	}
	if o.versioned {
		return checkNotModified(ctx, out)
	}
	return nil
}

// done is the response of an operation without a body.
type done struct {
	Replayed string `header:"Idempotency-Replayed"`
}

func pipelineNone[I any](c *Pipeline, o Operation, fn func(context.Context, *I) error) func(context.Context, *I) (*done, error) {
	return func(ctx context.Context, in *I) (*done, error) {
		start := c.now()
		if err := c.checkInput(ctx, in); err != nil {
			return nil, c.finish(ctx, o, start, err)
		}
		err := c.write(withCursors(ctx, c.Cursors, o), o, func(ctx context.Context) (answer, error) {
			if err := c.checkIfMatch(ctx, o); err != nil {
				return answer{}, err
			}
			return answer{Status: http.StatusNoContent}, fn(ctx, in)
		})
		var again *replayed
		if errors.As(err, &again) && again.Status == http.StatusNoContent {
			return &done{Replayed: "true"}, c.finish(ctx, o, start, nil)
		}
		return nil, c.finish(ctx, o, start, err)
	}
}

func pipelineStream[I any](c *Pipeline, o Operation, fn func(context.Context, *I) (*huma.StreamResponse, error)) func(context.Context,
	*I) (*huma.StreamResponse, error) {
	return func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		start := c.now()
		if err := c.checkInput(ctx, in); err != nil {
			return nil, c.finish(ctx, o, start, err)
		}
		out, err := fn(withCursors(ctx, c.Cursors, o), in)
		return out, c.finish(ctx, o, start, err)
	}
}

// finish converts an error to the library's form, logs unexpected errors, and calls OnDone.
func (c *Pipeline) finish(ctx context.Context, o Operation, start time.Time, err error) error {
	code := "ok"
	defer func() {
		if c.OnDone != nil {
			c.OnDone(o.ID, code, c.now().Sub(start))
		}
	}()
	if err == nil {
		return nil
	}
	var again *replayed
	if errors.As(err, &again) {
		return again
	}
	if isNotModified(err) {
		return err
	}
	e := c.toError(ctx, o, err)
	code = e.Code
	return AsProblem(ctx, e)
}

// toError converts any error to an Error. Other errors are logged with their cause, which the response does not
// contain. An error after the client has disconnected is logged as information only.
func (c *Pipeline) toError(ctx context.Context, o Operation, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(ctx.Err(), context.Canceled) { // the client has disconnected
		c.Log.Info("client went away", "operation", o.ID, "request", RequestID(ctx), "org", access.Org(ctx), "err", err)
		return Unexpected(err)
	}
	if errors.Is(err, fs.ErrNotExist) { // a file of another node
		c.Log.Warn("a file is not at this server", "operation", o.ID, "request", RequestID(ctx), "org", access.Org(ctx), "err", err)
		return Unexpected(err)
	}
	c.Log.Error("operation failed", "operation", o.ID, "request", RequestID(ctx), "org", access.Org(ctx), "err", err)
	return Unexpected(err)
}
