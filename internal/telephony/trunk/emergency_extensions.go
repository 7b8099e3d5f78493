package trunk

import (
	"context"

	"soniq/internal/identity/org"
)

// UnreachableExtension is an extension that was given before its number was reserved. A call to it reaches the emergency
// service or the crisis line.
type UnreachableExtension struct {
	OrgID, OrgName   string
	Extension, Owner string // Owner is the id of a user or a queue
}

// UnreachableExtensions returns the extensions of all organisations that are reserved in their countries.
func (s *Service) UnreachableExtensions(ctx context.Context) ([]UnreachableExtension, error) {
	orgs, err := s.orgs.List(ctx)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]org.Organization, len(orgs))
	for _, o := range orgs {
		byID[o.ID] = o
	}
	taken, err := org.AllExtensions(ctx, s.db.Read(ctx))
	if err != nil {
		return nil, err
	}
	var all []UnreachableExtension
	for _, e := range taken {
		if o, ok := byID[e.Org]; ok && MaybeReserved(e.Extension) && ReservedExtension(o.Country, e.Extension) {
			all = append(all, UnreachableExtension{o.ID, o.Name, e.Extension, e.Owner})
		}
	}
	return all, nil
}
