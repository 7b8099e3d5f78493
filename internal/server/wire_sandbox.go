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
func (n *Server) joinReset() {
	h := n.Platform
	h.sandbox.Resetter = sandbox.Resetter{DB: h.db, Now: time.Now, Bar: h.suspended.Suspend, HangUp: n.switcher.EndOrg, Quiet: n.quiet, Files: h.eraseFiles,
		Mend: h.mend, Forget: func(org string) {
			h.forgetOrg(org)
			h.memory.Drop(org)
			h.contacts.Reconnected(org)
			h.bus.Publish(crm.Changed, org)
			h.bus.Publish(flow.Changed, nil)
		}}
}

// quiet cancels what works for an organisation, but mails on their way to people, and returns how much still runs.
func (n *Server) quiet(ctx context.Context, org string) (running int, err error) {
	h := n.Platform
	err = h.db.Tx(ctx, func(tx db.Querier) (err error) {
		running, err = job.Clear(ctx, tx, org, user.MailQueue)
		return err
	})
	if err != nil || running == 0 {
		return running, err
	}
	for _, r := range []*job.Runner{n.callJobs, n.understand, n.callbacks, n.messages, n.applications, n.erasing, n.exports, n.imports, n.connections} {
		r.Abandon(org)
	}
	h.hooks.Abandon(org)
	return running, nil
}

// mend takes what is gone out of what stays.
func (h *Platform) mend(ctx context.Context, tx db.Querier, org string) (int64, error) {
	if err := h.users.ForgetNumbers(ctx, tx, org); err != nil {
		return 0, err
	}
	return h.hooks.Reset(ctx, tx, org)
}

// lookups are the systems that are asked who somebody is: those an organisation has connected, and in the sandbox the two that
// know the test numbers.
func (h *Platform) lookups(ctx context.Context, org string) ([]contact.Connected, error) {
	all, err := h.crm.Connected(ctx, org)
	if err != nil {
		return nil, err
	}
	o, err := h.orgs.Get(ctx, org)
	if err != nil || !o.Sandbox() {
		return all, err
	}
	return append(all[:len(all):len(all)], sandbox.Sources()...), nil
}
