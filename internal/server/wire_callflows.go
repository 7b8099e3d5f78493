package server

import (
	"context"
	"time"

	"soniq/internal/contactcenter/routing"
	"soniq/internal/telephony/trunk"
)

// This file joins package routing with the other services.

// joinAttendant constructs the routing service. It comes last, because it uses all other services.
func (p *Platform) joinAttendant() {
	p.attendant = routing.New(routing.Config{DB: p.db, Orgs: p.orgs, Users: p.users, Agents: p.agents, Queues: p.queues, Flows: p.flows,
		Voicemail: p.voicemail, Numbers: p.numbers, Calls: p.calls, Contacts: p.contacts, Messages: p.messages, Files: p.files, Guard: p.guard,
		Outbox: p.outbox, Log: p.log, Now: time.Now, Node: p.node})
	if ear := p.engines.menu; ear != nil {
		p.attendant.RecognizePhrase = ear.Recognize
	}
	p.attendant.SetGreeting, p.attendant.MailboxLocked = p.greet, p.mailboxLocked
	p.attendant.VoiceAgents = p.assistants
	p.attendant.Emergency = func(country, dialled string) bool { _, is := trunk.EmergencyNumber(country, dialled); return is }
	p.attendant.CallerMemory, p.attendant.SignRequest = p.remembered, p.hooks.Sign
}

// remembered is what flows can ask of a caller's memory.
func (p *Platform) remembered(ctx context.Context, org, number string) (map[string]any, error) {
	m, err := p.memory.Caller(ctx, org, number, 1)
	if err != nil {
		return nil, err
	}
	return map[string]any{"calls_total": m.CallsTotal, "summary": m.Summary, "sentiment_trend": m.SentimentTrend}, nil
}
