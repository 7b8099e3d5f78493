package contact

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/number"
)

// Item is an event in the timeline of a contact.
type Item struct {
	Kind         string  `json:"kind" enum:"call,message,voicemail,note"`
	ID           string  `json:"id" doc:"Of the call, message, voicemail or note"`
	At           db.Time `json:"at"`
	Phone        *string `json:"phone"`
	Direction    *string `json:"direction" enum:"inbound,outbound,internal"`
	Status       *string `json:"status"`
	Text         *string `json:"text" doc:"Summary of a call, words of a message (with sms:read), voicemail or note"`
	TalkSeconds  *int    `json:"talk_duration_seconds"`
	Agent        *Person `json:"agent"`
	CallID       *string `json:"call_id"`
	RecordingURL *string `json:"recording_url"`
	Conversation *string `json:"conversation_id" doc:"Of a message"`
}

// Person is a user, or the author of a note.
type Person struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// TimelineQuery selects the items of a contact: at most Limit+1 items of the given kinds, newest first, after a
// position.
type TimelineQuery struct {
	Contact      Contact
	Numbers      []string // complete numbers of the contact
	Kinds        []string
	Since, Until db.Time
	Before       db.Time // zero: from the newest on
	BeforeID     string
	Limit        int
}

// Wants reports whether a kind is selected.
func (q TimelineQuery) Wants(kind string) bool {
	return len(q.Kinds) == 0 || slices.Contains(q.Kinds, kind)
}

// TimelineIn is the request of contacts.timeline.
type TimelineIn struct {
	OneIn
	op.Paging
	op.Span
	Kinds []string `query:"kinds" enum:"call,message,voicemail,note" doc:"Only these"`
}

// Timeline returns the calls, messages, voicemails and notes of a contact, newest first.
func (s *Service) Timeline(ctx context.Context, in *TimelineIn) (*op.Out[op.Page[Item]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	since, until, err := in.Times()
	if err != nil {
		return nil, err
	}
	c, err := s.find(ctx, s.cfg.DB.Read(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	q := TimelineQuery{Contact: c, Numbers: number.AllSpellings(c.numbers()), Kinds: in.Kinds, Since: since, Until: until,
		BeforeID: after.ID, Limit: in.Limit}
	if after.ID != "" {
		if err := q.Before.Scan(after.Int); err != nil {
			return nil, err
		}
	}
	all, err := s.items(ctx, q)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Item) int { return -cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(a.ID, b.ID)) })
	all = all[:min(len(all), in.Limit+1)]
	page := op.Paged(ctx, in.Paging, all, func(i Item) op.Position { return op.Position{Int: i.At.UnixMicro(), ID: i.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) {
		q.Before, q.BeforeID, q.Limit = db.Time{}, "", maxCountedItems
		all, err := s.items(ctx, q)
		return len(all), err
	})
}

// maxCountedItems bounds the counted items of each source.
const maxCountedItems = 10_000

// items returns the items of all sources, unsorted.
func (s *Service) items(ctx context.Context, q TimelineQuery) ([]Item, error) {
	all, err := s.noteItems(ctx, access.Org(ctx), q)
	if err != nil {
		return nil, err
	}
	for _, source := range s.cfg.Timeline {
		some, err := source.TimelineItems(ctx, access.Org(ctx), q)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// numbers returns the complete numbers of a contact.
func (c Contact) numbers() []string {
	var all []string
	for _, p := range c.Phones {
		if len(p.Number) > 0 && p.Number[0] == '+' {
			all = append(all, p.Number)
		}
	}
	return all
}

func (s *Service) noteItems(ctx context.Context, org string, q TimelineQuery) ([]Item, error) {
	if !q.Wants("note") {
		return nil, nil
	}
	f := db.Where(`SELECT `+noteColumns+` FROM contact_notes WHERE org_id = $1`, org).Equal("contact_id",
		q.Contact.ID).Between("created_at", q.Since, q.Until)
	text, args := f.Page("created_at", true, q.Before, q.BeforeID, q.Limit).SQL()
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list notes of contact: %w", err)
	}
	defer rows.Close()
	var all []Item
	for rows.Next() {
		n, err := scanNote(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, Item{Kind: "note", ID: n.ID, At: n.CreatedAt, Text: &n.Body,
			Agent: &Person{ID: n.Author.ID, Name: n.Author.Name}})
	}
	return all, rows.Err()
}

// NumbersOf returns the complete numbers of a contact in all their spellings; none if there is no such contact.
func (s *Service) NumbersOf(ctx context.Context, org, id string) ([]string, error) {
	c, err := getContact(ctx, s.cfg.DB.Read(ctx), org, id)
	if db.IsNone(err) {
		return nil, nil
	}
	return number.AllSpellings(c.numbers()), err
}
