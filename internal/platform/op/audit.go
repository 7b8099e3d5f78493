package op

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strings"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// Audit log: which principal changed which record. Every successful change has a line, written in its transaction.
// Failed actions with side effects that may have begun have a line as well, and a limited number of denied changes.

// Limits of logged denied changes: per organisation and minute, and per credential, operation and minute.
const (
	deniedPerOrg = 60
	deniedPerKey = 1
)

// audit writes the audit line of a change. A change by a partner in a child organisation is written in both
// organisations.
func (c *Pipeline) audit(ctx context.Context, tx db.Querier, o Operation, a answer) error {
	p, ok := access.From(ctx)
	if !ok {
		return nil
	}
	return c.note(ctx, tx, o, p, record(ctx, o, a), a.Status, "")
}

func (c *Pipeline) note(ctx context.Context, tx db.Querier, o Operation, p access.Principal, record string, status int, code string) error {
	err := c.noteIn(ctx, tx, o, p, p.OrgID, record, status, code)
	if err != nil || p.HomeID == "" {
		return err
	}
	return c.noteIn(ctx, tx, o, p, p.HomeID, record, status, code)
}

func (c *Pipeline) noteIn(ctx context.Context, tx db.Querier, o Operation, p access.Principal, org, record string, status int,
	code string) error {
	l := AuditLine{Org: org, Operation: o.ID, Target: Target(ctx), KeyID: p.KeyID, KeyName: p.KeyName, Credential: string(p.Kind),
		UserID: p.UserID, Source: p.Source.String(), Record: record, Status: status, Code: code}
	if p.HomeID != "" {
		l.Actor, l.Child = p.HomeID, p.OrgID
	}
	return WriteAudit(ctx, tx, db.At(c.now()), l)
}

// AuditLine is a line of the audit log. WriteAudit also accepts lines without an operation.
type AuditLine struct {
	Org, Operation, Target     string
	KeyID, KeyName, Credential string
	UserID, Source, Record     string
	Status                     int
	Code, Actor, Child         string
}

// WriteAudit writes an audit line in the transaction of the change. An empty Source is replaced by the address of the
// request.
func WriteAudit(ctx context.Context, tx db.Querier, at db.Time, l AuditLine) error {
	if l.Source == "" {
		l.Source = ClientAddress(ctx).String()
	}
	const q = `INSERT INTO audit (org_id, id, at, operation, target, key_id, key_name, credential, user_id, source, request_id,
		record_id, status, code, actor_org_id, on_behalf_of, client, scopes)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`
	v, _ := ToolCallOf(ctx)
	_, err := tx.Exec(ctx, q, l.Org, db.NewID("adt"), at, l.Operation, truncate(l.Target), l.KeyID, truncate(l.KeyName), l.Credential,
		db.Null(l.UserID), l.Source, RequestID(ctx), db.Null(truncate(l.Record)), l.Status, db.Null(l.Code), db.Null(l.Actor),
		db.Null(l.Child), db.Null(truncate(v.Client)), db.Null(v.Scopes))
	return err
}

// truncate limits text from the request to 500 bytes.
func truncate(text string) string {
	const most = 500
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// record returns the ID of the changed record: the created one, or the last one in the path.
func record(ctx context.Context, o Operation, a answer) string {
	if location := a.Header["Location"]; location != "" {
		location, _, _ = strings.Cut(location, "?")
		return path.Base(location)
	}
	if a.Status == http.StatusCreated {
		var made struct{ ID string }
		if json.Unmarshal(a.Body, &made) == nil && made.ID != "" {
			return made.ID
		}
	}
	return subject(ctx, o)
}

// subject returns the last parameter of the path, or the user of the credential if the operation is about that user.
func subject(ctx context.Context, o Operation) string {
	if o.Personal {
		p, _ := access.From(ctx)
		return p.UserID
	}
	known, _ := ctx.Value(conditionKey{}).(condition)
	var last string
	for segment := range strings.SplitSeq(o.Path, "/") {
		if strings.HasPrefix(segment, "{") {
			last = known.parameters[strings.Trim(segment, "{}")]
		}
	}
	return last
}

// noteDenied writes an audit line for a change that a known credential is not allowed to make.
func (c *Pipeline) noteDenied(ctx context.Context, o Operation, e *Error) {
	p, ok := access.From(ctx)
	if !ok {
		p, ok = ctx.Value(refusedPrincipalKey{}).(access.Principal)
	}
	if !ok || !o.Writes() || e.Status() != http.StatusForbidden || !c.allowNote(p, o) {
		return
	}
	c.noteRefusal(ctx, o, p, e)
}

func (c *Pipeline) allowNote(p access.Principal, o Operation) bool {
	if c.Limiter == nil {
		return true
	}
	_, ok := c.Limiter.Take("denied "+p.OrgID+" "+p.KeyID, 1, access.Policy{Name: o.ID, Quota: deniedPerKey, Window: time.Minute})
	if ok {
		_, ok = c.Limiter.Take("denied "+p.OrgID, 1, access.Policy{Name: "denied", Quota: deniedPerOrg, Window: time.Minute})
	}
	return ok
}

// noteFailure writes an audit line for a change that its function denied. It also does so for a failed action with side effects, which
// may have taken effect partly.
func (c *Pipeline) noteFailure(ctx context.Context, o Operation, err error) error {
	var again *replayed
	p, ok := access.From(ctx)
	if !ok || err == nil || errors.As(err, &again) {
		return err
	}
	e := c.toError(ctx, o, err)
	denied := e.Status() == http.StatusForbidden && c.allowNote(p, o)
	if denied || o.HasSideEffects && e.Status() >= 500 && e.Code != "not_enabled" {
		c.noteRefusal(ctx, o, p, e)
	}
	return e
}

// noteRefusal writes an audit line in a transaction of its own.
func (c *Pipeline) noteRefusal(ctx context.Context, o Operation, p access.Principal, e *Error) {
	err := c.DB.Tx(context.WithoutCancel(ctx), func(tx db.Querier) error {
		return c.note(ctx, tx, o, p, subject(ctx, o), e.Status(), e.Code)
	})
	if err != nil {
		c.Log.Warn("refused change not written to the audit log", "operation", o.ID, "request", RequestID(ctx), "err", err)
	}
}

type refusedPrincipalKey struct{}

// WithRefusedPrincipal stores the owner of a refused credential, if known, for the audit log.
func WithRefusedPrincipal(ctx context.Context, p access.Principal) context.Context {
	return context.WithValue(ctx, refusedPrincipalKey{}, p)
}

type targetKey struct{}

// WithTarget stores the request's URL for the audit log.
func WithTarget(ctx context.Context, target string) context.Context {
	return context.WithValue(ctx, targetKey{}, target)
}

// Target returns the request's URL.
func Target(ctx context.Context) string {
	t, _ := ctx.Value(targetKey{}).(string)
	return t
}
