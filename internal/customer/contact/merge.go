package contact

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/op"
)

// MergeIn is the request of contacts.merge.
type MergeIn struct {
	OneIn
	Body struct {
		FromID string `json:"from_id" maxLength:"40" doc:"The contact that is gone afterwards"`
	}
}

// Merge merges the contact from_id into another: it adds missing fields, moves notes, calls and records in connected
// systems, and deletes it.
func (s *Service) Merge(ctx context.Context, in *MergeIn) (*op.Out[Contact], error) {
	country, err := s.country(ctx)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	var into Contact
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if into, err = s.find(ctx, tx, in.ID); err != nil {
			return err
		}
		from, err := s.mergeable(ctx, tx, in)
		if err != nil {
			return err
		}
		before := into
		if wrong := into.absorb(from, country); len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		into.UpdatedAt = db.At(s.cfg.Clock.Now())
		if err := s.moveData(ctx, tx, from, into, country); err != nil {
			return err
		}
		if err := s.update(ctx, tx, before, into, country); err != nil {
			return err
		}
		if into, err = getContact(ctx, tx, into.OrgID, into.ID); err != nil {
			return err
		}
		return s.afterSave(ctx, tx, &into, nil, nil)
	})
	if err != nil {
		return nil, err
	}
	return op.Versioned(into, into.UpdatedAt)
}

func (s *Service) mergeable(ctx context.Context, tx db.Querier, in *MergeIn) (Contact, error) {
	if in.Body.FromID == in.ID {
		return Contact{}, op.Invalid(op.Field("from_id", "ambiguous", "a contact cannot be merged with itself"))
	}
	from, err := getContact(ctx, tx, access.Org(ctx), in.Body.FromID)
	if db.IsNone(err) {
		return from, op.Invalid(op.Field("from_id", "not_found", "no such contact"))
	}
	return from, err
}

// moveData moves the data of a contact to another and deletes the contact.
func (s *Service) moveData(ctx context.Context, tx db.Querier, from, into Contact, country string) error {
	const q = `UPDATE contact_notes SET contact_id = $3 WHERE org_id = $1 AND contact_id = $2`
	if _, err := tx.Exec(ctx, q, from.OrgID, from.ID, into.ID); err != nil {
		return fmt.Errorf("move notes: %w", err)
	}
	err := observe.Each(s.observers.merges, func(o MergeObserver) error { return o.ContactMerged(ctx, tx, from.OrgID, from.ID, into) })
	if err != nil {
		return err
	}
	const last = `UPDATE contacts SET last_contacted_at = (SELECT max(last_contacted_at) FROM contacts WHERE org_id = $1 AND id IN ($2, $3))
		WHERE org_id = $1 AND id = $3`
	if _, err := tx.Exec(ctx, last, from.OrgID, from.ID, into.ID); err != nil {
		return fmt.Errorf("merge last contact: %w", err)
	}
	if err := s.deleteContact(ctx, tx, from, country); err != nil {
		return err
	}
	return countNotes(ctx, tx, into.OrgID, into.ID)
}

// absorb adds the missing fields, numbers and addresses of another contact. Existing values are kept.
func (c *Contact) absorb(o Contact, country string) []op.Violation {
	for _, f := range []struct{ to, from *string }{{&c.FirstName, &o.FirstName}, {&c.LastName, &o.LastName}, {&c.Company, &o.Company},
		{&c.Title, &o.Title}} {
		if *f.to == "" {
			*f.to = *f.from
		}
	}
	c.Phones, c.Emails = slices.Clone(c.Phones), slices.Clone(c.Emails)
	for _, p := range o.Phones {
		p.Primary = false
		if !slices.ContainsFunc(c.Phones, func(k Phone) bool { return k.Number == p.Number && k.Extension == p.Extension }) {
			c.Phones = append(c.Phones, p)
		}
	}
	for _, e := range o.Emails {
		e.Primary = false
		if !slices.ContainsFunc(c.Emails, func(k Email) bool { return strings.EqualFold(k.Value, e.Value) }) {
			c.Emails = append(c.Emails, e)
		}
	}
	if c.OwnerUserID == nil {
		c.OwnerUserID = o.OwnerUserID
	}
	c.Tags = append(slices.Clone(c.Tags), o.Tags...)
	c.VIP, c.DoNotCall = c.VIP || o.VIP, c.DoNotCall || o.DoNotCall
	custom := map[string]string{}
	for _, all := range []map[string]string{o.Custom, c.Custom} {
		for name, value := range all {
			custom[name] = value
		}
	}
	c.Custom = custom
	return c.check(country, true)
}
