package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	for _, service := range []interface{ Operations() []op.Operation }{p.callbacks, p.transcripts, p.users, p.agents, p.queues, p.flows,
		p.voicemail, p.devices, p.memory, p.numbers,
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
		"org.create": action(p.CreateOrg),
		"key.create": action(p.CreateKey),
		"user.add":   action(p.addUser),
		"user.link":  action(p.linkUser),
		"outbound":   action(p.outbound),
		"stock.add":  action(p.addStock),
		"network":    action(p.confirmNetwork),
		"number":     action(p.confirmNumber),
		"port.set":   action(p.setPort),
		"clock":      action(p.confirmClock),
		"backup":     action(p.backup),
	}
}

func action[I any](do func(ctx context.Context, in I) (string, error)) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var in I
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, err
		}
		return do(ctx, in)
	}
}

// CreateOrg creates an organisation and returns its id.
func (p *Platform) CreateOrg(ctx context.Context, in control.OrgRequest) (string, error) {
	o, err := p.orgs.Create(ctx, in.Name, strings.ToUpper(in.Country))
	return o.ID, commandError(err)
}

// CreateKey creates an API key and returns its secret.
func (p *Platform) CreateKey(ctx context.Context, in control.KeyRequest) (string, error) {
	if in.Kind != string(access.StandardKey) && in.Kind != string(access.PartnerKey) {
		return "", errors.New("--kind must be standard or partner")
	}
	if _, err := p.orgs.Get(ctx, in.Org); db.IsNone(err) {
		return "", fmt.Errorf("there is no organisation %s", in.Org)
	}
	scopes, err := auth.ParseScopes(in.Scopes, access.Kind(in.Kind))
	if err != nil {
		return "", commandError(err)
	}
	env := access.Live
	if in.Env == "test" {
		env = access.Sandbox
	} else if in.Env != "live" {
		return "", errors.New("--env must be live or test")
	}
	k, err := p.keys.CreateKey(ctx, auth.Request{OrgID: in.Org, Name: in.Name, Kind: access.Kind(in.Kind), Environment: env, Scopes: scopes,
		CreatedBy: "command line"})
	if err != nil {
		return "", commandError(err)
	}
	return *k.Secret, nil
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

// addUser creates a user without a phone, and returns a link to choose a password.
func (p *Platform) addUser(ctx context.Context, in control.UserRequest) (string, error) {
	org, err := p.onlyOrg(ctx, in.Org)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(in.Email, "@")
	no := false
	u, err := p.users.Create(ctx, org, user.Fresh{Email: in.Email, FirstName: cmp.Or(in.First, name), LastName: in.Last, Role: in.Role,
		SendInvite: &no, ProvisionSIP: &no})
	if err != nil {
		return "", commandError(err)
	}
	return p.signin.Link(ctx, org, u.ID)
}

// linkUser returns a link with which a user chooses a new password.
func (p *Platform) linkUser(ctx context.Context, in control.UserRequest) (string, error) {
	found, err := p.users.ByEmail(ctx, in.Email, in.Org)
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("there is no user %s; soniq admin users add %s makes one", in.Email, in.Email)
	case 1:
		return p.signin.Link(ctx, found[0].OrgID, found[0].ID)
	}
	var orgs []string
	for _, u := range found {
		orgs = append(orgs, u.OrgID)
	}
	return "", fmt.Errorf("several organisations have a user %s; say which with --org: %s", in.Email, strings.Join(orgs, ", "))
}

func (p *Platform) addStock(ctx context.Context, in control.NumberBlockRequest) (string, error) {
	n, err := p.numbers.AddStock(ctx, in.Org, in.Trunk, in.From, in.To)
	if err != nil {
		return "", commandError(err)
	}
	return fmt.Sprintf("%d number(s) added", n), nil
}

// confirmNetwork confirms that calls of an organisation come from a network.
func (p *Platform) confirmNetwork(ctx context.Context, in control.NetworkRequest) (string, error) {
	network, err := p.trunks.Confirm(ctx, in.Org, in.Network)
	if err != nil {
		return "", commandError(err)
	}
	return "calls from " + network + " may be for trunks of " + in.Org, nil
}

// confirmNumber confirms that a number belongs to an organisation.
func (p *Platform) confirmNumber(ctx context.Context, in control.NumberRequest) (string, error) {
	if err := p.numbers.Confirm(ctx, in.Org, in.Number); err != nil {
		return "", commandError(err)
	}
	return in.Number + " belongs to " + in.Org, nil
}

func (p *Platform) setPort(ctx context.Context, in control.PortRequest) (string, error) {
	port, err := p.numbers.SetPort(ctx, in.Org, in.ID, in.Status, in.Trunk, in.Detail)
	if err != nil {
		return "", commandError(err)
	}
	return fmt.Sprintf("port %s is %s", port.ID, port.Status), nil
}

// backup copies database, keys and recordings into a new folder. Start soniq with --data on that folder to restore. The copy knows that it
// is one and sends nothing until the operator confirms it.
func (p *Platform) backup(ctx context.Context, in control.BackupRequest) (string, error) {
	s, err := backup.Write(ctx, p.db, p.config.Data, in.To)
	if err != nil {
		return "", err
	}
	note := ""
	if s.NoDatabase != nil {
		note = " (without the database: " + s.NoDatabase.Error() + ")"
	}
	return fmt.Sprintf("%s: database, keys and %d recordings%s", in.To, s.Recordings, note), nil
}

// outbound stops or starts outbound calls of all organisations. Emergency calls are never stopped.
func (p *Platform) outbound(ctx context.Context, in control.OutboundRequest) (string, error) {
	if in.Do != "status" {
		if err := p.trunks.SetOutboundKillSwitch(ctx, in.Do == "stop"); err != nil {
			return "", err
		}
		p.log.Warn("outbound calls switched by the operator", "do", in.Do)
	}
	ended := 0
	if in.Do == "stop" && in.Calls {
		ended = p.gate.StopAll()
	}
	if err := p.copied.Held(); err != nil {
		return "outbound calls are stopped, but emergency calls: " + err.Error(), nil
	}
	halted, err := p.trunks.OutboundKillSwitch(ctx)
	if err != nil {
		return "", err
	}
	if halted {
		return fmt.Sprintf("outbound calls are stopped, but emergency calls; %d call(s) were ended", ended), nil
	}
	return "outbound calls go out", nil
}
