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
func (h *Platform) operations() []op.Operation {
	all := append(h.contacts.Operations(), h.crm.Operations()...)
	for _, service := range []interface{ Operations() []op.Operation }{h.calls, h.transcripts, h.users, h.agents, h.queues, h.flows, h.voicemail, h.devices, h.memory, h.numbers,
		h.trunks, h.audio, h.counts, h.erasures, h.hooks, h.streams, h.orgs, h.keys, h.partners, h.audit, h.messages, h.smsc, h.esme, h.sandbox} {
		all = append(all, service.Operations()...)
	}
	return all
}

// Actions returns the handlers of the control socket that need no running server.
func (h *Platform) Actions() control.Actions {
	return control.Actions{
		"org.create": action(h.CreateOrg),
		"key.create": action(h.CreateKey),
		"user.add":   action(h.addUser),
		"user.link":  action(h.linkUser),
		"outbound":   action(h.outbound),
		"stock.add":  action(h.addStock),
		"port.set":   action(h.setPort),
		"backup":     action(func(ctx context.Context, in control.BackupRequest) (string, error) { return h.backup(ctx, in.To) }),
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
func (h *Platform) CreateOrg(ctx context.Context, in control.OrgRequest) (string, error) {
	o, err := h.orgs.Create(ctx, in.Name, strings.ToUpper(in.Country))
	return o.ID, plain(err)
}

// CreateKey creates an API key and returns its secret.
func (h *Platform) CreateKey(ctx context.Context, in control.KeyRequest) (string, error) {
	if in.Kind != string(access.StandardKey) && in.Kind != string(access.PartnerKey) {
		return "", errors.New("--kind must be standard or partner")
	}
	if _, err := h.orgs.Get(ctx, in.Org); db.IsNone(err) {
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
	k, err := h.keys.Mint(ctx, auth.Request{OrgID: in.Org, Name: in.Name, Kind: access.Kind(in.Kind), Environment: env, Scopes: scopes,
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
