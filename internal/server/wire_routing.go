package server

import (
	"context"
	"slices"

	"soniq/internal/contactcenter/routing"
	"soniq/internal/contactcenter/routing/acd"
	"soniq/internal/contactcenter/routing/ivr"
	"soniq/internal/contactcenter/routing/mailbox"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// Connects queues with the calls that end in them, and flows with numbers.

// endQueueEntries ends the queue entry and the offers of a call that has ended.
func (p *Platform) endQueueEntries(ctx context.Context, tx db.Querier, e call.Ended, r call.CDR) error {
	if e.Source == "callback" {
		return p.queues.CallbackEnded(ctx, tx, e.Org, e.ID, callbackResult(e), agentAnswered(e))
	}
	if r.Queue == nil {
		return nil
	}
	if err := p.queues.CallEnded(ctx, tx, e.Org, e.ID, e.Reason, e.Answered()); err != nil {
		return err
	}
	waited, err := p.queues.WaitedSeconds(ctx, tx, e.Org, e.ID)
	if err != nil {
		return err
	}
	return p.calls.SetQueueSeconds(ctx, tx, e.Org, e.ID, waited)
}

// callbackResult returns the result of a callback from the end of its call.
func callbackResult(e call.Ended) string {
	switch {
	case e.Answered():
		return "completed"
	case e.Reason == "no_answer" || e.Reason == "timeout":
		return "no_answer"
	case e.Reason == "busy" || e.Reason == "rejected":
		return e.Reason
	case e.Reason == "api" || e.Reason == "canceled":
		return "canceled"
	}
	return "failed"
}

// agentAnswered reports whether the agent of a callback had answered.
func agentAnswered(e call.Ended) bool {
	return slices.ContainsFunc(e.Legs, func(l call.LegState) bool { return l.Role == "caller" && !l.AnsweredAt.IsZero() })
}

// ownsNumber reports whether an organisation can send from a number.
func (p *Platform) ownsNumber(ctx context.Context, org, text string) (bool, error) {
	o, err := p.orgs.Get(ctx, org)
	if err != nil {
		return false, err
	}
	e164, ok := number.Parse(text, o.Country)
	if !ok {
		return false, nil
	}
	_, ok, err = p.numbers.FindActive(ctx, org, e164)
	return ok, err
}

// Connects package routing with the other services.

// buildRouting constructs the services that route callers. They come last, because they use all other services.
func (p *Platform) buildRouting() {
	d := routingDependencies{p}
	p.routing = routing.New(routing.Config{DB: p.db, Users: p.users, Numbers: p.numbers, Log: p.log})
	flows := ivr.Config{Router: p.routing, DB: p.db, Orgs: p.orgs, Users: p.users, Agents: p.agents, Queues: p.queues, Flows: p.flows,
		Calls: p.calls, Contacts: p.contacts, Messages: p.messages, VoiceAgents: p.voiceAgents, Emergency: d, Memory: d,
		Signer: p.webhooks, Guard: p.guard, Log: p.log}
	if ear := p.engines.menu; ear != nil {
		flows.Recognizer = ear
	}
	p.routing.Handle("flow", ivr.New(flows).RunFlow)
	p.acd = acd.New(acd.Config{Router: p.routing, DB: p.db, Agents: p.agents, Queues: p.queues, Calls: p.calls, Callbacks: p.callbacks,
		Contacts: p.contacts,
		Log:      p.log})
	p.routing.Handle("queue", p.acd.WaitInQueue)
	mailboxes := mailbox.New(mailbox.Config{DB: p.db, Orgs: p.orgs, Users: p.users, Queues: p.queues, Flows: p.flows,
		Voicemail: p.voicemail,
		Files:     p.files, Greetings: d, Observers: []mailbox.LockObserver{d}, Log: p.log})
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
