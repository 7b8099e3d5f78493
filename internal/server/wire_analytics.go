package server

import (
	"context"
	"time"

	"soniq/internal/contactcenter/analytics"
	"soniq/internal/platform/db"
)

// This file joins the counts of calls with calls, organisations and users.

func (p *Platform) buildCounts() {
	p.counts = analytics.New(analytics.Config{DB: p.db, Now: time.Now, Key: p.seal.Key("callers in counts"), Log: p.log, Name: p.nameOf,
		Zone: func(ctx context.Context, id string) (*time.Location, error) {
			o, err := p.orgs.Get(ctx, id)
			if err != nil {
				return nil, err
			}
			return time.LoadLocation(o.Timezone)
		}})
}

// nameOf is the name of what counts are grouped by.
func (p *Platform) nameOf(ctx context.Context, org, dimension, key string) (string, error) {
	if dimension != analytics.ByAgent {
		return "", nil
	}
	u, err := p.users.Get(ctx, p.db.Read(ctx), org, key)
	if db.IsNone(err) {
		return "", nil
	}
	return u.Name, err
}

// count counts calls until the context ends.
func (p *Platform) count(ctx context.Context) {
	all, err := p.orgs.List(ctx)
	if err != nil {
		p.log.Warn("calls not counted", "err", err)
	}
	ids := make([]string, len(all))
	for i, o := range all {
		ids[i] = o.ID
	}
	p.counts.CatchUp(ctx, ids)
	p.counts.Run(ctx)
}
