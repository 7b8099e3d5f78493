package server

import (
	"context"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/customer/crm"
	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/sandbox/sandbox"
)

// Connects the sandbox with the services that a reset empties.

// buildSandbox constructs the service of the sandbox.
func (p *Platform) buildSandbox() {
	d := sandboxDependencies{p}
	p.sandbox = sandbox.New(sandbox.Config{DB: p.db, Numbers: d, Messages: p.messages, Callers: d,
		Suspensions: &p.suspended, Calls: d, Jobs: d, Data: d})
}

// sandboxDependencies implements the dependencies of package sandbox. Those on calls and jobs need a server, which opens them before it
// accepts requests.
type sandboxDependencies struct{ p *Platform }

// ParseNumber implements sandbox.Numbers.
func (d sandboxDependencies) ParseNumber(ctx context.Context, org, text string) (string, bool, error) {
	return d.p.parseNumber(ctx, org, text)
}

// Call implements sandbox.Callers.
func (d sandboxDependencies) Call(ctx context.Context, c sandbox.SimulatedCall) (id, to string, err error) {
	return d.p.server.parties.Call(ctx, c)
}

// EndOrg implements sandbox.Calls.
func (d sandboxDependencies) EndOrg(ctx context.Context, org string) (int, error) {
	return d.p.server.switcher.EndOrg(ctx, org)
}

// StopJobs cancels the jobs of an organisation, except mails to users, and returns how many still run.
func (d sandboxDependencies) StopJobs(ctx context.Context, org string) (running int, err error) {
	err = d.p.db.Tx(ctx, func(tx db.Querier) (err error) {
		running, err = job.Clear(ctx, tx, org, user.MailQueue)
		return err
	})
	if err != nil || running == 0 {
		return running, err
	}
	for _, r := range d.p.server.resettable {
		r.Abandon(org)
	}
	d.p.webhooks.Abandon(org)
	return running, nil
}

// RemoveFiles implements sandbox.Data.
func (d sandboxDependencies) RemoveFiles(org string) error { return d.p.eraseFiles(org) }

// RepairRows removes references to removed rows from rows that stay.
func (d sandboxDependencies) RepairRows(ctx context.Context, tx db.Querier, org string) (int64, error) {
	if err := d.p.users.ClearOutboundNumbers(ctx, tx, org); err != nil {
		return 0, err
	}
	return d.p.webhooks.Reset(ctx, tx, org)
}

// ClearCaches implements sandbox.Data.
func (d sandboxDependencies) ClearCaches(org string) {
	d.p.clearCaches(org)
	d.p.memory.DropIndex(org)
	d.p.contacts.InvalidateOrg(org)
	d.p.bus.Publish(crm.Changed, org)
	d.p.bus.Publish(flow.Changed, nil)
}
