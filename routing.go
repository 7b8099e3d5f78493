package main

import (
	"context"

	"soniq/audio"
	"soniq/carrier"
	"soniq/db"
	"soniq/user"
)

// This file tells the rooms that route callers of each other: agents, queues, flows, numbers, voicemail.

// joinRouting hands over what they need from others.
func (h *house) joinRouting() {
	h.devices.OnMove = h.agents.Touch
	h.calls.OnLegs = h.agents.TouchCall
	h.agents.OnPresence = h.queues.PresenceChanged
	h.users.Presences = h.agents.Presences
	h.users.Queues = h.queues
	h.users.OnChange = append(h.users.OnChange, func(ctx context.Context, tx db.Querier, u user.User) error {
		return h.agents.SettleIn(ctx, tx, u.OrgID, []string{u.ID})
	})
	h.users.OnRemove = append(h.users.OnRemove, func(ctx context.Context, tx db.Querier, r user.Removal) error {
		if err := h.queues.RemoveUser(ctx, tx, r.OrgID, r.UserID); err != nil {
			return err
		}
		return h.agents.RemoveUser(ctx, tx, r.OrgID, r.UserID)
	})
	h.queues.HasAudio, h.queues.Reach, h.queues.Reserved = h.hasAudio, h.reach, carrier.ReservedExtension
	h.audio.Uses = append(h.audio.Uses, played("queue", h.queues.PlayedBy))
}

// played makes what plays a sound known to the sounds.
func played(kind string, find func(context.Context, db.Querier, string, string) ([]string, error)) func(context.Context, db.Querier, string, string) ([]audio.Use, error) {
	return func(ctx context.Context, q db.Querier, org, id string) ([]audio.Use, error) {
		ids, err := find(ctx, q, org, id)
		uses := make([]audio.Use, len(ids))
		for i, by := range ids {
			uses[i] = audio.Use{Type: kind, ID: by}
		}
		return uses, err
	}
}
