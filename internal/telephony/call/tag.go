package call

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Tag is a label for calls.
type Tag struct {
	ID          string  `json:"id" example:"tag_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name        string  `json:"name" doc:"In lower case"`
	Color       *string `json:"color" example:"#0a84ff"`
	Description *string `json:"description"`
	Uses        int     `json:"uses" doc:"Calls that have it"`
	CreatedAt   db.Time `json:"created_at"`
}

// Revision returns the version of a tag for its ETag. The number of uses is not part of it.
func (t Tag) Revision() string {
	return strings.Join([]string{t.ID, t.Name, stringOrEmpty(t.Color), stringOrEmpty(t.Description)}, "\n")
}

// The limits of tags.
const (
	maxTags       = 20 // per call
	maxTagsOfOrg  = 5000
	maxTagName    = 40
	maxTagComment = 500
)

// tagName normalises a name: lower case, single spaces, no space at the ends.
func tagName(text string) string {
	return strings.ToLower(strings.Join(strings.Fields(text), " "))
}

// wrongName returns the violations of a tag's name. Quotes, backslashes and commas are refused, because they would be
// ambiguous in lists.
func wrongName(field, name string) []op.Violation {
	if n := utf8.RuneCountInString(name); n < 1 || n > maxTagName {
		return []op.Violation{op.Field(field, "invalid_length", "must have 1 to 40 characters")}
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r) ||
			strings.ContainsRune(`"\,<>&/`, r)
	}) {
		return []op.Violation{op.Field(field, "invalid_value",
			"letters, digits, spaces and most signs, but no quotes, backslash, slash, comma, <, > or &")}
	}
	return nil
}

var colorForm = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

func wrongTag(t Tag) []op.Violation {
	wrong := wrongName("name", t.Name)
	if t.Color != nil && !colorForm.MatchString(*t.Color) {
		wrong = append(wrong, op.Field("color", "invalid_value", "must be # and six hexadecimal digits"))
	}
	if t.Description != nil && utf8.RuneCountInString(*t.Description) > maxTagComment {
		wrong = append(wrong, op.Field("description", "too_long", "at most 500 characters"))
	}
	return wrong
}

// setTags replaces the tags of a call. Unknown tags are created. The transaction must hold the lock on the call's
// row.
func (s *Service) setTags(ctx context.Context, tx db.Querier, org, callID string, names []string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM call_tags WHERE org_id = $1 AND call_id = $2`, org, callID); err != nil {
		return fmt.Errorf("tag call: %w", err)
	}
	for _, name := range names {
		id, err := s.tagID(ctx, tx, org, name)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO call_tags (org_id, call_id, tag_id) VALUES ($1, $2, $3)`, org, callID, id); err != nil {
			return fmt.Errorf("tag call: %w", err)
		}
	}
	_, err := tx.Exec(ctx, `UPDATE calls SET tags = $3 WHERE org_id = $1 AND id = $2`, org, callID, db.AsJSON(names))
	return err
}

// tagID returns the id of the tag with the name, and creates it if it does not exist.
func (s *Service) tagID(ctx context.Context, tx db.Querier, org, name string) (id string, err error) {
	const find = `SELECT id FROM tags WHERE org_id = $1 AND name = $2`
	if err = tx.QueryRow(ctx, find, org, name).Scan(&id); !db.IsNone(err) {
		return id, err
	}
	if err := roomForTag(ctx, tx, org); err != nil {
		return "", err
	}
	const q = `INSERT INTO tags (org_id, id, name, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (org_id, name) DO NOTHING`
	if _, err := tx.Exec(ctx, q, org, db.NewID("tag"), name, db.At(s.Now())); err != nil {
		return "", fmt.Errorf("make tag: %w", err)
	}
	err = tx.QueryRow(ctx, find, org, name).Scan(&id)
	return id, err
}

func roomForTag(ctx context.Context, tx db.Querier, org string) error {
	var n int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM tags WHERE org_id = $1`, org).Scan(&n); err != nil {
		return err
	}
	if n >= maxTagsOfOrg {
		return op.Fail("plan_limit", fmt.Sprintf("an organisation has at most %d tags", maxTagsOfOrg))
	}
	return nil
}

const tagColumns = `id, name, color, description, created_at,
	(SELECT count(*) FROM call_tags u WHERE u.org_id = tags.org_id AND u.tag_id = tags.id)`

func scanTag(r row) (t Tag, err error) {
	var color, description db.Null
	err = r.Scan(&t.ID, &t.Name, &color, &description, &t.CreatedAt, &t.Uses)
	t.Color, t.Description = color.Ptr(), description.Ptr()
	return t, err
}

func getTag(ctx context.Context, q db.Querier, org, id string) (Tag, error) {
	t, err := scanTag(q.QueryRow(ctx, `SELECT `+tagColumns+` FROM tags WHERE org_id = $1 AND id = $2`, org, id))
	if db.IsNone(err) {
		return t, op.NotFound("tag")
	}
	return t, err
}

// changeTags applies change to the tags of a call in any state, and returns the new tags.
func (s *Service) changeTags(ctx context.Context, callID string, change func(have []string) ([]string, error)) (tags []string, err error) {
	org := access.Org(ctx)
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		// the write locks the row, so that concurrent changes of the same tags are serialised
		if _, err := tx.Exec(ctx, `UPDATE calls SET tags = tags WHERE org_id = $1 AND id = $2`, org, callID); err != nil {
			return err
		}
		c, err := getCall(ctx, tx, org, callID)
		if db.IsNone(err) {
			return op.NotFound("call")
		}
		if err != nil {
			return err
		}
		if tags, err = change(slices.Clone(c.Tags)); err != nil || slices.Equal(tags, c.Tags) {
			return err
		}
		return s.setTags(ctx, tx, org, callID, tags)
	})
	return tags, err
}
