package user

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/limit"
	"soniq/internal/platform/op"
)

// What a console keeps for a user, such as columns, thresholds and saved searches. The server stores it as it comes and reads nothing
// in it.

const preferencesAbout = "Any JSON object of at most 32 kB. The whole object is replaced: send If-Match with the ETag that was read, " +
	"so that two windows do not overwrite each other. The object is removed with the user."

// Preferences is an object whose members the console chooses.
type Preferences map[string]json.RawMessage

// Schema returns the schema of an object with any members.
func (Preferences) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// Preferences returns the preferences of the credential's user: an empty object if none were stored.
func (s *Service) Preferences(ctx context.Context, _ *struct{}) (*op.Out[Preferences], error) {
	p, _ := access.From(ctx)
	stored, err := preferences(ctx, s.db.Read(ctx), p.OrgID, p.UserID)
	if err != nil {
		return nil, wrapError(err, "read preferences")
	}
	return op.OK(stored)
}

// PreferencesIn is the input of SetPreferences.
type PreferencesIn struct{ Body Preferences }

// SetPreferences replaces the preferences of the credential's user.
func (s *Service) SetPreferences(ctx context.Context, in *PreferencesIn) (*op.Out[Preferences], error) {
	p, _ := access.From(ctx)
	text, err := compact(in.Body)
	if err != nil {
		return nil, fmt.Errorf("encode preferences: %w", err)
	}
	if len(text) > limit.Preferences.Int() {
		limit.Preferences.Refuse()
		return nil, op.Fail("payload_too_large", fmt.Sprintf("preferences may have %s as compact JSON, these have %d bytes; remove some",
			limit.Preferences, len(text)))
	}
	err = s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if _, err := s.Get(ctx, tx, p.OrgID, p.UserID); err != nil {
			return notFound(err)
		}
		return wrapError(storePreferences(ctx, tx, p.OrgID, p.UserID, text, db.At(s.now())), "store preferences")
	})
	if err != nil {
		return nil, err
	}
	return s.Preferences(ctx, nil)
}

// compact returns preferences as JSON without spaces and without escapes for HTML.
func compact(p Preferences) (string, error) {
	if p == nil {
		return "{}", nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(p)
	return string(bytes.TrimSpace(b.Bytes())), err
}

// preferences returns the stored preferences of a user.
func preferences(ctx context.Context, q db.Querier, org, user string) (Preferences, error) {
	var stored db.JSON[Preferences]
	err := q.QueryRow(ctx, `SELECT preferences FROM user_preferences WHERE org_id = $1 AND user_id = $2`, org, user).Scan(&stored)
	if db.IsNone(err) || err == nil && stored.V == nil {
		return Preferences{}, nil
	}
	return stored.V, err
}

func storePreferences(ctx context.Context, q db.Querier, org, user, text string, now db.Time) error {
	const statement = `INSERT INTO user_preferences (org_id, user_id, preferences, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (org_id, user_id) DO UPDATE SET preferences = excluded.preferences, updated_at = excluded.updated_at`
	_, err := q.Exec(ctx, statement, org, user, text, now)
	return err
}

func dropPreferences(ctx context.Context, q db.Querier, org, user string) error {
	_, err := q.Exec(ctx, `DELETE FROM user_preferences WHERE org_id = $1 AND user_id = $2`, org, user)
	return err
}
