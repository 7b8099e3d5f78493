package user

import (
	"cmp"
	"context"
	"fmt"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
)

func insert(ctx context.Context, q db.Querier, u User) error {
	const text = `INSERT INTO users (org_id, id, email, first_name, last_name, role, status, extension, outbound_number_id,
			dnd, dnd_until, timezone, language, skills, ring_strategy, forward, voicemail, recording_mode, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`
	if _, err := q.Exec(ctx, text, append(u.values(), u.CreatedAt, u.UpdatedAt)...); err != nil {
		return err
	}
	return org.SetExtension(ctx, q, u.OrgID, u.ID, u.extension())
}

func update(ctx context.Context, q db.Querier, u User) error {
	const text = `UPDATE users SET email = $3, first_name = $4, last_name = $5, role = $6, status = $7, extension = $8,
			outbound_number_id = $9, dnd = $10, dnd_until = $11, timezone = $12, language = $13, skills = $14,
			ring_strategy = $15, forward = $16, voicemail = $17, recording_mode = $18, updated_at = $19
		WHERE org_id = $1 AND id = $2`
	if _, err := q.Exec(ctx, text, append(u.values(), u.UpdatedAt)...); err != nil {
		return err
	}
	return org.SetExtension(ctx, q, u.OrgID, u.ID, u.extension())
}

func (u User) extension() string {
	if u.Extension == nil {
		return ""
	}
	return *u.Extension
}

// values returns the values of the first eighteen columns.
func (u User) values() []any {
	return []any{u.OrgID, u.ID, u.Email, u.FirstName, u.LastName, u.Role, u.Status, u.Extension, u.OutboundNumberID,
		u.DND.Enabled, u.DND.Until, u.Timezone, u.Language, db.AsJSON(u.Skills), u.RingStrategy, db.AsJSON(u.Forward),
		db.AsJSON(u.Voicemail), u.RecordingMode}
}

const userColumns = `org_id, id, email, first_name, last_name, role, status, extension, outbound_number_id, dnd, dnd_until,
	timezone, language, skills, ring_strategy, forward, voicemail, recording_mode, created_at, updated_at, last_seen_at`

func scan(scan func(...any) error) (User, error) {
	u := User{DirectNumberIDs: []string{}, QueueIDs: []string{}, Devices: []Device{}}
	var skills db.JSON[map[string]int]
	var forward db.JSON[Forward]
	var voicemail db.JSON[Voicemail]
	err := scan(&u.OrgID, &u.ID, &u.Email, &u.FirstName, &u.LastName, &u.Role, &u.Status, &u.Extension,
		&u.OutboundNumberID, &u.DND.Enabled, &u.DND.Until, &u.Timezone, &u.Language, &skills, &u.RingStrategy, &forward,
		&voicemail, &u.RecordingMode, &u.CreatedAt, &u.UpdatedAt, &u.LastSeenAt)
	voicemail.V.EmailAudio = cmp.Or(voicemail.V.EmailAudio, AudioAttached) // earlier versions wrote none
	u.Name, u.Skills, u.Forward, u.Voicemail = fullName(u.FirstName, u.LastName), skills.V, forward.V, voicemail.V
	return u, err
}

// get returns a user, including removed users.
func get(ctx context.Context, q db.Querier, org, id string) (User, error) {
	return scan(q.QueryRow(ctx, `SELECT `+userColumns+` FROM users WHERE org_id = $1 AND id = $2`, org, id).Scan)
}

// byExtension returns the user with an extension. Removed users have none.
func byExtension(ctx context.Context, q db.Querier, org, extension string) (User, error) {
	return scan(q.QueryRow(ctx, `SELECT `+userColumns+` FROM users WHERE org_id = $1 AND extension = $2`, org, extension).Scan)
}

// filter selects users for a list.
type filter struct {
	roles, statuses []string
	q               string
	after           string
	limit           int
}

// query returns the list statement without its page.
func (by filter) query(org string) *db.Filter {
	f := db.Where(`SELECT `+userColumns+` FROM users WHERE org_id = $1`, org).In("role", by.roles).In("status", by.statuses)
	if len(by.statuses) == 0 {
		f.And("status <> ?", Removed)
	}
	if by.q != "" {
		like := "%" + db.Escape(by.q) + "%"
		f.And(`lower(email) LIKE lower(?) ESCAPE '\' OR lower(first_name || ' ' || last_name) LIKE lower(?) ESCAPE '\' OR extension = ?`,
			like, like, by.q)
	}
	return f
}

func list(ctx context.Context, q db.Querier, org string, by filter) ([]User, error) {
	text, args := by.query(org).Page("id", false, by.after, by.after, by.limit).SQL()
	return queryUsers(ctx, q, "list users", text, args...)
}

