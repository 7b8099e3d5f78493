package sms

import (
	"cmp"
	"context"
	"slices"

	"soniq/internal/platform/db"
)

// History selects messages by the other party's numbers.
type History struct {
	Numbers      []string
	Since, Until db.Time
	Before       db.Time // with BeforeID: only messages before this position
	BeforeID     string
	Limit        int
}

// History returns messages with the given numbers, newest first. If there are more than the limit, it returns one
// more than the limit.
func (s *Service) History(ctx context.Context, org string, h History) ([]Message, error) {
	if len(h.Numbers) == 0 {
		return nil, nil
	}
	var all []Message
	for _, side := range []struct{ direction, column string }{{inbound, "from_number"}, {outbound, "to_number"}} {
		f := h.directionFilter(org, side.direction, side.column)
		some, err := queryMessages(ctx, s.cfg.DB.Read(ctx), f.Page("created_at", true, h.Before, h.BeforeID, h.Limit))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b Message) int {
		return -cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(len(all), h.Limit+1)], nil
}

// directionFilter returns the statement for one direction.
func (h History) directionFilter(org, direction, column string) *db.Filter {
	return db.Where(`SELECT `+columns+` FROM messages WHERE org_id = $1`, org).Equal("direction", direction).In(column, h.Numbers).
		Between("created_at", h.Since, h.Until)
}

// Peer returns the number of the other party.
func (m Message) Peer() string { return m.peer() }

// filterNumbers restricts a list to messages with one of the numbers; without numbers it finds nothing.
func filterNumbers(f *db.Filter, numbers []string) {
	if len(numbers) == 0 {
		f.And("1 = 0")
		return
	}
	marks, values := "?", make([]any, 0, 2*len(numbers))
	for i := range numbers {
		if i > 0 {
			marks += ", ?"
		}
	}
	for range 2 {
		for _, n := range numbers {
			values = append(values, n)
		}
	}
	f.And("direction = 'inbound' AND from_number IN ("+marks+") OR direction = 'outbound' AND to_number IN ("+marks+")", values...)
}
