package server

import (
	"context"
	"time"

	"soniq/internal/contactcenter/analytics"
	"soniq/internal/platform/db"
)

// This file joins the counts of calls with calls, organisations and users.

func (h *Platform) buildCounts() {
	h.counts = analytics.New(analytics.Config{DB: h.db, Now: time.Now, Key: h.seal.Key("callers in counts"), Log: h.log, Name: h.nameOf,
		Zone: func(ctx context.Context, id string) (*time.Location, error) {
			o, err := h.orgs.Get(ctx, id)
			if err != nil {
				return nil, err
			}
			return time.LoadLocation(o.Timezone)
		}})
}

// nameOf is the name of what counts are grouped by.
func (h *Platform) nameOf(ctx context.Context, org, dimension, key string) (string, error) {
	if dimension != analytics.ByAgent {
		return "", nil
	}
	u, err := h.users.Get(ctx, h.db.Read(ctx), org, key)
	if db.IsNone(err) {
		return "", nil
	}
	return u.Name, err
}

// count counts calls until the context ends.
func (h *Platform) count(ctx context.Context) {
	all, err := h.orgs.List(ctx)
	if err != nil {
		h.log.Warn("calls not counted", "err", err)
	}
	ids := make([]string, len(all))
	for i, o := range all {
		ids[i] = o.ID
	}
	h.counts.CatchUp(ctx, ids)
	h.counts.Run(ctx)
}
