package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"soniq/internal/api/webhook"
	"soniq/internal/control"
	"soniq/internal/identity/auth"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// Keys for commands on the server's own machine. A command that can open the data folder gets a key for as long as it
// runs.

// sessionLife is the expiry of the key of a command that did not return it.
const sessionLife = 24 * time.Hour

// session creates a key.
func (s *Server) session(ctx context.Context, raw json.RawMessage) (any, error) {
	var in control.SessionRequest
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	org, err := s.Platform.onlyOrg(ctx, in.Org)
	if err != nil {
		return nil, err
	}
	env := access.Live
	if in.Env == "test" {
		env = access.Sandbox
	}
	scopes, err := auth.ParseScopes("all", access.StandardKey)
	if err != nil {
		return nil, err
	}
	k, err := s.Platform.keys.CreateKey(ctx, auth.Request{OrgID: org, Name: "command line, while it runs", Environment: env, Scopes: scopes,
		CreatedBy: hostCredential, ExpiresAt: db.At(time.Now().Add(sessionLife))})
	if err != nil {
		return nil, commandError(err)
	}
	if err := s.Platform.auditCommand(ctx, "session", hostChange{org: org, record: k.ID}); err != nil {
		return nil, err
	}
	return control.Session{URL: "http://" + loopbackAddr(s.HTTPAddr()), Key: *k.Secret, KeyID: k.ID,
		HookSecret: webhook.SecretFrom(s.Platform.seal.Key("soniq listen " + org + " " + string(env)))}, nil
}

// onlyOrg returns the named organisation, or the only one if none is named.
func (p *Platform) onlyOrg(ctx context.Context, named string) (string, error) {
	all, err := p.orgs.List(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, o := range all {
		if o.ID == named {
			return named, nil
		}
		names = append(names, fmt.Sprintf("%s (%s)", o.ID, o.Name))
	}
	switch {
	case named != "":
		return "", fmt.Errorf("there is no organisation %s", named)
	case len(all) == 0:
		return "", errors.New("there is no organisation yet; soniq admin orgs create makes one")
	case len(all) > 1:
		return "", fmt.Errorf("there are several organisations; say which with --org: %s", strings.Join(names[:min(len(names), 20)], ", "))
	}
	return all[0].ID, nil
}

// loopbackAddr replaces an unspecified address by the loopback address.
func loopbackAddr(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}
