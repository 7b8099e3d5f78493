package server

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"time"

	"soniq/internal/control"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Commands on the host act without a credential of the API. Each change has a line in the audit log.

// hostCredential is the credential of commands in the audit log.
const hostCredential = "command line"

// hostChange says what a command changed.
type hostChange struct {
	org       string // "": the whole installation is concerned
	record    string
	detail    string // what it did, if its name does not say so
	unchanged bool   // nothing was changed
}

// hostChanges are the commands that change something, or take data out.
var hostChanges = map[string]string{
	"org.create": "admin orgs create", "key.create": "admin keys create", "user.add": "admin users add",
	"user.link": "admin users password", "stock.add": "numbers add-block", "network": "admin trunks confirm",
	"number": "numbers confirm", "port.set": "numbers port-status",
	"clock": "admin clock confirm", "backup": "backup", "outbound.stop": "admin outbound stop", "outbound.start": "admin outbound start",
	"session": "key of a command, while it runs",
}

// auditCommand writes the audit line of a command that succeeded: in its organisation, or in all if it concerns the installation.
func (p *Platform) auditCommand(ctx context.Context, action string, c hostChange) error {
	if c.unchanged {
		return nil
	}
	if c.detail != "" {
		action += "." + c.detail
	}
	orgs := []string{c.org}
	if c.org == "" {
		all, err := p.orgs.List(ctx)
		if err != nil {
			return fmt.Errorf("done, but not written to the audit log: %w", err)
		}
		orgs = nil
		for _, o := range all {
			orgs = append(orgs, o.ID)
		}
	}
	ctx = context.WithoutCancel(ctx) // the change is made
	err := p.db.Tx(ctx, func(tx db.Querier) error {
		var failed error
		for _, org := range orgs {
			failed = errors.Join(failed, op.WriteAudit(ctx, tx, db.At(time.Now()), op.AuditLine{Org: org, Operation: "command." + action,
				Target: "COMMAND soniq " + hostChanges[action], KeyName: hostUser(ctx), Credential: hostCredential, Source: "this machine",
				Record: c.record, Status: 200}))
		}
		return failed
	})
	if err != nil {
		return fmt.Errorf("done, but not written to the audit log: %w", err)
	}
	return nil
}

// hostUser returns the user of the operating system that runs the command: the one at the other end of the control socket, or that of this
// process.
func hostUser(ctx context.Context) string {
	id, ok := control.Peer(ctx)
	if !ok {
		u, err := user.Current()
		if err != nil {
			return "unknown"
		}
		return u.Username
	}
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid " + id
}
