package sms

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
)

// Conversation is the set of messages between a number of the organisation and another number.
type Conversation struct {
	ID            string         `json:"id" example:"thr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	NumberID      *string        `json:"number_id" doc:"Null for messages between telephones of the organisation"`
	OrgNumber     string         `json:"org_number"`
	PeerNumber    string         `json:"peer_number"`
	Contact       *event.Contact `json:"contact"`
	Status        string         `json:"status" enum:"open,snoozed,closed"`
	AssigneeID    *string        `json:"assignee_id"`
	UnreadCount   int            `json:"unread_count"`
	OptedOut      bool           `json:"opted_out"`
	LastMessage   LastMessage    `json:"last_message"`
	LastMessageAt db.Time        `json:"last_message_at"`
	Tags          []string       `json:"tags" nullable:"false"`
	CreatedAt     db.Time        `json:"created_at"`

	org       string
	updatedAt db.Time
}

// LastMessage is the newest message of a conversation.
type LastMessage struct {
	ID        string  `json:"id"`
	Direction string  `json:"direction" enum:"inbound,outbound"`
	Body      string  `json:"body"`
	At        db.Time `json:"at"`
}

func (m Message) asLast() LastMessage {
	return LastMessage{ID: m.ID, Direction: m.Direction, Body: m.Body, At: m.CreatedAt}
}

// addToConversation adds a message to its conversation and creates it if there is none. An inbound message opens the
// conversation again.
func (s *Service) addToConversation(ctx context.Context, tx db.Querier, m *Message, numberID string) error {
	unread := 0
	if m.Direction == inbound {
		unread = 1
	}
	peer, err := s.conversationPeer(ctx, tx, *m)
	if err != nil {
		return err
	}
	const q = `INSERT INTO conversations (org_id, id, number_id, org_number, peer_number, status, unread_count, tags, last_message,
			last_message_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, 'open', $6, '[]', $7, $8, $8, $8)
		ON CONFLICT (org_id, org_number, peer_number) DO UPDATE SET number_id = $3, last_message = $7, last_message_at = $8,
			updated_at = $8, unread_count = conversations.unread_count + $6,
			status = CASE WHEN $6 = 1 THEN 'open' ELSE conversations.status END
		RETURNING id`
	err = tx.QueryRow(ctx, q, m.org, db.NewID("thr"), db.Null(numberID), m.ownNumber(), peer, unread, db.AsJSON(m.asLast()),
		m.CreatedAt).Scan(&m.ConversationID)
	if err != nil {
		return fmt.Errorf("put message into its conversation: %w", err)
	}
	return nil
}

const conversationColumns = `org_id, id, number_id, org_number, peer_number, status, assignee_id, unread_count, tags, last_message,
	last_message_at, created_at, updated_at`

func scanConversation(scan func(...any) error) (Conversation, error) {
	var c Conversation
	var tags db.JSON[[]string]
	var last db.JSON[LastMessage]
	err := scan(&c.org, &c.ID, &c.NumberID, &c.OrgNumber, &c.PeerNumber, &c.Status, &c.AssigneeID, &c.UnreadCount, &tags, &last,
		&c.LastMessageAt, &c.CreatedAt, &c.updatedAt)
	c.Tags, c.LastMessage = append([]string{}, tags.V...), last.V
	return c, err
}

// addDetails sets the fields that come from opt-outs and contacts.
func (s *Service) addDetails(ctx context.Context, q db.Querier, c *Conversation) (err error) {
	c.OptedOut, err = s.isOptedOut(ctx, q, c.org, deref(c.NumberID), c.PeerNumber)
	c.Contact = s.cfg.Contacts.LookupContact(ctx, c.org, c.PeerNumber)
	return err
}

func (s *Service) conversation(ctx context.Context, q db.Querier, org, id string) (Conversation, error) {
	c, err := scanConversation(q.QueryRow(ctx, `SELECT `+conversationColumns+` FROM conversations WHERE org_id = $1 AND id = $2`, org,
		id).Scan)
	if db.IsNone(err) {
		return c, op.NotFound("conversation")
	}
	if err != nil {
		return c, fmt.Errorf("get conversation: %w", err)
	}
	return c, s.addDetails(ctx, q, &c)
}

// ConversationsIn is the request for a page of conversations.
type ConversationsIn struct {
	op.Paging
	Status     []string `query:"status" enum:"open,snoozed,closed"`
	AssigneeID string   `query:"assignee_id" maxLength:"40"`
	Unread     string   `query:"unread" enum:"true,false" doc:"With messages nobody has read, or without"`
	NumberID   string   `query:"number_id" maxLength:"40"`
	Q          string   `query:"q" maxLength:"120" doc:"Part of the other side's number or of the last message"`
	Sort       string   `query:"sort" enum:"-last_message_at,last_message_at" default:"-last_message_at"`
}

func (in ConversationsIn) filter(org string) *db.Filter {
	f := db.Where(`SELECT `+conversationColumns+` FROM conversations WHERE org_id = $1`, org).In("status", in.Status).
		Equal("assignee_id", in.AssigneeID).Equal("number_id", in.NumberID)
	switch in.Unread {
	case "true":
		f.And("unread_count > 0")
	case "false":
		f.And("unread_count = 0")
	}
	if in.Q != "" {
		like := "%" + strings.ToLower(db.Escape(strings.TrimSpace(in.Q))) + "%"
		f.And(`peer_number LIKE ? ESCAPE '\' OR lower(last_message) LIKE ? ESCAPE '\'`, like, like)
	}
	return f
}

