package flow

import (
	"context"
	"fmt"
	"strconv"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// PublishIn is the input of Publish.
type PublishIn struct {
	OneIn
	Body PublishBody
}

// PublishBody holds the comment for the new version.
type PublishBody struct {
	Comment string `json:"comment,omitempty" maxLength:"500"`
}

// Publish makes the draft of a flow the published version. Calls that are in the flow keep the version they entered.
func (s *Service) Publish(ctx context.Context, in *PublishIn) (*op.Out[Flow], error) {
	return s.publishWith(ctx, in.ID, in.Body.Comment, func(_ db.Querier, f *Flow) error {
		if f.draft == nil {
			return op.State("the flow has no draft to publish", f.Status, "update")
		}
		return nil
	})
}

// RollbackIn is the input of Rollback.
type RollbackIn struct {
	OneIn
	Body RollbackBody
}

// RollbackBody names the version to publish again.
type RollbackBody struct {
	Version int `json:"version" doc:"What was in force before"`
}

// Rollback publishes an earlier version again, under a new number, because published versions never change. A draft
// is kept.
func (s *Service) Rollback(ctx context.Context, in *RollbackIn) (*op.Out[Flow], error) {
	var kept *Graph
	out, err := s.publishKeepingDraft(ctx, in.ID, "version "+strconv.Itoa(in.Body.Version)+" again", &kept,
		func(q db.Querier, f *Flow) error {
			v, err := getVersion(ctx, q, f.OrgID, f.ID, in.Body.Version)
			if db.IsNone(err) {
				return op.Invalid(op.Field("version", "not_found", "the flow has no such version"))
			}
			if err != nil {
				return fmt.Errorf("get version: %w", err)
			}
			kept, f.draft = f.draft, &v.graph
			return nil
		})
	return out, err
}

func (s *Service) publishWith(ctx context.Context, id, comment string, draw func(db.Querier, *Flow) error) (*op.Out[Flow], error) {
	var none *Graph
	return s.publishKeepingDraft(ctx, id, comment, &none, draw)
}

// publishKeepingDraft publishes the draft that draw sets. Afterwards the draft is the graph to which kept points.
func (s *Service) publishKeepingDraft(ctx context.Context, id, comment string, kept **Graph,
	draw func(db.Querier, *Flow) error) (*op.Out[Flow], error) {
	var f Flow
	var g Graph
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if f, err = s.findFlow(ctx, tx, id, op.Match{}); err != nil {
			return err
		}
		if err := draw(tx, &f); err != nil {
			return err
		}
		if err := s.check(ctx, &f); err != nil {
			return err
		}
		g = *f.draft
		if err := s.publish(ctx, tx, &f, comment); err != nil || *kept == nil {
			return err
		}
		next := f.Version + 1
		f.draft, f.DraftVersion = *kept, &next
		return s.save(ctx, tx, &f)
	})
	if err != nil {
		return nil, err
	}
	if f, err = s.withGraph(ctx, f, g); err != nil {
		return nil, err
	}
	return op.Versioned(f, f.UpdatedAt)
}

// publish stores a checked draft as a new version and makes it the published one.
func (s *Service) publish(ctx context.Context, tx db.Querier, f *Flow, comment string) error {
	last, err := lastVersion(ctx, tx, f.OrgID, f.ID)
	if err != nil {
		return fmt.Errorf("find last version: %w", err)
	}
	now := db.At(s.cfg.Clock.Now())
	v := Version{ID: db.NewID("flv"), Version: last + 1, Comment: db.Null(comment).Ptr(), PublishedBy: db.Null(publisherID(ctx)).Ptr(),
		PublishedAt: now, graph: *f.draft}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return insertVersion(ctx, tx, *f, v) })
	if db.IsConflict(err) {
		return op.Fail("version_conflict", "the flow was published meanwhile")
	}
	if err != nil {
		return fmt.Errorf("keep version: %w", err)
	}
	f.Version, f.Status, f.PublishedAt, f.draft, f.DraftVersion = v.Version, Published, now, nil, nil
	return s.save(ctx, tx, f)
}

func lastVersion(ctx context.Context, q db.Querier, org, flow string) (n int, err error) {
	const text = `SELECT COALESCE(MAX(version), 0) FROM flow_versions WHERE org_id = $1 AND flow_id = $2`
	err = q.QueryRow(ctx, text, org, flow).Scan(&n)
	return n, err
}

// publisherID returns the id of the user or the API key of the request.
func publisherID(ctx context.Context) string {
	p, _ := access.From(ctx)
	if p.UserID != "" {
		return p.UserID
	}
	return p.KeyID
}

// VersionsIn selects the versions of a flow.
type VersionsIn struct {
	OneIn
	op.Paging
}

// Versions lists the published versions, newest first.
func (s *Service) Versions(ctx context.Context, in *VersionsIn) (*op.Out[op.Page[Version]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	f, err := get(ctx, q, org, in.ID)
	if err != nil {
		return nil, notFound(err)
	}
	found, err := versions(ctx, q, org, f.ID, int(after.Int), in.Limit+1)
	if err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, found, func(v Version) op.Position { return op.Position{Int: int64(v.Version), ID: v.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return lastVersion(ctx, q, org, f.ID) })
}
