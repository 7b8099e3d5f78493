// Package audit lists the audit log. The pipeline of package op writes its lines in the transaction of each change.
package audit

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Entry is a line of the audit log: a change, a denied change, or a failed action that may have taken effect partly.
type Entry struct {
	ID        string  `json:"id" example:"adt_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	At        db.Time `json:"at"`
	Actor     Actor   `json:"actor"`
	Operation string  `json:"operation" doc:"The operationId" example:"users.update"`
	Request   string  `json:"request" doc:"Method and address" example:"PATCH /v1/users/usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	TargetID  *string `json:"target_id" doc:"What was made, changed or acted on"`
	Status    int     `json:"status" doc:"The HTTP status it was answered with"`
	Outcome   string  `json:"outcome" enum:"done,denied,failed" doc:"failed: an action that may have had a part of its effect"`
	Code      *string `json:"code" doc:"The error code, where it was not done"`
	RequestID string  `json:"request_id"`
	// OnBehalfOf is set for actions of a partner in a child organisation.
	OnBehalfOf *string `json:"on_behalf_of" doc:"The child organisation a partner acted in"`
}

// Actor is the credential and user of an action.
type Actor struct {
	KeyID      string  `json:"key_id"`
	KeyName    string  `json:"key_name" doc:"The name of the key, or of the assistant's client"`
	Credential string  `json:"credential" doc:"The kind of the credential" example:"standard"`
	UserID     *string `json:"user_id" doc:"The user the credential belongs to"`
	OrgID      string  `json:"org_id" doc:"The organisation the credential belongs to"`
	Address    string  `json:"address" doc:"Where the request came from"`
	// Client and Scopes are set for requests through the MCP server.
	Client *string `json:"client" doc:"Of what an assistant did: the program it came through, as that calls itself"`
	Scopes *string `json:"scopes" doc:"Of what an assistant did: what its credential could do then, separated by spaces"`
}

// Service lists and sweeps the audit log. It is safe for concurrent use.
type Service struct {
	DB *db.DB
}

// Operations returns the API operations of the audit log.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("audit.list", "GET /audit-log", access.UsersAdmin, "List who changed what, newest first", s.List),
	}
}

// ListIn is the input of List.
type ListIn struct {
	Actor     string   `query:"actor" maxLength:"64" doc:"A key or a user"`
	Operation []string `query:"operation" maxItems:"50" doc:"These operations only" example:"[\"users.update\"]"`
	Target    string   `query:"target" maxLength:"64" doc:"What was made, changed or acted on, or what its address names"`
	Outcome   []string `query:"outcome" enum:"done,denied,failed"`
	RequestID string   `query:"request_id" maxLength:"128"`
	op.Span
	op.Paging
}

const selected = `SELECT id, at, operation, target, key_id, key_name, credential, user_id, source, request_id, record_id, status, code,
	actor_org_id, on_behalf_of, client, scopes FROM audit WHERE org_id = $1`

// filter returns the filter of the request within an organisation.
func (in *ListIn) filter(org string) (*db.Filter, error) {
	since, until, err := in.Times()
	if err != nil {
		return nil, err
	}
	f := db.Where(selected, org).In("operation", in.Operation).Equal("request_id", in.RequestID).Between("at", since, until)
	if in.Actor != "" {
		f.And("key_id = ? OR user_id = ?", in.Actor, in.Actor)
	}
	if in.Target != "" {
		f.And(`record_id = ? OR target LIKE ? ESCAPE '\'`, in.Target, "%/"+db.Escape(in.Target)+"%")
	}
	if len(in.Outcome) > 0 {
		f.In("CASE WHEN status < 400 THEN 'done' WHEN status = 403 THEN 'denied' ELSE 'failed' END", in.Outcome)
	}
	return f, nil
}

// List lists the audit log.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Entry]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	org, q := access.Org(ctx), s.DB.Read(ctx)
	f, err := in.filter(org)
	if err != nil {
		return nil, err
	}
	text, args := f.Page("at", true, db.At(time.UnixMicro(after.Int)), after.ID, in.Limit).SQL()
	all, err := entries(ctx, q, org, text, args)
	if err != nil {
		return nil, fmt.Errorf("list audit log: %w", err)
	}
	out := op.Paged(ctx, in.Paging, all, func(e Entry) op.Position { return op.Position{Int: e.At.UnixMicro(), ID: e.ID} })
	return op.WithTotal(out, in.Paging, func() (int, error) {
		f, err := in.filter(org)
		if err != nil {
			return 0, err
		}
		return f.Count(ctx, q)
	})
}

func entries(ctx context.Context, q db.Querier, org, text string, args []any) ([]Entry, error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Entry
	for rows.Next() {
		var e Entry
		var user, target, code, actor, child, client, scopes db.Null
		if err := rows.Scan(&e.ID, &e.At, &e.Operation, &e.Request, &e.Actor.KeyID, &e.Actor.KeyName, &e.Actor.Credential, &user,
			&e.Actor.Address, &e.RequestID, &target, &e.Status, &code, &actor, &child, &client, &scopes); err != nil {
			return nil, err
		}
		e.Actor.UserID, e.TargetID, e.Code, e.OnBehalfOf = user.Ptr(), target.Ptr(), code.Ptr(), child.Ptr()
		e.Actor.OrgID, e.Actor.Client, e.Actor.Scopes = org, client.Ptr(), scopes.Ptr()
		if actor != "" {
			e.Actor.OrgID = string(actor)
		}
		e.Outcome = outcome(e.Status)
		all = append(all, e)
	}
	return all, rows.Err()
}

func outcome(status int) string {
	switch {
	case status < 400:
		return "done"
	case status == 403:
		return "denied"
	}
	return "failed"
}

// sweepBatch is the number of lines deleted in one transaction, so that other writes can run in between.
const sweepBatch = 1000

// Sweep deletes lines older than a time in batches, and returns their number.
func (s *Service) Sweep(ctx context.Context, before time.Time) (gone int64, err error) {
	// tenant: a sweep over all organisations
	const q = `DELETE FROM audit WHERE (org_id, id) IN (SELECT org_id, id FROM audit WHERE at < $1 ORDER BY at LIMIT $2)`
	for ctx.Err() == nil {
		var n int64
		err := s.DB.Tx(ctx, func(tx db.Querier) error {
			n = 0
			return db.Affected(ctx, tx, &n, q, db.At(before), sweepBatch)
		})
		if gone += n; err != nil || n < sweepBatch {
			return gone, err
		}
	}
	return gone, ctx.Err()
}
