package call

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/visibility"
	"soniq/internal/telephony/number"
)

// externalNumber returns the external number of a call: the caller's if inbound, the callee's if outbound. It returns
// "" for internal calls and withheld callers.
func externalNumber(d Direction, from, to string) string {
	switch {
	case d == Inbound && from != Anonymous:
		return from
	case d == Outbound:
		return to
	}
	return ""
}

// ExternalNumber returns the external number of the call, or "" if there is none.
func (c Call) ExternalNumber() string { return externalNumber(c.Direction, c.FromNumber, c.ToNumber) }

// ExternalNumber returns the external number of the call, or "" if there is none.
func (r CDR) ExternalNumber() string { return externalNumber(r.Direction, r.FromNumber, r.ToNumber) }

// withContact returns the new call with the contact of its external number, if that is known without waiting. The contact's name becomes
// the caller's name of an inbound call that has none.
func (s *Service) withContact(ctx context.Context, n New) New {
	number := externalNumber(n.Direction, n.From, n.To)
	if s.cfg.Contacts == nil || number == "" {
		return n
	}
	n.contact = s.cfg.Contacts.LookupContact(ctx, n.Org, number)
	if n.contact != nil && n.Direction == Inbound {
		n.FromName = cmp.Or(n.FromName, n.contact.Name)
	}
	return n
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

// SetContact stores the contact of a call if the lookup finished after the call began. For inbound calls it sets the
// caller's name too, unless the caller sent one. A contact that is stored already stays.
func (s *Service) SetContact(ctx context.Context, org, id string, c event.Contact) error {
	const q = `UPDATE calls SET contact_id = $3, contact = $4,
			from_name = CASE WHEN direction = 'inbound' THEN COALESCE(from_name, $5) ELSE from_name END
		WHERE org_id = $1 AND id = $2 AND contact IS NULL`
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, q, org, id, contactID(&c), contactText(&c), db.Null(c.Name))
		return err
	})
	if err != nil {
		return fmt.Errorf("write contact of call %s: %w", id, err)
	}
	return nil
}

// MergeContact assigns the calls of one contact to another.
func (s *Service) MergeContact(ctx context.Context, tx db.Querier, org, from string, into event.Contact) error {
	const q = `UPDATE calls SET contact_id = $3, contact = $4 WHERE org_id = $1 AND contact_id = $2`
	if _, err := tx.Exec(ctx, q, org, from, contactID(&into), contactText(&into)); err != nil {
		return fmt.Errorf("merge calls of contact: %w", err)
	}
	return nil
}

// ForgetContact removes a contact from its calls.
func (s *Service) ForgetContact(ctx context.Context, tx db.Querier, org, id string) error {
	const q = `UPDATE calls SET contact_id = NULL, contact = NULL WHERE org_id = $1 AND contact_id = $2`
	if _, err := tx.Exec(ctx, q, org, id); err != nil {
		return fmt.Errorf("forget contact of calls: %w", err)
	}
	return nil
}

// History selects the calls with a contact, by the contact's numbers and by the contact id stored in the call.
type History struct {
	Contact      string
	Numbers      []string
	Since, Until db.Time
	Before       db.Time // with BeforeID: only calls that began before that one
	BeforeID     string
	Limit        int
}

// History lists calls with a contact, newest first. It returns limit+1 calls if there are more than limit.
func (s *Service) History(ctx context.Context, org string, h History) ([]Call, error) {
	sides := []func(*db.Filter){}
	if len(h.Numbers) > 0 {
		sides = append(sides, func(f *db.Filter) { f.In("from_number", h.Numbers).Equal("direction", string(Inbound)) },
			func(f *db.Filter) { f.In("to_number", h.Numbers).Equal("direction", string(Outbound)) })
	}
	if h.Contact != "" {
		sides = append(sides, func(f *db.Filter) { f.Equal("contact_id", h.Contact) })
	}
	view, err := visibility.From(ctx, s.cfg.DB.Read(ctx))
	if err != nil {
		return nil, err
	}
	var all []Call
	for _, side := range sides {
		f := view.Narrow(db.Where(`SELECT `+callColumns+` FROM calls WHERE org_id = $1`, org), "id")
		side(f)
		found, err := queryCalls(ctx, s.cfg.DB.Read(ctx), f.Between("started_at", h.Since, h.Until).Page("started_at", true, h.Before,
			h.BeforeID, h.Limit))
		if err != nil {
			return nil, err
		}
		all = mergePages(all, found, "started_at", true, 3*(h.Limit+1))
	}
	all = slices.CompactFunc(all, func(a, b Call) bool { return a.ID == b.ID })
	all = all[:min(len(all), h.Limit+1)]
	for i := range all {
		s.setRecordingURL(&all[i])
	}
	return all, nil
}

