package number

import (
	"context"
	"fmt"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Showable is a number that the calls of a user may show.
type Showable struct {
	ID         string `json:"id" example:"num_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Number     string `json:"number"`
	Label      string `json:"label"`
	Country    string `json:"country"`
	SMSEnabled bool   `json:"sms_enabled"`
	Own        bool   `json:"own" doc:"Whether calls to the number ring the user"`
	Shown      bool   `json:"shown" doc:"Whether calls of the user show it now"`
}

// ShowableIn selects numbers that the calls of the credential's user may show.
type ShowableIn struct{ op.Paging }

// ListShowable returns the numbers that the calls of the credential's user may show: the active ones of the organisation, as Owned.
func (s *Service) ListShowable(ctx context.Context, in *ShowableIn) (*op.Out[op.Page[Showable]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	p, _ := access.From(ctx)
	q, by := s.db.Read(ctx), filter{statuses: []string{"active"}, after: after.ID, limit: in.Limit}
	rows, err := listNumbers(ctx, q, p.OrgID, by)
	if err != nil {
		return nil, err
	}
	now, err := s.CallerID(ctx, q, p.OrgID, p.UserID)
	if err != nil && !db.IsNone(err) {
		return nil, fmt.Errorf("find the number that is shown: %w", err)
	}
	all := make([]Showable, len(rows))
	for i, n := range rows {
		own := n.AssignedTo.Type == "user" && n.AssignedTo.ID != nil && *n.AssignedTo.ID == p.UserID
		all[i] = Showable{ID: n.ID, Number: n.Number, Label: n.Label, Country: n.Country, SMSEnabled: n.SMSEnabled, Own: own,
			Shown: n.ID == now.ID}
	}
	page := op.Paged(ctx, in.Paging, all, func(n Showable) op.Position { return op.Position{ID: n.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return by.query(p.OrgID).Count(ctx, q) })
}
