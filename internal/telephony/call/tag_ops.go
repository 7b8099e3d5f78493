package call

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// TagOperations lists the API operations on tags. The API describes them after call detail records and recordings.
func (s *Service) TagOperations() []op.Operation {
	w := access.CallsWrite
	return []op.Operation{
		op.New("calls.tag", "POST /calls/{id}/tag", w, "Tag the call", s.TagCall),
		op.Delete("calls.untag", "DELETE /calls/{id}/tags/{tag}", w, "Take a tag off the call", s.UntagCall),
		op.New("tags.list", "GET /tags", access.CallsRead, "List tags", s.Tags),
		op.New("tags.create", "POST /tags", w, "Make a tag", s.CreateTag).Status(201),
		op.New("tags.update", "PATCH /tags/{id}", w, "Change a tag", s.UpdateTag).Record(s.tagVersion),
		op.Delete("tags.delete", "DELETE /tags/{id}", w, "Delete a tag, and take it off all calls", s.DeleteTag).Record(s.tagVersion),
	}
}

// TagIn holds the input of TagCall.
type TagIn struct {
	ID   string `path:"id" maxLength:"40"`
	Body struct {
		Tag  string   `json:"tag,omitempty" doc:"One tag"`
		Tags []string `json:"tags,omitempty" doc:"Or several; unknown ones are made"`
	}
}

// CallTags holds the tags of a call.
type CallTags struct {
	CallID string   `json:"call_id"`
	Tags   []string `json:"tags" nullable:"false"`
}

// TagCall adds tags to a call.
func (s *Service) TagCall(ctx context.Context, in *TagIn) (*op.Out[CallTags], error) {
	if _, err := s.findCall(ctx, in.ID); err != nil {
		return nil, err
	}
	names, wrong := in.names()
	if len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	tags, err := s.changeTags(ctx, in.ID, func(have []string) ([]string, error) {
		for _, n := range names {
			if !slices.Contains(have, n) {
				have = append(have, n)
			}
		}
		if len(have) > maxTags {
			return nil, op.Invalid(op.Field("tags", "too_many", "a call has at most 20 tags"))
		}
		return have, nil
	})
	if err != nil {
		return nil, err
	}
	return op.OK(CallTags{CallID: in.ID, Tags: tags})
}

// names returns the normalised names of the request, or their violations.
func (in *TagIn) names() (names []string, wrong []op.Violation) {
	if (in.Body.Tag == "") == (len(in.Body.Tags) == 0) {
		return nil, []op.Violation{op.Field("tag", "required", "give tag or tags, one of them")}
	}
	if len(in.Body.Tags) > maxTags {
		return nil, []op.Violation{op.Field("tags", "too_many", "a call has at most 20 tags")}
	}
	if in.Body.Tag != "" {
		name := tagName(in.Body.Tag)
		return []string{name}, wrongName("tag", name)
	}
	for i, t := range in.Body.Tags {
		name := tagName(t)
		names, wrong = append(names, name), append(wrong, wrongName("tags["+strconv.Itoa(i)+"]", name)...)
	}
	return names, wrong
}

// UntagIn holds the input of UntagCall.
type UntagIn struct {
	ID  string `path:"id" maxLength:"40"`
	Tag string `path:"tag" maxLength:"200" doc:"Its name"`
}

// UntagCall removes a tag from a call. If the call does not have the tag, it does nothing.
func (s *Service) UntagCall(ctx context.Context, in *UntagIn) error {
	name := tagName(in.Tag)
	_, err := s.changeTags(ctx, in.ID, func(have []string) ([]string, error) {
		return slices.DeleteFunc(have, func(t string) bool { return t == name }), nil
	})
	return err
}

// TagsIn holds the filters of Tags.
type TagsIn struct {
	op.Paging
	Q string `query:"q" maxLength:"40" doc:"Part of the name"`
}