// PriorCalls returns how many calls there were with a number, in each of its spellings, and the latest of them. The call with the id but is
// not counted. last is nil if there is none.
func (s *Service) PriorCalls(ctx context.Context, org, phone, but string) (total int, last *Call, err error) {
	view, err := visibility.From(ctx, s.cfg.DB.Read(ctx))
	if err != nil {
		return 0, nil, err
	}
	const text = `SELECT count(*) FROM calls WHERE org_id = $1 AND direction <> 'internal' AND id <> $3 AND (from_number IN ($2, $4) OR to_number IN ($2, $4))`
	given, other := number.Spellings(phone)
	q, args := view.Narrow(db.Where(text, org, given, but, other), "id").SQL()
	if err := s.cfg.DB.Read(ctx).QueryRow(ctx, q, args...).Scan(&total); err != nil {
		return 0, nil, fmt.Errorf("count calls with a number: %w", err)
	}
	if total == 0 {
		return 0, nil, nil
	}
	calls, err := s.History(ctx, org, History{Numbers: number.AllSpellings([]string{phone}), Limit: 1})
	for i := range calls {
		if calls[i].ID != but {
			return total, &calls[i], err
		}
	}
	return total, nil, err
}

// Find returns a call of an organisation, or db.ErrNone.
func (s *Service) Find(ctx context.Context, org, id string) (Call, error) {
	return getCall(ctx, s.cfg.DB.Read(ctx), org, id)
}

// FindWithURL is Find with the recording's id replaced by its URL, as the API shows it.
func (s *Service) FindWithURL(ctx context.Context, org, id string) (Call, error) {
	c, err := s.Find(ctx, org, id)
	s.setRecordingURL(&c)
	return c, err
}

// CallOrigin holds the direction, number and queue of a call. Ids are empty if there is none.
type CallOrigin struct {
	Direction         Direction
	NumberID, QueueID string
}

// Origin returns the CallOrigin of a call, or db.ErrNone. It runs while phones ring, so it reads three columns only.
func (s *Service) Origin(ctx context.Context, org, id string) (w CallOrigin, err error) {
	const q = `SELECT direction, number_id, queue_id FROM calls WHERE org_id = $1 AND id = $2`
	err = s.cfg.DB.Read(ctx).QueryRow(ctx, q, org, id).Scan(&w.Direction, (*db.Null)(&w.NumberID), (*db.Null)(&w.QueueID))
	return w, err
}

// Speakers are who speaks in a call. Fields are empty if there is none.
type Speakers struct {
	FlowID string // the flow that the call entered first
	UserID string // the user that answered, or else the one that placed the call
	Number string // the outside party's number
}

// Speakers returns who speaks in a call. The error is db.ErrNone for a call that is not stored.
func (s *Service) Speakers(ctx context.Context, q db.Querier, org, id string) (who Speakers, err error) {
	const text = `SELECT flow_id, COALESCE(agent_id, user_id),
			CASE direction WHEN 'inbound' THEN from_number WHEN 'outbound' THEN to_number END
		FROM calls WHERE org_id = $1 AND id = $2`
	err = q.QueryRow(ctx, text, org, id).Scan((*db.Null)(&who.FlowID), (*db.Null)(&who.UserID), (*db.Null)(&who.Number))
	return who, err
}

// Agent returns the user that was connected last, or nil if there was none.
func (c Call) Agent() *Agent { return c.toCDR().Agent }
