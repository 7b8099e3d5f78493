package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"soniq/internal/control"
	"soniq/internal/identity/auth"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// operations returns every operation of the API.
func (p *Platform) operations() []op.Operation {
	all := append(p.contacts.Operations(), p.crm.Operations()...)
	for _, service := range []interface{ Operations() []op.Operation }{p.calls, p.transcripts, p.users, p.agents, p.queues, p.flows, p.voicemail, p.devices, p.memory, p.numbers,
		p.trunks, p.audio, p.counts, p.erasures, p.hooks, p.streams, p.orgs, p.keys, p.partners, p.audit, p.messages, p.smsc, p.esme, p.sandbox} {
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
		"port.set":   action(p.setPort),
		"backup":     action(func(ctx context.Context, in control.BackupRequest) (string, error) { return p.backup(ctx, in.To) }),
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
	return o.ID, plain(err)
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
		return "", plain(err)
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
		return "", plain(err)
	}
	return *k.Secret, nil
}

// plain turns an error of the API into words for the command line.
func plain(err error) error {
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
