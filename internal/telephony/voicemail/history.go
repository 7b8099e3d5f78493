package voicemail

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/visibility"
)

// History selects the messages that numbers left.
type History struct {
	Numbers      []string
	Since, Until db.Time
	Before       db.Time // with BeforeID: only messages before this position
	BeforeID     string
	Limit        int
}

// FromNumbers lists the undeleted messages that numbers left, newest first. It returns limit+1 messages if there are
// more than limit.
func (s *Service) FromNumbers(ctx context.Context, org string, h History) ([]Voicemail, error) {
	if len(h.Numbers) == 0 {
		return nil, nil
	}
	view, err := visibility.From(ctx, s.cfg.DB.Read(ctx))
	if err != nil {
		return nil, err
	}
	all, err := listMessages(ctx, s.cfg.DB.Read(ctx), view.Narrow(h.query(org), "v.call_id"), h.Before, h.BeforeID, true, h.Limit+1)
	for i := range all {
		s.setAudioURL(ctx, &all[i], false)
	}
	return all, err
}

func (h History) query(org string) *db.Filter {
	return db.Where(selectMessages, org).In("v.from_number", h.Numbers).Between("v.received_at", h.Since, h.Until).And("v.status <> ?",
		Deleted)
}
