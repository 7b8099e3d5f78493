package server

import (
	"context"
	"time"

	"soniq/internal/contactcenter/routing"
	"soniq/internal/contactcenter/routing/acd"
	"soniq/internal/contactcenter/routing/ivr"
	"soniq/internal/contactcenter/routing/mailbox"
	"soniq/internal/telephony/trunk"
)

// Connects package routing with the other services.

// buildRouting constructs the services that route callers. They come last, because they use all other services.
func (p *Platform) buildRouting() {
	d := routingDependencies{p}
	p.routing = routing.New(routing.Config{DB: p.db, Users: p.users, Numbers: p.numbers, Log: p.log, Now: time.Now})
	flows := ivr.Config{Router: p.routing, DB: p.db, Orgs: p.orgs, Users: p.users, Agents: p.agents, Queues: p.queues, Flows: p.flows,
		Calls: p.calls, Contacts: p.contacts, Messages: p.messages, VoiceAgents: p.voiceAgents, Emergency: d, Memory: d,
		Signer: p.webhooks, Guard: p.guard, Log: p.log, Now: time.Now}
	if ear := p.engines.menu; ear != nil {
		flows.Recognizer = ear
	}
	p.routing.Handle("flow", ivr.New(flows).RunFlow)
	p.acd = acd.New(acd.Config{Router: p.routing, DB: p.db, Agents: p.agents, Queues: p.queues, Calls: p.calls, Contacts: p.contacts,
		Log: p.log, Now: time.Now})
	p.routing.Handle("queue", p.acd.WaitInQueue)
	mailboxes := mailbox.New(mailbox.Config{DB: p.db, Orgs: p.orgs, Users: p.users, Queues: p.queues, Flows: p.flows, Voicemail: p.voicemail,
		Files: p.files, Greetings: d, Observers: []mailbox.LockObserver{d}, Log: p.log, Now: time.Now})
	p.routing.Handle("voicemail", mailboxes.TakeVoicemail)
	p.routing.Handle("mailbox", mailboxes.OpenMailbox)
}

// routingDependencies implements what the routing of callers needs from several packages at once.
type routingDependencies struct{ p *Platform }

// IsEmergency implements ivr.EmergencyNumbers.
func (d routingDependencies) IsEmergency(country, dialled string) bool {
	_, is := trunk.EmergencyNumber(country, dialled)
	return is
}

// CallerMemory returns the memory of a caller for flows.
func (d routingDependencies) CallerMemory(ctx context.Context, org, number string) (map[string]any, error) {
	m, err := d.p.memory.Caller(ctx, org, number, 1)
	if err != nil {
		return nil, err
	}
	return map[string]any{"calls_total": m.CallsTotal, "summary": m.Summary, "sentiment_trend": m.SentimentTrend}, nil
}
