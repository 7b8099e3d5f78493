package server

import (
	"context"
	"time"

	"soniq/internal/contactcenter/routing"
	"soniq/internal/telephony/trunk"
)

// This file joins package routing with the other services.

// joinAttendant constructs the routing service. It comes last, because it uses all other services.
func (h *Platform) joinAttendant() {
	h.attendant = routing.New(routing.Config{DB: h.db, Orgs: h.orgs, Users: h.users, Agents: h.agents, Queues: h.queues, Flows: h.flows,
		Voicemail: h.voicemail, Numbers: h.numbers, Calls: h.calls, Contacts: h.contacts, Messages: h.messages, Files: h.files, Guard: h.guard,
		Outbox: h.outbox, Log: h.log, Now: time.Now, Node: h.node})
	if ear := h.engines.menu; ear != nil {
		h.attendant.Hear = ear.Hear
	}
	h.attendant.Greet, h.attendant.Locked = h.greet, h.mailboxLocked
	h.calls.OnAnswer = h.attendant.Connected
	h.attendant.Assistants = h.assistants
	h.attendant.Emergency = func(country, dialled string) bool { _, is := trunk.Emergency(country, dialled); return is }
	h.attendant.Memory, h.attendant.Sign = h.remembered, h.hooks.Sign
}

// remembered is what flows can ask of a caller's memory.
func (h *Platform) remembered(ctx context.Context, org, number string) (map[string]any, error) {
	m, err := h.memory.Caller(ctx, org, number, 1)
	if err != nil {
		return nil, err
	}
	return map[string]any{"calls_total": m.CallsTotal, "summary": m.Summary, "sentiment_trend": m.SentimentTrend}, nil
}
