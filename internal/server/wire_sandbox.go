package server

import (
	"context"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm"
	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/sandbox/sandbox"
)

// This file joins the sandbox with the services that a reset empties.

// joinReset hands over what empties a sandbox.
func (s *Server) joinReset() {
	p := s.Platform
	p.sandbox.Resetter = sandbox.Resetter{DB: p.db, Now: time.Now, SuspendOrg: p.suspended.Suspend, EndCalls: s.switcher.EndOrg, StopJobs: s.quiet, RemoveFiles: p.eraseFiles,
		RepairRows: p.mend, ClearCaches: func(org string) {
			p.forgetOrg(org)
			p.memory.DropIndex(org)
			p.contacts.Reconnected(org)
			p.bus.Publish(crm.Changed, org)
			p.bus.Publish(flow.Changed, nil)
		}}
}

// quiet cancels what works for an organisation, but mails on their way to people, and returns how much still runs.
func (s *Server) quiet(ctx context.Context, org string) (running int, err error) {
	p := s.Platform
	err = p.db.Tx(ctx, func(tx db.Querier) (err error) {
		running, err = job.Clear(ctx, tx, org, user.MailQueue)
		return err
	})
	if err != nil || running == 0 {
		return running, err
	}
	for _, r := range s.resettable {
		r.Abandon(org)
	}
	p.hooks.Abandon(org)
	return running, nil
}

// mend takes what is gone out of what stays.
func (p *Platform) mend(ctx context.Context, tx db.Querier, org string) (int64, error) {
	if err := p.users.ClearOutboundNumbers(ctx, tx, org); err != nil {
		return 0, err
	}
	return p.hooks.Reset(ctx, tx, org)
}

// lookups are the systems that are asked who somebody is: those an organisation has connected, and in the sandbox the two that
// know the test numbers.
func (p *Platform) lookups(ctx context.Context, org string) ([]contact.Connected, error) {
	all, err := p.crm.Connected(ctx, org)
	if err != nil {
		return nil, err
	}
	o, err := p.orgs.Get(ctx, org)
	if err != nil || !o.Sandbox() {
		return all, err
	}
	return append(all[:len(all):len(all)], sandbox.Sources()...), nil
}