// queryUsers reads users. doing says in errors what the query is for.
func queryUsers(ctx context.Context, q db.Querier, doing, text string, args ...any) ([]User, error) {
	var all []User
	err := db.ForEach(ctx, q, doing, text, args, func(read func(...any) error) error {
		u, err := scan(read)
		all = append(all, u)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Names returns the names of users that are not removed, most recently seen first, at most the given number.
func (s *Service) Names(ctx context.Context, org string, most int) ([]string, error) {
	const text = `SELECT first_name, last_name FROM users WHERE org_id = $1 AND status <> 'removed'
		ORDER BY COALESCE(last_seen_at, 0) DESC, id LIMIT $2`
	rows, err := s.db.Read(ctx).Query(ctx, text, org, most)
	if err != nil {
		return nil, fmt.Errorf("find names of users: %w", err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var first, last string
		if err := rows.Scan(&first, &last); err != nil {
			return nil, fmt.Errorf("find names of users: %w", err)
		}
		names = append(names, fullName(first, last))
	}
	return names, rows.Err()
}

// numbersOf returns the ids of the numbers that ring each user.
func numbersOf(ctx context.Context, q db.Querier, org string, users []string) (map[string][]string, error) {
	f := db.Where(`SELECT user_id, id FROM numbers WHERE org_id = $1 AND status <> 'released'`, org).In("user_id", users)
	text, args := f.SQL()
	rows, err := q.Query(ctx, text+` ORDER BY id`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string][]string{}
	for rows.Next() {
		var user db.Null
		var id string
		if err := rows.Scan(&user, &id); err != nil {
			return nil, err
		}
		found[string(user)] = append(found[string(user)], id)
	}
	return found, rows.Err()
}

// ownsNumber reports whether the organisation has the number.
func ownsNumber(ctx context.Context, q db.Querier, org, id string) (bool, error) {
	const text = `SELECT EXISTS (SELECT 1 FROM numbers WHERE org_id = $1 AND id = $2 AND status = 'active')`
	var ok bool
	err := q.QueryRow(ctx, text, org, id).Scan(&ok)
	return ok, err
}

// ownsAudio reports whether the organisation has the audio file.
func ownsAudio(ctx context.Context, q db.Querier, org, id string) (ok bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM audio WHERE org_id = $1 AND id = $2)`, org, id).Scan(&ok)
	return ok, err
}

// clearOutboundNumber removes the number as the caller ID of all users.
func clearOutboundNumber(ctx context.Context, q db.Querier, org, number string) error {
	const text = `UPDATE users SET outbound_number_id = NULL WHERE org_id = $1 AND outbound_number_id = $2`
	_, err := q.Exec(ctx, text, org, number)
	return err
}

func clearOutboundNumbers(ctx context.Context, q db.Querier, org string) error {
	_, err := q.Exec(ctx, `UPDATE users SET outbound_number_id = NULL WHERE org_id = $1 AND outbound_number_id IS NOT NULL`, org)
	return err
}

// replaceInvitation stores an invitation and deletes earlier ones of the user.
func replaceInvitation(ctx context.Context, q db.Querier, u User, id, digest string, token []byte, now, until db.Time) error {
	if _, err := q.Exec(ctx, `DELETE FROM invitations WHERE org_id = $1 AND user_id = $2 AND accepted_at IS NULL`, u.OrgID,
		u.ID); err != nil {
		return err
	}
	const text = `INSERT INTO invitations (org_id, id, user_id, digest, token, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	_, err := q.Exec(ctx, text, u.OrgID, id, u.ID, digest, token, now, until)
	return err
}

// invitedUser returns the organisation and the user of a token.
func invitedUser(ctx context.Context, q db.Querier, digest string, now db.Time) (org, user string, err error) {
	// tenant: the token identifies its organisation
	const text = `SELECT org_id, user_id FROM invitations WHERE digest = $1 AND accepted_at IS NULL AND expires_at > $2`
	err = q.QueryRow(ctx, text, digest, now).Scan(&org, &user)
	return org, user, err
}

func acceptInvitation(ctx context.Context, q db.Querier, org, user, digest string, now db.Time) error {
	const text = `UPDATE invitations SET accepted_at = $4, token = NULL WHERE org_id = $1 AND user_id = $2 AND digest = $3`
	_, err := q.Exec(ctx, text, org, user, digest, now)
	return err
}

// invitation returns the user of an invitation, and its sealed token until it was sent.
func invitation(ctx context.Context, q db.Querier, org, id string) (user string, token []byte, err error) {
	const text = `SELECT user_id, token FROM invitations WHERE org_id = $1 AND id = $2 AND accepted_at IS NULL`
	err = q.QueryRow(ctx, text, org, id).Scan(&user, &token)
	return user, token, err
}

func invitationSent(ctx context.Context, q db.Querier, org, id string, now db.Time) error {
	_, err := q.Exec(ctx, `UPDATE invitations SET token = NULL, sent_at = $3 WHERE org_id = $1 AND id = $2`, org, id, now)
	return err
}

func dropInvitations(ctx context.Context, q db.Querier, org, user string) error {
	_, err := q.Exec(ctx, `DELETE FROM invitations WHERE org_id = $1 AND user_id = $2`, org, user)
	return err
}

// recordSeen stores that a phone of a user registered. An invited user becomes active.
func recordSeen(ctx context.Context, q db.Querier, org, device string, now db.Time) error {
	const text = `UPDATE users SET last_seen_at = $3, status = CASE WHEN status = 'invited' THEN 'active' ELSE status END
		WHERE org_id = $1 AND id = (SELECT user_id FROM devices WHERE org_id = $1 AND id = $2)`
	_, err := q.Exec(ctx, text, org, device, now)
	return err
}

func countUsers(ctx context.Context, q db.Querier, org string) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT COUNT(*) FROM users WHERE org_id = $1 AND status <> 'removed'`, org).Scan(&n)
	return n, err
}

// ForwardingTo returns the ids of users who forward calls to a destination, at most 100.
func (s *Service) ForwardingTo(ctx context.Context, q db.Querier, org, to string) (ids []string, err error) {
	const text = `SELECT id FROM users WHERE org_id = $1 AND status <> 'removed' AND forward LIKE $2 ORDER BY id LIMIT 100`
	err = db.ForEach(ctx, q, "find users who forward", text, []any{org, `%"` + to + `"%`}, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}