// Conversations lists conversations, the one with the newest message first.
func (s *Service) Conversations(ctx context.Context, in *ConversationsIn) (*op.Out[op.Page[Conversation]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	text, args := in.filter(org).Page("last_message_at", strings.HasPrefix(in.Sort, "-"), after.Int, after.ID, in.Limit).SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	var all []Conversation
	for rows.Next() {
		c, err := scanConversation(rows.Scan)
		if err != nil {
			rows.Close()
			return nil, err
		}
		all = append(all, c)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i := range all {
		if err := s.addDetails(ctx, q, &all[i]); err != nil {
			return nil, err
		}
	}
	page := op.Paged(ctx, in.Paging, all, func(c Conversation) op.Position {
		return op.Position{Int: c.LastMessageAt.UnixMicro(), ID: c.ID}
	})
	return op.WithTotal(page, in.Paging, func() (int, error) { return in.filter(org).Count(ctx, q) })
}

// OneConversation has the id of a conversation.
type OneConversation struct {
	ID string `path:"id" maxLength:"40" example:"thr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// GetConversation returns one conversation.
func (s *Service) GetConversation(ctx context.Context, in *OneConversation) (*op.Out[Conversation], error) {
	c, err := s.conversation(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return op.Versioned(c, c.updatedAt)
}

// UpdateConversationIn is the request to change a conversation.
type UpdateConversationIn struct {
	OneConversation
	op.Match
	Body ConversationPatch
}

// ConversationPatch is a merge patch (RFC 7396) of a conversation.
type ConversationPatch struct {
	Status     op.Change[string]   `json:"status,omitzero"`
	AssigneeID op.Change[string]   `json:"assignee_id,omitzero"`
	Read       op.Change[bool]     `json:"read,omitzero" doc:"True: nothing in it is unread any more; false: the last message is"`
	Tags       op.Change[[]string] `json:"tags,omitzero"`
}

// UpdateConversation changes the assignee, status, tags and unread count of a conversation.
func (s *Service) UpdateConversation(ctx context.Context, in *UpdateConversationIn) (*op.Out[Conversation], error) {
	var c Conversation
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if c, err = s.conversation(ctx, tx, access.Org(ctx), in.ID); err != nil {
			return err
		}
		if err := in.Check(c.updatedAt); err != nil {
			return err
		}
		if err := s.applyPatch(ctx, &c, in.Body); err != nil {
			return err
		}
		const q = `UPDATE conversations SET status = $3, assignee_id = $4, unread_count = $5, tags = $6, updated_at = $7
			WHERE org_id = $1 AND id = $2`
		if _, err := tx.Exec(ctx, q, c.org, c.ID, c.Status, c.AssigneeID, c.UnreadCount, db.AsJSON(c.Tags), c.updatedAt); err != nil {
			return fmt.Errorf("change conversation: %w", err)
		}
		return s.cfg.Outbox.Publish(ctx, tx, c.org, event.ConversationUpdated{ConversationID: c.ID, Status: c.Status,
			AssigneeID: c.AssigneeID, UnreadCount: c.UnreadCount, At: c.updatedAt})
	})
	if err != nil {
		return nil, err
	}
	return op.Versioned(c, c.updatedAt)
}

const maxTags, maxTagLength = 20, 40

// applyPatch applies a change, or returns every violation in it.
func (s *Service) applyPatch(ctx context.Context, c *Conversation, p ConversationPatch) error {
	var wrong []op.Violation
	if p.Status.Set {
		c.Status = p.Status.V
		if !slices.Contains([]string{"open", "snoozed", "closed"}, c.Status) {
			wrong = append(wrong, op.Field("status", "invalid_value", "must be open, snoozed or closed"))
		}
	}
	if p.AssigneeID.Set {
		c.AssigneeID = db.Null(p.AssigneeID.V).Ptr()
		if known, err := s.userExists(ctx, c.org, p.AssigneeID.V); err != nil {
			return err
		} else if !known {
			wrong = append(wrong, op.Field("assignee_id", "not_found", "no such user"))
		}
	}
	switch {
	case p.Read.Set && p.Read.V:
		c.UnreadCount = 0
	case p.Read.Set:
		c.UnreadCount = max(1, c.UnreadCount)
	}
	if p.Tags.Set {
		c.Tags = append([]string{}, slices.Compact(slices.Sorted(slices.Values(p.Tags.V)))...)
		wrong = append(wrong, checkTags(c.Tags)...)
	}
	if len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	c.updatedAt = db.At(s.cfg.Clock.Now())
	return nil
}

func checkTags(tags []string) (wrong []op.Violation) {
	if len(tags) > maxTags {
		wrong = append(wrong, op.Field("tags", "too_many", "at most 20 tags"))
	}
	for _, t := range tags {
		if n := len([]rune(t)); n == 0 || n > maxTagLength {
			return append(wrong, op.Field("tags", "invalid_length", "tags have 1 to 40 characters"))
		}
	}
	return wrong
}

func (s *Service) userExists(ctx context.Context, org, id string) (bool, error) {
	if id == "" {
		return true, nil
	}
	return s.cfg.Users.UserExists(ctx, org, id)
}

// ThreadIn is the request for a page of messages of a conversation.
type ThreadIn struct {
	OneConversation
	op.Paging
	Before string `query:"before" maxLength:"40" doc:"Only messages before this one, by its id"`
	Later  string `query:"after" maxLength:"40" doc:"Only messages after this one, by its id, oldest first"`
}

// Messages lists the messages of a conversation, newest first; those after a message oldest first.
func (s *Service) Messages(ctx context.Context, in *ThreadIn) (*op.Out[op.Page[Message]], error) {
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	if _, err := s.conversation(ctx, q, org, in.ID); err != nil {
		return nil, err
	}
	at, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	f, descending, err := s.threadFilter(ctx, q, org, in)
	if err != nil {
		return nil, err
	}
	all, err := queryMessages(ctx, q, f.Page("created_at", descending, at.Int, at.ID, in.Limit))
	if err != nil {
		return nil, err
	}
	return s.page(ctx, in.Paging, all, func() (int, error) {
		f, _, err := s.threadFilter(ctx, q, org, in)
		if err != nil {
			return 0, err
		}
		return f.Count(ctx, q)
	})
}

// threadFilter returns the statement for the requested part of a conversation, and the sort order.
func (s *Service) threadFilter(ctx context.Context, q db.Querier, org string, in *ThreadIn) (f *db.Filter, descending bool, err error) {
	f = db.Where(`SELECT `+columns+` FROM messages WHERE org_id = $1 AND conversation_id = $2`, org, in.ID)
	for _, end := range []struct{ field, id, condition string }{
		{"before", in.Before, "(created_at, id) < (?, ?)"}, {"after", in.Later, "(created_at, id) > (?, ?)"},
	} {
		if end.id == "" {
			continue
		}
		m, err := get(ctx, q, org, end.id)
		if db.IsNone(err) || err == nil && m.ConversationID != in.ID {
			return f, false, op.Invalid(op.Field(end.field, "not_found", "no such message in this conversation"))
		}
		if err != nil {
			return f, false, err
		}
		f.And(end.condition, m.CreatedAt, m.ID)
	}
	return f, in.Later == "", nil
}
