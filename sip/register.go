package sip

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// Registration is what Register needs.
type Registration struct {
	Registrar   Target
	AOR         string // "sip:alice@example.com"
	Credentials Credentials
	Expires     time.Duration   // asked for, 1 h when 0; the registrar may change it
	OnChange    func(err error) // each refresh: nil when registered, else why not; may be nil
}

// Registered is a registration that is kept alive.
type Registered struct {
	srv     *Server
	request Registration
	flow    flow
	uri     URI // of the registrar: the request URI
	callID  string
	tag     string
	seq     uint32
	granted time.Duration

	stop func()
	gone chan struct{}
	once sync.Once
	err  error // of unregistering
}

// Register registers and returns when that succeeded; it is then refreshed
// until ctx ends or Unregister is called, whichever is first, and removed at
// the registrar.
func (s *Server) Register(ctx context.Context, r Registration) (*Registered, error) {
	aor, err := ParseURI(r.AOR)
	if err != nil {
		return nil, fmt.Errorf("sip: register %s: %w", r.AOR, err)
	}
	reg := &Registered{srv: s, request: r, callID: newCallID(), tag: newTag(), gone: make(chan struct{})}
	reg.uri = URI{Scheme: "sip", Host: aor.Host, Port: aor.Port}
	if reg.request.Expires <= 0 {
		reg.request.Expires = time.Hour
	}
	if reg.flow, err = s.resolve(ctx, r.Registrar, reg.uri); err != nil {
		return nil, fmt.Errorf("sip: register %s: %w", r.AOR, err)
	}
	if err := reg.send(ctx, reg.request.Expires); err != nil {
		return nil, err
	}
	keep, stop := context.WithCancel(ctx)
	reg.stop = stop
	s.workers.Go(func() { reg.keep(keep) })
	return reg, nil
}

// keep refreshes until ctx ends, then unregisters.
func (r *Registered) keep(ctx context.Context) {
	defer close(r.gone)
	wait := r.refreshIn()
	for pauseUntil(ctx, r.srv.done, wait) {
		err := r.send(ctx, r.request.Expires)
		if ctx.Err() == nil && r.request.OnChange != nil {
			r.request.OnChange(err)
		}
		wait = r.refreshIn()
		if err != nil {
			wait = 5*time.Second + rand.N(10*time.Second)
		}
	}
	last, cancel := context.WithTimeout(r.srv.ctx, 5*time.Second)
	defer cancel()
	r.err = r.send(last, 0)
}

// refreshIn is well before the registration runs out.
func (r *Registered) refreshIn() time.Duration {
	return max(r.granted*4/5-rand.N(r.granted/10+1), time.Second)
}

// pauseUntil waits d; false when ctx or the server ended first.
func pauseUntil(ctx context.Context, done <-chan struct{}, d time.Duration) bool {
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

// Unregister removes the registration and waits until that is answered.
func (r *Registered) Unregister(ctx context.Context) error {
	r.once.Do(r.stop)
	select {
	case <-r.gone:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// response is what is kept of a reply that leaves its shard.
type response struct {
	status int
	reason string
	fields []field
}

func (r *response) message() *message { return &message{status: r.status, fields: r.fields} }

// send registers for expires, answering one challenge and one 423.
func (r *Registered) send(ctx context.Context, expires time.Duration) error {
	auth := ""
	for try := 0; ; try++ {
		res, err := r.exchange(ctx, expires, auth)
		if err != nil {
			return fmt.Errorf("sip: register %s: %w", r.request.AOR, err)
		}
		m := res.message()
		switch {
		case res.status < 300:
			r.granted = grantedTo(m, expires)
			return nil
		case (res.status == 401 || res.status == 407) && try < 4:
			line, ok := answerChallenge(m, r.request.Credentials, "REGISTER", r.uri.String())
			if ok && (auth == "" || isStale(m)) {
				auth = line
				continue
			}
		case res.status == 423 && try < 3 && expires > 0:
			n, _ := strconv.Atoi(m.get(fMinExpires))
			if d := time.Duration(n) * time.Second; d > expires {
				expires, auth = d, ""
				r.request.Expires = d
				continue
			}
		}
		return &StatusError{Method: "REGISTER", Status: res.status, Reason: res.reason}
	}
}

func isStale(m *message) (stale bool) {
	for _, k := range []fieldName{fWWWAuthenticate, fProxyAuthenticate} {
		eachParam(m.get(k), func(name, v string) { stale = stale || name == "stale" && (v == "true" || v == "TRUE") })
	}
	return stale
}

// grantedTo is how long the registrar keeps us.
func grantedTo(m *message, asked time.Duration) time.Duration {
	seconds := m.get(fExpires)
	for _, c := range m.list(fContact) {
		if a, err := readAddress(c); err == nil {
			if v, ok := paramOf(a.params, "expires"); ok {
				seconds = v
			}
		}
	}
	if n, err := strconv.Atoi(seconds); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	return asked
}

// exchange sends one REGISTER and waits for its final response.
func (r *Registered) exchange(ctx context.Context, expires time.Duration, auth string) (*response, error) {
	r.flow = r.srv.again(r.flow)
	r.seq++
	branch := rand.Uint64()
	b := r.write(expires, auth, branch)
	result := make(chan *response, 1)
	ok := r.srv.shardOf(r.callID).post(func(s *shard) {
		s.start(clientKey{branch, plainTx}, r.flow, b, func(m *message, status int) {
			if status < 200 {
				return
			}
			res := &response{status: status, reason: phrase(status)}
			if m != nil {
				res.reason = m.reason
				res.fields = append(res.fields, m.fields...)
			}
			result <- res
		})
	})
	if !ok {
		return nil, ErrClosed
	}
	select {
	case res := <-result:
		return res, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.srv.done:
		return nil, ErrClosed
	}
}

func (r *Registered) write(expires time.Duration, auth string, branch uint64) []byte {
	aor := r.request.AOR
	b := r.uri.append([]byte("REGISTER "))
	b = append(b, " SIP/2.0\r\n"...)
	b = r.srv.appendVia(b, r.flow, branch)
	b = appendField(b, "Max-Forwards", "70")
	b = appendField(b, "From", "<"+aor+">;tag="+r.tag)
	b = appendField(b, "To", "<"+aor+">")
	b = appendField(b, "Call-ID", r.callID)
	b = appendField(b, "CSeq", strconv.FormatUint(uint64(r.seq), 10)+" REGISTER")
	b = appendField(b, "Contact", r.srv.contact(aor, r.flow))
	b = appendField(b, "Expires", strconv.Itoa(int(expires/time.Second)))
	b = append(b, auth...)
	return appendBody(b, "", nil)
}
