package flow

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

func insert(ctx context.Context, tx db.Querier, f Flow) error {
	const text = `INSERT INTO flows (org_id, id, name, kind, draft, version, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, 0, $6, $7)`
	_, err := tx.Exec(ctx, text, f.OrgID, f.ID, f.Name, f.Kind, graphText(f.draft), f.CreatedAt, f.UpdatedAt)
	return err
}

// graphText stores no draft as NULL.
func graphText(g *Graph) any {
	if g == nil {
		return nil
	}
	return db.AsJSON(g)
}

func update(ctx context.Context, tx db.Querier, f Flow) error {
	const text = `UPDATE flows SET name = $3, draft = $4, version = $5, updated_at = $6, published_at = $7, kind = $8, archived_at = $9
		WHERE org_id = $1 AND id = $2`
	var archived db.Time
	if f.Status == Archived {
		archived = f.UpdatedAt
	}
	_, err := tx.Exec(ctx, text, f.OrgID, f.ID, f.Name, graphText(f.draft), f.Version, f.UpdatedAt, f.PublishedAt, f.Kind, archived)
	return err
}

const flowColumns = `SELECT org_id, id, name, kind, draft, version, archived_at, created_at, updated_at, published_at FROM flows WHERE org_id = $1`

func scan(scan func(...any) error) (Flow, error) {
	var f Flow
	var draft db.JSON[*Graph]
	var archived db.Time
	err := scan(&f.OrgID, &f.ID, &f.Name, &f.Kind, &draft, &f.Version, &archived, &f.CreatedAt, &f.UpdatedAt, &f.PublishedAt)
	f.draft, f.Status, f.NumberIDs = draft.V, Draft, []string{}
	if f.draft != nil {
		next := f.Version + 1
		f.DraftVersion = &next
	}
	switch {
	case !archived.IsZero():
		f.Status = Archived
	case f.Version > 0:
		f.Status = Published
	}
	return f, err
}

func get(ctx context.Context, q db.Querier, org, id string) (Flow, error) {
	return scan(q.QueryRow(ctx, flowColumns+` AND id = $2`, org, id).Scan)
}

func (in *ListIn) filter(org string) *db.Filter {
	f := db.Where(flowColumns, org).In("kind", in.Kind)
	status := func(name string) string {
		return map[string]string{Draft: "archived_at IS NULL AND version = 0", Published: "archived_at IS NULL AND version > 0",
			Archived: "archived_at IS NOT NULL"}[name]
	}
	condition := "archived_at IS NULL"
	for i, s := range in.Status {
		if i == 0 {
			condition = "(" + status(s) + ")"
		} else {
			condition += " OR (" + status(s) + ")"
		}
	}
	f.And(condition)
	if in.Q != "" {
		f.And(`lower(name) LIKE lower(?) ESCAPE '\'`, "%"+db.Escape(in.Q)+"%")
	}
	if in.NumberID != "" {
		f.And(`EXISTS (SELECT 1 FROM numbers n WHERE n.org_id = flows.org_id AND n.flow_id = flows.id AND n.id = ?)`, in.NumberID)
	}
	return f
}

func list(ctx context.Context, q db.Querier, f *db.Filter) (all []Flow, err error) {
	text, args := f.SQL()
	err = db.ForEach(ctx, q, "list flows", text, args, func(read func(...any) error) error {
		x, err := scan(read)
		all = append(all, x)
		return err
	})
	return all, err
}

// insertVersion inserts a version.
func insertVersion(ctx context.Context, tx db.Querier, f Flow, v Version) error {
	const text = `INSERT INTO flow_versions (org_id, flow_id, version, id, graph, comment, published_by, published_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	_, err := tx.Exec(ctx, text, f.OrgID, f.ID, v.Version, v.ID, db.AsJSON(v.graph), v.Comment, v.PublishedBy, v.PublishedAt)
	return err
}

const versionColumns = `SELECT v.id, v.version, v.graph, v.comment, v.published_by, v.published_at, v.version = f.version
	FROM flow_versions v JOIN flows f ON f.org_id = v.org_id AND f.id = v.flow_id WHERE v.org_id = $1 AND v.flow_id = $2`

func scanVersion(scan func(...any) error) (Version, error) {
	var v Version
	var graph db.JSON[Graph]
	err := scan(&v.ID, &v.Version, &graph, &v.Comment, &v.PublishedBy, &v.PublishedAt, &v.InForce)
	v.graph, v.NodesCount = graph.V, len(graph.V.Nodes)
	return v, err
}

func getVersion(ctx context.Context, q db.Querier, org, flow string, version int) (Version, error) {
	return scanVersion(q.QueryRow(ctx, versionColumns+` AND v.version = $3`, org, flow, version).Scan)
}

func versions(ctx context.Context, q db.Querier, org, flow string, before, limit int) (all []Version, err error) {
	f := db.Where(versionColumns, org, flow)
	if before > 0 {
		f.And("v.version < ?", before)
	}
	text, args := f.SQL()
	err = db.ForEach(ctx, q, "list versions", text+fmt.Sprintf(" ORDER BY v.version DESC LIMIT %d", limit), args,
		func(read func(...any) error) error {
			v, err := scanVersion(read)
			all = append(all, v)
			return err
		})
	return all, err
}

// flowsMentioning returns the ids of flows whose draft or published version contains a name, at most 100.
func flowsMentioning(ctx context.Context, q db.Querier, org, name string) (ids []string, err error) {
	const text = `SELECT f.id FROM flows f LEFT JOIN flow_versions v ON v.org_id = f.org_id AND v.flow_id = f.id AND v.version = f.version
		WHERE f.org_id = $1 AND f.archived_at IS NULL AND (f.draft LIKE $2 OR v.graph LIKE $2) ORDER BY f.id LIMIT 100`
	err = db.ForEach(ctx, q, "find flows", text, []any{org, `%` + name + `"%`}, func(read func(...any) error) error {
		var id string
		err := read(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// UsedBy returns the ids of flows whose draft or published version refers to a queue, a user, an audio file or a
// flow.
func (s *Service) UsedBy(ctx context.Context, q db.Querier, org, id string) ([]string, error) {
	return flowsMentioning(ctx, q, org, id)
}