// Tags lists tags in the order of their creation.
func (s *Service) Tags(ctx context.Context, in *TagsIn) (*op.Out[op.Page[Tag]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	filter := func() *db.Filter {
		f := db.Where(`SELECT `+tagColumns+` FROM tags WHERE org_id = $1`, access.Org(ctx))
		if in.Q != "" {
			f.And(`name LIKE ? ESCAPE '\'`, "%"+strings.ToLower(db.Escape(in.Q))+"%")
		}
		return f
	}
	text, args := filter().Page("created_at", false, after.Int, after.ID, in.Limit).SQL()
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list tags: %w", err)
	}
	defer rows.Close()
	all := []Tag{}
	for rows.Next() {
		t, err := scanTag(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	out := op.Paged(ctx, in.Paging, all, func(t Tag) op.Position { return op.Position{Int: t.CreatedAt.UnixMicro(), ID: t.ID} })
	return op.WithTotal(out, in.Paging, func() (int, error) { return filter().Count(ctx, s.cfg.DB.Read(ctx)) })
}

// tagVersion returns the ETag of a tag.
func (s *Service) tagVersion(ctx context.Context, parameters map[string]string) (string, error) {
	t, err := getTag(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), parameters["id"])
	return op.TagOf(t), err
}

// NewTagIn holds the input of CreateTag.
type NewTagIn struct {
	Body struct {
		Name        string  `json:"name" doc:"1 to 40 characters, kept in lower case"`
		Color       *string `json:"color,omitempty" example:"#0a84ff"`
		Description *string `json:"description,omitempty"`
	}
}

// CreateTag creates a tag.
func (s *Service) CreateTag(ctx context.Context, in *NewTagIn) (*op.Out[Tag], error) {
	t := Tag{ID: db.NewID("tag"), Name: tagName(in.Body.Name), Color: in.Body.Color, Description: in.Body.Description,
		CreatedAt: db.At(s.Now())}
	if err := violationsError(wrongTag(t)); err != nil {
		return nil, err
	}
	org := access.Org(ctx)
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := roomForTag(ctx, tx, org); err != nil {
			return err
		}
		const q = `INSERT INTO tags (org_id, id, name, color, description, created_at) VALUES ($1, $2, $3, $4, $5, $6)`
		return s.writeTag(ctx, t.Name, func(tx db.Querier) error {
			_, err := tx.Exec(ctx, q, org, t.ID, t.Name, t.Color, t.Description, t.CreatedAt)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Tag]{Body: t, Location: op.Prefix + "/tags/" + t.ID}, nil
}

// writeTag writes a tag, or returns already_exists if its name is in use.
func (s *Service) writeTag(ctx context.Context, name string, write func(tx db.Querier) error) error {
	err := s.cfg.DB.Tx(ctx, write)
	if db.IsConflict(err) {
		return op.Fail("already_exists", "there is a tag "+name+" already")
	}
	return err
}

// TagChangeIn holds the input of UpdateTag.
type TagChangeIn struct {
	ID   string `path:"id" maxLength:"40"`
	Body struct {
		Name        op.Change[string] `json:"name,omitempty"`
		Color       op.Change[string] `json:"color,omitempty"`
		Description op.Change[string] `json:"description,omitempty"`
	}
}

// UpdateTag changes a tag. A new name is written to all calls that have the tag.
func (s *Service) UpdateTag(ctx context.Context, in *TagChangeIn) (*op.Out[Tag], error) {
	org := access.Org(ctx)
	var t Tag
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if t, err = getTag(ctx, tx, org, in.ID); err != nil {
			return err
		}
		old := t.Name
		in.apply(&t)
		if err := violationsError(wrongTag(t)); err != nil {
			return err
		}
		if err := s.writeTag(ctx, t.Name, func(tx db.Querier) error { return updateTag(ctx, tx, org, t) }); err != nil || t.Name == old {
			return err
		}
		return renameOnCalls(ctx, tx, org, t, old)
	})
	if err != nil {
		return nil, err
	}
	return op.OK(t)
}

func (in *TagChangeIn) apply(t *Tag) {
	if in.Body.Name.Set {
		t.Name = tagName(in.Body.Name.V)
	}
	if in.Body.Color.Set {
		t.Color = db.Null(in.Body.Color.V).Ptr()
	}
	if in.Body.Description.Set {
		t.Description = db.Null(in.Body.Description.V).Ptr()
	}
}

func updateTag(ctx context.Context, tx db.Querier, org string, t Tag) error {
	const q = `UPDATE tags SET name = $3, color = $4, description = $5 WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, q, org, t.ID, t.Name, t.Color, t.Description)
	return err
}

// onCalls selects the calls that have a tag.
const onCalls = ` WHERE org_id = $1 AND id IN (SELECT call_id FROM call_tags WHERE org_id = $1 AND tag_id = $2)`

// renameOnCalls replaces the name in the JSON text of the calls' tag lists. This is safe, because a name has no
// character that JSON escapes.
func renameOnCalls(ctx context.Context, tx db.Querier, org string, t Tag, old string) error {
	_, err := tx.Exec(ctx, `UPDATE calls SET tags = replace(tags, $3, $4)`+onCalls, org, t.ID, `"`+old+`"`, `"`+t.Name+`"`)
	if err != nil {
		return fmt.Errorf("rename tag on calls: %w", err)
	}
	return nil
}

// OneTag holds the id of a tag.
type OneTag struct {
	ID string `path:"id" maxLength:"40"`
}

// DeleteTag removes a tag from all calls and deletes it.
func (s *Service) DeleteTag(ctx context.Context, in *OneTag) error {
	org := access.Org(ctx)
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		t, err := getTag(ctx, tx, org, in.ID)
		if err != nil {
			return err
		}
		return deleteTag(ctx, tx, org, t)
	})
}

// deleteTag takes a tag off all calls and deletes it.
func deleteTag(ctx context.Context, tx db.Querier, org string, t Tag) error {
	const off = `UPDATE calls SET tags = replace(replace(replace(tags, $3 || ',', ''), ',' || $3, ''), $3, '')` + onCalls
	if _, err := tx.Exec(ctx, off, org, t.ID, `"`+t.Name+`"`); err != nil {
		return fmt.Errorf("take tag off calls: %w", err)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM call_tags WHERE org_id = $1 AND tag_id = $2`, org, t.ID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM tags WHERE org_id = $1 AND id = $2`, org, t.ID)
	return err
}
