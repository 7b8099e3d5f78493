package call

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Outside is the number outside that a call is with; "" for calls between extensions and withheld callers.
func outside(d Direction, from, to string) string {
	switch {
	case d == Inbound && from != Anonymous:
		return from
	case d == Outbound:
		return to
	}
	return ""
}

// Number is the number outside that the call is with; "" where there is none.
func (c Call) Number() string { return outside(c.Direction, c.FromNumber, c.ToNumber) }

// Number is the number outside that the call was with; "" where there is none.
func (r CDR) Number() string { return outside(r.Direction, r.FromNumber, r.ToNumber) }

// contactOf is whose call it is, as far as is known now.
func (s *Service) contactOf(ctx context.Context, n New) *event.Contact {
	number := outside(n.Direction, n.From, n.To)
	if s.Contact == nil || number == "" {
		return nil
	}
	return s.Contact(ctx, n.Org, number)
}

func contactID(c *event.Contact) db.Null {
	if c == nil {
		return ""
	}
	return db.Null(c.ID)
}

func contactText(c *event.Contact) any {
	if c == nil {
		return nil
	}
	return db.AsJSON(c)
}

// Known writes down whose call it is, where that turned out later; the name of the caller too where the caller sent none.
func (s *Service) Known(ctx context.Context, org, id string, c event.Contact) error {
	const q = `UPDATE calls SET contact_id = $3, contact = $4,
			from_name = CASE WHEN direction = 'inbound' THEN COALESCE(from_name, $5) ELSE from_name END
		WHERE org_id = $1 AND id = $2 AND contact IS NULL`
	err := s.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, q, org, id, contactID(&c), contactText(&c), db.Null(c.Name))
		return err
	})
	if err != nil {
		return fmt.Errorf("write whose call %s is: %w", id, err)
	}
	return nil
}

// MergeContact makes the calls of one contact those of another.
func (s *Service) MergeContact(ctx context.Context, tx db.Querier, org, from string, into event.Contact) error {
	const q = `UPDATE calls SET contact_id = $3, contact = $4 WHERE org_id = $1 AND contact_id = $2`
	if _, err := tx.Exec(ctx, q, org, from, contactID(&into), contactText(&into)); err != nil {
		return fmt.Errorf("merge calls of contact: %w", err)
	}
	return nil
}

// ForgetContact takes a contact off its calls.
func (s *Service) ForgetContact(ctx context.Context, tx db.Querier, org, id string) error {
	const q = `UPDATE calls SET contact_id = NULL, contact = NULL WHERE org_id = $1 AND contact_id = $2`
	if _, err := tx.Exec(ctx, q, org, id); err != nil {
		return fmt.Errorf("forget contact of calls: %w", err)
	}
	return nil
}

// History narrows calls to those with a contact: by its numbers, and by what is written on the call.
type History struct {
	Contact      string
	Numbers      []string
	Since, Until db.Time
	Before       db.Time // with BeforeID: only calls that began before this one
	BeforeID     string
	Limit        int
}

// History lists calls with a contact, newest first, one more than the limit where there are more.
func (s *Service) History(ctx context.Context, org string, h History) ([]Call, error) {
	sides := []func(*db.Filter){}
	if len(h.Numbers) > 0 {
		sides = append(sides, func(f *db.Filter) { f.In("from_number", h.Numbers).Equal("direction", string(Inbound)) },
			func(f *db.Filter) { f.In("to_number", h.Numbers).Equal("direction", string(Outbound)) })
	}
	if h.Contact != "" {
		sides = append(sides, func(f *db.Filter) { f.Equal("contact_id", h.Contact) })
	}
	var all []Call
	for _, side := range sides {
		f := db.Where(`SELECT `+columns+` FROM calls WHERE org_id = $1`, org)
		side(f)
		found, err := query(ctx, s.DB.Read(ctx), f.Between("started_at", h.Since, h.Until).Page("started_at", true, h.Before, h.BeforeID, h.Limit))
		if err != nil {
			return nil, err
		}
		all = merge(all, found, "started_at", true, 3*(h.Limit+1))
	}
	all = slices.CompactFunc(all, func(a, b Call) bool { return a.ID == b.ID })
	all = all[:min(len(all), h.Limit+1)]
	for i := range all {
		s.address(&all[i])
	}
	return all, nil
}

// Earlier tells how many calls there were with a number, and the last of them that is not the given one; nil where there is none.
func (s *Service) Earlier(ctx context.Context, org, number, but string) (total int, last *Call, err error) {
	const q = `SELECT count(*) FROM calls WHERE org_id = $1 AND direction <> 'internal' AND id <> $3 AND (from_number = $2 OR to_number = $2)`
	if err := s.DB.Read(ctx).QueryRow(ctx, q, org, number, but).Scan(&total); err != nil {
		return 0, nil, fmt.Errorf("count calls with a number: %w", err)
	}
	if total == 0 {
		return 0, nil, nil
	}
	calls, err := s.History(ctx, org, History{Numbers: []string{number}, Limit: 1})
	for i := range calls {
		if calls[i].ID != but {
			return total, &calls[i], err
		}
	}
	return total, nil, err
}

// Find returns a call of an organisation, or db.ErrNone.
func (s *Service) Find(ctx context.Context, org, id string) (Call, error) {
	return get(ctx, s.DB.Read(ctx), org, id)
}

// Shown is Find with the address of the recording, as the API shows it.
func (s *Service) Shown(ctx context.Context, org, id string) (Call, error) {
	c, err := s.Find(ctx, org, id)
	s.address(&c)
	return c, err
}

// A Way is what a call came by. Ids are empty where there is none.
type Way struct {
	Direction         Direction
	NumberID, QueueID string
}

// Way tells what a call of an organisation came by, or db.ErrNone. It is asked while telephones ring.
func (s *Service) Way(ctx context.Context, org, id string) (w Way, err error) {
	const q = `SELECT direction, number_id, queue_id FROM calls WHERE org_id = $1 AND id = $2`
	err = s.DB.Read(ctx).QueryRow(ctx, q, org, id).Scan(&w.Direction, (*db.Null)(&w.NumberID), (*db.Null)(&w.QueueID))
	return w, err
}

// Agent is the user who was connected last; nil where nobody was.
func (c Call) Agent() *Agent { return c.record().Agent }
