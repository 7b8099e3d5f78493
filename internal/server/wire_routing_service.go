package server

import (
	"context"
	"time"

	"soniq/internal/contactcenter/routing"
	"soniq/internal/telephony/trunk"
)

// Connects package routing with the other services.

// buildRouting constructs the routing service. It comes last, because it uses all other services.
func (p *Platform) buildRouting() {
	p.routing = routing.New(routing.Config{DB: p.db, Orgs: p.orgs, Users: p.users, Agents: p.agents, Queues: p.queues, Flows: p.flows,
		Voicemail: p.voicemail, Numbers: p.numbers, Calls: p.calls, Contacts: p.contacts, Messages: p.messages, Files: p.files, Guard: p.guard,
		Outbox: p.outbox, Log: p.log, Now: time.Now, Node: p.node})
	if ear := p.engines.menu; ear != nil {
		p.routing.RecognizePhrase = ear.Recognize
	}
	p.routing.SetGreeting, p.routing.MailboxLocked = p.setGreeting, p.mailboxLocked
	p.routing.VoiceAgents = p.voiceAgents
	p.routing.Emergency = func(country, dialled string) bool { _, is := trunk.EmergencyNumber(country, dialled); return is }
	p.routing.CallerMemory, p.routing.SignRequest = p.callerMemory, p.webhooks.SignRequest
}

// callerMemory returns the memory of a caller for flows.
func (p *Platform) callerMemory(ctx context.Context, org, number string) (map[string]any, error) {
	m, err := p.memory.Caller(ctx, org, number, 1)
	if err != nil {
		return nil, err
	}
	return map[string]any{"calls_total": m.CallsTotal, "summary": m.Summary, "sentiment_trend": m.SentimentTrend}, nil
}
