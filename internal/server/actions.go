package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"soniq/internal/control"
	"soniq/internal/identity/auth"
	"soniq/internal/identity/user"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/server/backup"
	"soniq/internal/telephony/directory"
)

// operations returns every operation of the API.
func (p *Platform) operations() []op.Operation {
	all := slices.Concat(p.contacts.Operations(), p.crm.Operations(), p.calls.Operations(), p.cdrs.Operations(), p.recordings.Operations(),
		p.calls.TagOperations())
	for _, service := range []interface{ Operations() []op.Operation }{p.callbacks, p.outcomes, p.transcripts, p.users, p.agents,
		p.queues, p.flows, p.voicemail, p.devices, p.memory, p.numbers,
		p.trunks, p.prompts, p.analytics, p.erasures, p.webhooks, p.streams, p.orgs, p.keys, p.partners, p.audit, p.messages, p.smsCarriers,
		p.smppApps, p.sandbox,
		directory.Simulation{Directory: func() *directory.Directory { return p.directory }}} {
		all = append(all, service.Operations()...)
	}
	return all
}

// Actions returns the handlers of the control socket that need no running server.
func (p *Platform) Actions() control.Actions {
	return control.Actions{
		"org.create": command(p, "org.create", p.createOrg),
		"key.create": command(p, "key.create", p.createKey),
		"user.add":   command(p, "user.add", p.addUser),
		"user.link":  command(p, "user.link", p.linkUser),
		"outbound":   command(p, "outbound", p.outbound),
		"stock.add":  command(p, "stock.add", p.addStock),
		"network":    command(p, "network", p.confirmNetwork),
		"number":     command(p, "number", p.confirmNumber),
		"port.set":   command(p, "port.set", p.setPort),
		"clock":      command(p, "clock", p.confirmClock),
		"backup":     command(p, "backup", p.backup),
	}
}

// command returns the handler of a command, which writes its change to the audit log.
func command[I any](p *Platform, name string, do func(ctx context.Context, in I) (string, hostChange, error)) func(context.Context,
	json.RawMessage) (any, error) {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var in I
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, err
		}
		text, change, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		return text, p.auditCommand(ctx, name, change)
	}
}

// CreateOrg creates an organisation and returns its id.
func (p *Platform) CreateOrg(ctx context.Context, in control.OrgRequest) (string, error) {
	id, _, err := p.createOrg(ctx, in)
	return id, err
}

func (p *Platform) createOrg(ctx context.Context, in control.OrgRequest) (string, hostChange, error) {
	o, err := p.orgs.Create(ctx, in.Name, strings.ToUpper(in.Country))
	return o.ID, hostChange{org: o.ID, record: o.ID}, commandError(err)
}

// CreateKey creates an API key and returns its secret.
func (p *Platform) CreateKey(ctx context.Context, in control.KeyRequest) (string, error) {
	secret, _, err := p.createKey(ctx, in)
	return secret, err
}

func (p *Platform) createKey(ctx context.Context, in control.KeyRequest) (secret string, change hostChange, err error) {
	if in.Kind != string(access.StandardKey) && in.Kind != string(access.PartnerKey) {
		return "", change, errors.New("--kind must be standard or partner")
	}
	if _, err := p.orgs.Get(ctx, in.Org); db.IsNone(err) {
		return "", change, fmt.Errorf("there is no organisation %s", in.Org)
	}
	scopes, err := auth.ParseScopes(in.Scopes, access.Kind(in.Kind))
	if err != nil {
		return "", change, commandError(err)
	}
	env := access.Live
	if in.Env == "test" {
		env = access.Sandbox
	} else if in.Env != "live" {
		return "", change, errors.New("--env must be live or test")
	}
	k, err := p.keys.CreateKey(ctx, auth.Request{OrgID: in.Org, Name: in.Name, Kind: access.Kind(in.Kind), Environment: env, Scopes: scopes,
		CreatedBy: hostCredential})
	if err != nil {
		return "", change, commandError(err)
	}
	return *k.Secret, hostChange{org: in.Org, record: k.ID}, nil
}

// commandError converts an API error to a text for the command line.
func commandError(err error) error {
	var e *op.Error
	if !errors.As(err, &e) {
		return err
	}
	if len(e.Fields) == 0 {
		return errors.New(e.Detail)
	}
	var all []string
	for _, f := range e.Fields {
		all = append(all, f.Field+": "+f.Message)
	}
	return errors.New(strings.Join(all, "; "))
}

// CreateUser creates a user without a phone, and returns a link to choose a password.
func (p *Platform) CreateUser(ctx context.Context, in control.UserRequest) (link string, err error) {
	link, _, err = p.addUser(ctx, in)
	return link, err
}

