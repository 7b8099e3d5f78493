package sip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Outbound registration with a registrar, such as that of a trunk (RFC 3261 §10.2): refresh, back-off and removal.

// RegistrationConfig holds the parameters of Register and KeepRegistered.
type RegistrationConfig struct {
	Registrar   resolve.Target
	AOR         string // "sip:alice@example.com"
	ContactUser string // user part for incoming calls; that of the AOR if empty
	Credentials digest.Credentials
	Expires     time.Duration            // requested lifetime, 1 h if 0; the registrar may change it
	Retry       time.Duration            // delay after the first failure, doubled up to 5 min; 5 s if 0
	OnChange    func(err error)          // called for each refresh: nil if registered, else the error; may be nil
	OnStatus    func(RegistrationStatus) // called for each attempt, the first and the last one included; may be nil
}

// RegistrationStatus reports the result of an attempt to register.
type RegistrationStatus struct {
	Registered bool
	// of the registrar's response; 408 without one, 503 if it could not be sent, 0 if the registrar was not found
	Status      int
	Reason      string         // of the response, or the error
	Registrar   netip.AddrPort // address of the registrar: calls come from there
	Expires     time.Duration  // granted lifetime
	NextAttempt time.Duration  // until the next attempt, 0 after the last one
}

// ClientRegistration is a registration at a registrar that is refreshed until it ends.
type ClientRegistration struct {
	srv            *Server
	request        RegistrationConfig
	uri            sipmsg.URI // URI of the registrar: the request URI
	flow           transport.Flow
	flowResolved   bool // flow is valid; after a failure the registrar is looked up again
	callID         string
	tag            string
	seq            uint32
	digestClient   digest.Client
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
	aor, err := sipmsg.ParseURI(r.AOR)
	if err != nil || !aor.IsSIP() {
		return nil, fmt.Errorf("sip: register %s: %w", r.AOR, sipmsg.ErrURI)
	}
	if r.Expires <= 0 {
		r.Expires = time.Hour
	}
	if r.Retry <= 0 {
		r.Retry = 5 * time.Second
	}
	reg := &ClientRegistration{srv: s, request: r, callID: sipmsg.NewCallID(), tag: sipmsg.NewTag(), done: make(chan struct{})}
	reg.digestClient = digest.Client{Credentials: r.Credentials, Pins: s.realmPins, Host: firstNonEmpty(r.Registrar.Host, aor.Host)}
	reg.uri = sipmsg.URI{Scheme: aor.Scheme, Host: aor.Host, Port: aor.Port}
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
		case (res.status == 401 || res.status == 407) && r.digestClient.AcceptInitial(m, "REGISTER", &answered):
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
func (r *ClientRegistration) raiseExpires(m *sipmsg.Message, expires *time.Duration) bool {
	n, _ := strconv.ParseUint(m.Get(sipmsg.FieldMinExpires), 10, 31)
	d := time.Duration(n) * time.Second
	if d <= *expires {
		return false
	}
	*expires, r.request.Expires = d, d
	return true
}

// grantedBy returns the lifetime granted by the registrar: that of our Contact, or that of the whole response.
func (r *ClientRegistration) grantedBy(m *sipmsg.Message, asked time.Duration) time.Duration {
	seconds := m.Get(sipmsg.FieldExpires)
	ours, _ := sipmsg.ReadAddress(r.contactValue())
	all := m.List(sipmsg.FieldContact)
	for _, c := range all {
		a, err := sipmsg.ReadAddress(c)
		if err != nil || len(all) > 1 && !sipmsg.SameURI(a.URI, ours.URI) {
			continue
		}
		if v, ok := sipmsg.ParamOf(a.Params, "expires"); ok {
			seconds = v
		}
	}
	if n, err := strconv.ParseUint(seconds, 10, 31); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	return asked
}

func (r *ClientRegistration) contactValue() string {
	u := sipmsg.URI{Scheme: r.uri.Scheme, User: r.request.ContactUser, Host: r.uri.Host}
	if u.User == "" {
		aor, _ := sipmsg.ParseURI(r.request.AOR)
		u.User = aor.User
	}
	return r.srv.layer.ContactValue(u.String(), r.flow)
}

// sendRegister sends one REGISTER.
func (r *ClientRegistration) sendRegister(ctx context.Context, expires time.Duration) (*outOfDialogResponse, error) {
	r.flow = r.srv.layer.Reconnected(r.flow)
	r.seq++
	aor := "<" + r.request.AOR + ">"
	extra := "Contact: " + r.contactValue() + "\r\nExpires: " + strconv.Itoa(int(expires/time.Second)) + "\r\n"
	return r.srv.sendOutOfDialog(ctx, &outOfDialogRequest{
		method: "REGISTER", uri: r.uri.String(), callID: r.callID, seq: r.seq, flow: r.flow,
		from: aor + ";tag=" + r.tag, to: aor, extraFields: extra + r.digestClient.AuthorizationFields("REGISTER", r.uri.String(), nil),
	})
}

const (
	maxBackoff        = 5 * time.Minute
	unregisterTimeout = 5 * time.Second // timeout of unregistering
)

// keepRefreshed refreshes a registration until ctx ends, then removes it.
func (r *ClientRegistration) keepRefreshed(ctx context.Context, wait time.Duration) {
	defer close(r.done)
	for sleepUntil(ctx, r.srv.done, wait) {
		err := r.registerOnce(ctx, r.request.Expires)
		if ctx.Err() != nil {
			break
		}
		wait = r.nextDelay(err)
		if r.request.OnChange != nil {
			r.request.OnChange(err)
		}
		r.reportAttempt(err, wait)
	}
	last, cancel := context.WithTimeout(r.srv.ctx, unregisterTimeout)
	defer cancel()
	if r.grantedExpires > 0 || r.seq > 0 && r.failures == 0 {
		r.err = r.registerOnce(last, 0)
		r.grantedExpires = 0
	}
	s := registrationStatusOf(r.err)
	s.Registered = false
	r.publishStatus(s)
}

// nextDelay returns the delay until the next attempt.
func (r *ClientRegistration) nextDelay(err error) time.Duration {
	if err == nil {
		r.failures = 0
		return r.refreshIn()
	}
	r.failures++
	return r.backoff(err)
}

// refreshIn returns half the granted lifetime, less up to a tenth of that at random.
func (r *ClientRegistration) refreshIn() time.Duration {
	half := r.grantedExpires / 2
	return max(half-rand.N(half/10+1), time.Second)
}

// backoff returns a delay that grows with each failure. It is longer after a permanent refusal, because the registrar
// may ban clients that seem to guess passwords.
func (r *ClientRegistration) backoff(err error) time.Duration {
	wait := min(r.request.Retry<<min(r.failures-1, 16), maxBackoff)
	var status *StatusError
	if errors.As(err, &status) && status.Status >= 400 && status.Status < 500 && status.Status != 408 {
		wait = min(12*r.request.Retry<<min(r.failures-1, 16), maxBackoff)
	}
	wait = max(wait, r.retryAfter)
	return wait - rand.N(wait/4+1)
}

func (r *ClientRegistration) reportAttempt(err error, next time.Duration) {
	s := registrationStatusOf(err)
	s.Expires, s.NextAttempt = r.grantedExpires, next
	if err != nil {
		s.Expires = 0
	}
	r.publishStatus(s)
}

func (r *ClientRegistration) publishStatus(s RegistrationStatus) {
	s.Registrar = r.flow.Addr
	if r.request.OnStatus != nil {
		r.request.OnStatus(s)
	}
}

// registrationStatusOf converts the result of an attempt. A *StatusError gives status and reason, any other error its
// text.
func registrationStatusOf(err error) RegistrationStatus {
	if err == nil {
		return RegistrationStatus{Registered: true, Status: 200, Reason: sipmsg.ReasonPhrase(200)}
	}
	var status *StatusError
	if errors.As(err, &status) {
		return RegistrationStatus{Status: status.Status, Reason: status.Reason}
	}
	return RegistrationStatus{Reason: err.Error()}
}

// sleepUntil waits d. It returns false if ctx or the server ended first.
func sleepUntil(ctx context.Context, done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-done:
	}
	return false
}
