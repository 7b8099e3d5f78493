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

// Connects the sandbox with the services that a reset empties.

// wireSandboxReset sets the functions of a reset.
func (s *Server) wireSandboxReset() {
	p := s.Platform
	p.sandbox.Resetter = sandbox.Resetter{DB: p.db, Now: time.Now, SuspendOrg: p.suspended.Suspend, EndCalls: s.switcher.EndOrg, StopJobs: s.stopJobsOf, RemoveFiles: p.eraseFiles,
		RepairRows: p.repairAfterReset, ClearCaches: func(org string) {
			p.clearCaches(org)
			p.memory.DropIndex(org)
			p.contacts.InvalidateOrg(org)
			p.bus.Publish(crm.Changed, org)
			p.bus.Publish(flow.Changed, nil)
		}}
}

// stopJobsOf cancels the jobs of an organisation, except mails to users, and returns how many still run.
func (s *Server) stopJobsOf(ctx context.Context, org string) (running int, err error) {
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
	p.webhooks.Abandon(org)
	return running, nil
}

// repairAfterReset removes references to removed rows from rows that stay.
func (p *Platform) repairAfterReset(ctx context.Context, tx db.Querier, org string) (int64, error) {
	if err := p.users.ClearOutboundNumbers(ctx, tx, org); err != nil {
		return 0, err
	}
	return p.webhooks.Reset(ctx, tx, org)
}

// lookups returns the connected systems of an organisation. A sandbox has two more, which know the test numbers.
func (p *Platform) lookups(ctx context.Context, org string) ([]contact.Source, error) {
	all, err := p.crm.Connected(ctx, org)
	if err != nil {
		return nil, err
	}
	o, err := p.orgs.Get(ctx, org)
	if err != nil || !o.Sandbox() {
		return all, err
	}
	return append(all[:len(all):len(all)], sandbox.TestConnections()...), nil
}
