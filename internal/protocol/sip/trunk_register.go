package sip

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Outbound registration with a registrar, such as that of a trunk (RFC 3261 §10.2).

// RegistrationConfig holds the parameters of Register and KeepRegistered.
type RegistrationConfig struct {
	Registrar   Target
	AOR         string // "sip:alice@example.com"
	ContactUser string // user part for incoming calls; that of the AOR if empty
	Credentials Credentials
	Expires     time.Duration            // requested lifetime, 1 h if 0; the registrar may change it
	Retry       time.Duration            // delay after the first failure, doubled up to 5 min; 5 s if 0
	OnChange    func(err error)          // called for each refresh: nil if registered, else the error; may be nil
	OnStatus    func(RegistrationStatus) // called for each attempt, the first and the last one included; may be nil
}

// RegistrationStatus reports the result of an attempt to register.
type RegistrationStatus struct {
	Registered  bool
	Status      int            // of the registrar's response; 408 without one, 503 if it could not be sent, 0 if the registrar was not found
	Reason      string         // of the response, or the error
	Registrar   netip.AddrPort // address of the registrar: calls come from there
	Expires     time.Duration  // granted lifetime
	NextAttempt time.Duration  // until the next attempt, 0 after the last one
}

// ClientRegistration is a registration at a registrar that is refreshed until it ends.
type ClientRegistration struct {
	srv            *Server
	request        RegistrationConfig
	uri            URI // URI of the registrar: the request URI
	flow           flow
	flowResolved   bool // flow is valid; after a failure the registrar is looked up again
	callID         string
	tag            string
	seq            uint32
	digestClient   digestClient
	grantedExpires time.Duration
	failures       int           // failed attempts in a row
	retryAfter     time.Duration // Retry-After of the last response

	stop func()
	done chan struct{}
	once sync.Once
	err  error // error of unregistering
}

// Register registers and returns once that has succeeded. The registration is then refreshed until ctx ends or
// Unregister is called, whichever is first, and then removed at the registrar.
func (s *Server) Register(ctx context.Context, r RegistrationConfig) (*ClientRegistration, error) {
	reg, err := s.newClientRegistration(r)
	if err != nil {
		return nil, err
	}
	if err := reg.resolveRegistrar(ctx); err != nil {
		return nil, fmt.Errorf("sip: register %s: %w", r.AOR, err)
	}
	if err := reg.registerOnce(ctx, reg.request.Expires); err != nil {
		return nil, err
	}
	wait := reg.refreshIn()
	reg.reportAttempt(nil, wait)
	reg.start(ctx, wait)
	return reg, nil
}

// KeepRegistered registers in the background and retries without limit; otherwise it is like Register. It returns an
// error only for an invalid r.
func (s *Server) KeepRegistered(ctx context.Context, r RegistrationConfig) (*ClientRegistration, error) {
	reg, err := s.newClientRegistration(r)
	if err != nil {
		return nil, err
	}
	reg.start(ctx, 0)
	return reg, nil
}

func (s *Server) newClientRegistration(r RegistrationConfig) (*ClientRegistration, error) {
	aor, err := ParseURI(r.AOR)
	if err != nil || !aor.isSIP() {
		return nil, fmt.Errorf("sip: register %s: %w", r.AOR, errURI)
	}
	if r.Expires <= 0 {
		r.Expires = time.Hour
	}
	if r.Retry <= 0 {
		r.Retry = 5 * time.Second
	}
	reg := &ClientRegistration{srv: s, request: r, callID: newCallID(), tag: newTag(), done: make(chan struct{})}
	reg.digestClient.creds = r.Credentials
	reg.uri = URI{Scheme: aor.Scheme, Host: aor.Host, Port: aor.Port}
	return reg, nil
}

func (r *ClientRegistration) start(ctx context.Context, wait time.Duration) {
	keep, stop := context.WithCancel(ctx)
	r.stop = stop
	r.srv.workers.Go(func() { r.keepRefreshed(keep, wait) })
}