// addUser creates a user without a phone, and returns a link to choose a password.
func (p *Platform) addUser(ctx context.Context, in control.UserRequest) (link string, change hostChange, err error) {
	org, err := p.onlyOrg(ctx, in.Org)
	if err != nil {
		return "", change, err
	}
	name, _, _ := strings.Cut(in.Email, "@")
	no := false
	u, err := p.users.Create(ctx, org, user.Fresh{Email: in.Email, FirstName: cmp.Or(in.First, name), LastName: in.Last, Role: in.Role,
		SendInvite: &no, ProvisionSIP: &no})
	if err != nil {
		return "", change, commandError(err)
	}
	link, err = p.signin.Link(ctx, org, u.ID)
	return link, hostChange{org: org, record: u.ID}, err
}

// linkUser returns a link with which a user chooses a new password.
func (p *Platform) linkUser(ctx context.Context, in control.UserRequest) (link string, change hostChange, err error) {
	found, err := p.users.ByEmail(ctx, in.Email, in.Org)
	if err != nil {
		return "", change, err
	}
	switch len(found) {
	case 0:
		return "", change, fmt.Errorf("there is no user %s; soniq admin users add %s makes one", in.Email, in.Email)
	case 1:
		link, err = p.signin.Link(ctx, found[0].OrgID, found[0].ID)
		return link, hostChange{org: found[0].OrgID, record: found[0].ID}, err
	}
	var orgs []string
	for _, u := range found {
		orgs = append(orgs, u.OrgID)
	}
	return "", change, fmt.Errorf("several organisations have a user %s; say which with --org: %s", in.Email, strings.Join(orgs, ", "))
}

func (p *Platform) addStock(ctx context.Context, in control.NumberBlockRequest) (string, hostChange, error) {
	n, err := p.numbers.AddStock(ctx, in.Org, in.Trunk, in.From, in.To)
	return fmt.Sprintf("%d number(s) added", n), hostChange{org: in.Org, record: in.Trunk}, commandError(err)
}

// confirmNetwork confirms that calls of an organisation come from a network.
func (p *Platform) confirmNetwork(ctx context.Context, in control.NetworkRequest) (string, hostChange, error) {
	network, err := p.trunks.Confirm(ctx, in.Org, in.Network)
	return "calls from " + network + " may be for trunks of " + in.Org, hostChange{org: in.Org, record: network}, commandError(err)
}

// confirmNumber confirms that a number belongs to an organisation.
func (p *Platform) confirmNumber(ctx context.Context, in control.NumberRequest) (string, hostChange, error) {
	err := p.numbers.Confirm(ctx, in.Org, in.Number)
	return in.Number + " belongs to " + in.Org, hostChange{org: in.Org, record: in.Number}, commandError(err)
}

func (p *Platform) setPort(ctx context.Context, in control.PortRequest) (string, hostChange, error) {
	port, err := p.numbers.SetPort(ctx, in.Org, in.ID, in.Status, in.Trunk, in.Detail)
	if err != nil {
		return "", hostChange{}, commandError(err)
	}
	return fmt.Sprintf("port %s is %s", port.ID, port.Status), hostChange{org: in.Org, record: port.ID}, nil
}

// backup copies database, keys and recordings into a new folder. Start soniq with --data on that folder to restore. A copy is marked as one
// and sends nothing until the operator confirms it.
func (p *Platform) backup(ctx context.Context, in control.BackupRequest) (string, hostChange, error) {
	s, err := backup.Write(ctx, p.db, p.config.Data, in.To)
	if err != nil {
		return "", hostChange{}, err
	}
	note := ""
	if s.NoDatabase != nil {
		note = " (without the database: " + s.NoDatabase.Error() + ")"
	}
	return fmt.Sprintf("%s: database, keys and %d recordings%s", in.To, s.Recordings, note), hostChange{record: filepath.Base(in.To)}, nil
}

// outbound stops or starts outbound calls of all organisations. Emergency calls are never stopped.
func (p *Platform) outbound(ctx context.Context, in control.OutboundRequest) (string, hostChange, error) {
	change := hostChange{unchanged: in.Do == "status", detail: in.Do}
	if in.Do != "status" {
		if err := p.trunks.SetOutboundKillSwitch(ctx, in.Do == "stop"); err != nil {
			return "", change, err
		}
		p.log.Warn("outbound calls switched by the operator", "do", in.Do)
	}
	ended := 0
	if in.Do == "stop" && in.Calls {
		ended = p.gate.StopAll()
	}
	if err := p.copied.Held(); err != nil {
		return "outbound calls are stopped, but emergency calls: " + err.Error(), change, nil
	}
	halted, err := p.trunks.OutboundKillSwitch(ctx)
	if err != nil {
		return "", change, err
	}
	if halted {
		return fmt.Sprintf("outbound calls are stopped, but emergency calls; %d call(s) were ended", ended), change, nil
	}
	return "outbound calls go out", change, nil
}
