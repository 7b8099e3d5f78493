package server

import (
	"context"
	"time"

	"soniq/internal/contactcenter/analytics"
	"soniq/internal/platform/db"
)

// Connects package analytics with calls, organisations and users.

func (p *Platform) buildAnalytics() {
	p.analytics = analytics.New(analytics.Config{DB: p.db, Key: p.seal.Key("callers in counts"), Log: p.log,
		Zones: analyticsDependencies{p}, Names: analyticsDependencies{p}})
}

// analyticsDependencies implements the dependencies of package analytics.
type analyticsDependencies struct{ p *Platform }

// Zone returns the time zone of an organisation. An unknown zone is an error, because a report in another zone would be wrong.
func (d analyticsDependencies) Zone(ctx context.Context, id string) (*time.Location, error) {
	o, err := d.p.orgs.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return time.LoadLocation(o.Timezone)
}

// GroupName returns the display name of a group in a report.
func (d analyticsDependencies) GroupName(ctx context.Context, org, dimension, key string) (string, error) {
	if dimension != analytics.ByAgent {
		return "", nil
	}
	u, err := d.p.users.Get(ctx, d.p.db.Read(ctx), org, key)
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
	p.analytics.CatchUp(ctx, ids)
	p.analytics.Run(ctx)
}