// Unregister removes the registration and waits for the registrar's response.
func (r *ClientRegistration) Unregister(ctx context.Context) error {
	r.once.Do(r.stop)
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *ClientRegistration) resolveRegistrar(ctx context.Context) (err error) {
	r.flow, err = r.srv.resolveFlow(ctx, r.request.Registrar, r.uri)
	r.flowResolved = err == nil
	return err
}

// registerOnce registers for expires. It answers challenges and 423.
func (r *ClientRegistration) registerOnce(ctx context.Context, expires time.Duration) error {
	if !r.flowResolved {
		if err := r.resolveRegistrar(ctx); err != nil {
			return fmt.Errorf("sip: register %s: %w", r.request.AOR, err)
		}
	}
	var answered []string
	for try := 0; ; try++ {
		res, err := r.sendRegister(ctx, expires)
		if err != nil {
			return fmt.Errorf("sip: register %s: %w", r.request.AOR, err)
		}
		m := res.message()
		r.retryAfter = 0
		switch {
		case res.status < 300:
			r.grantedExpires = r.grantedBy(m, expires)
			return nil
		case (res.status == 401 || res.status == 407) && r.digestClient.acceptChallenges(m, &answered):
			continue
		case res.status == 423 && try < 8 && expires > 0 && r.raiseExpires(m, &expires):
			continue
		}
		r.flowResolved = res.fromPeer && res.status < 500 // another server of the registrar may accept it
		r.retryAfter = min(time.Duration(failedFrom(m).RetryAfter)*time.Second, maxBackoff)
		return &StatusError{Method: "REGISTER", Status: res.status, Reason: res.reason}
	}
}

// raiseExpires applies the Min-Expires of a 423 (RFC 3261 §10.2.8).
func (r *ClientRegistration) raiseExpires(m *message, expires *time.Duration) bool {
	n, _ := strconv.ParseUint(m.get(fMinExpires), 10, 31)
	d := time.Duration(n) * time.Second
	if d <= *expires {
		return false
	}
	*expires, r.request.Expires = d, d
	return true
}

// grantedBy returns the lifetime granted by the registrar: that of our Contact, or that of the whole response.
func (r *ClientRegistration) grantedBy(m *message, asked time.Duration) time.Duration {
	seconds := m.get(fExpires)
	ours, _ := readAddress(r.contactValue())
	all := m.list(fContact)
	for _, c := range all {
		a, err := readAddress(c)
		if err != nil || len(all) > 1 && !strings.EqualFold(a.uri, ours.uri) {
			continue
		}
		if v, ok := paramOf(a.params, "expires"); ok {
			seconds = v
		}
	}
	if n, err := strconv.ParseUint(seconds, 10, 31); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	return asked
}

func (r *ClientRegistration) contactValue() string {
	u := URI{Scheme: r.uri.Scheme, User: r.request.ContactUser, Host: r.uri.Host}
	if u.User == "" {
		aor, _ := ParseURI(r.request.AOR)
		u.User = aor.User
	}
	return r.srv.contactValue(u.String(), r.flow)
}

// sendRegister sends one REGISTER.
func (r *ClientRegistration) sendRegister(ctx context.Context, expires time.Duration) (*outOfDialogResponse, error) {
	r.flow = r.srv.reconnected(r.flow)
	r.seq++
	aor := "<" + r.request.AOR + ">"
	extra := "Contact: " + r.contactValue() + "\r\nExpires: " + strconv.Itoa(int(expires/time.Second)) + "\r\n"
	return r.srv.sendOutOfDialog(ctx, &outOfDialogRequest{
		method: "REGISTER", uri: r.uri.String(), callID: r.callID, seq: r.seq, flow: r.flow,
		from: aor + ";tag=" + r.tag, to: aor, extraFields: extra + r.digestClient.authorizationFields("REGISTER", r.uri.String(), nil),
	})
}
