package provisioning

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/device"
)

// Config is what a Server is made of.
type Config struct {
	Devices *device.Service
	Zone    func(ctx context.Context, org string) (*time.Location, error)
	Log     *slog.Logger
	Now     func() time.Time
	// Place is where phones register: a host or address, and the port of each transport.
	Place    func(transport string) (host string, port int)
	Realm    string
	NTP      string
	Interval time.Duration // how often phones fetch their files
	// Plain reports whether a request may be answered though others could read it on its way.
	Plain func(r *http.Request) bool
}

// A Server hands out configurations. It is safe for concurrent use.
type Server struct {
	Config
	door    *door
	limiter *access.Limiter
}

// New makes a server.
func New(c Config) *Server {
	return &Server{Config: c, door: newDoor(c.Realm, c.Now), limiter: access.NewLimiter(c.Now)}
}

var (
	// guesses bounds the tokens that an address may try.
	guesses = access.Policy{Name: "tokens", Quota: 20, Window: time.Minute}
	// fetches bounds what a phone may ask for, and with it the lines of the audit log.
	fetches = access.Policy{Name: "fetches", Quota: 60, Window: time.Minute}
	// logins bounds the wrong passwords that are tried for a phone.
	logins = access.Policy{Name: "logins", Quota: 10, Window: time.Minute}
)

// Serve answers GET /provision/{token}/{file}. private reports whether nobody on the way can read the answer.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, private bool) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	if !private && !s.Plain(r) {
		say(w, http.StatusForbidden, "Configurations carry passwords: ask by https. (--provision-plain names networks that need not.)")
		return
	}
	token, source := r.PathValue("token"), op.Address(op.Source(r.Context()))
	if standing, ok := s.limiter.Take(source, 0, guesses); !ok || standing[0].Left == 0 {
		tooMany(w)
		return
	}
	a, ok, err := s.find(r.Context(), token)
	switch {
	case err != nil:
		s.Log.Error("configuration not found", "err", err)
		say(w, http.StatusInternalServerError, "Something went wrong.")
	case !ok:
		s.limiter.Take(source, 1, guesses)
		nothing(w)
	default:
		s.serve(w, r, a, token)
	}
}

// looks are programs that look at the links in messages before people do; browsers with a person before them say so themselves.
var looks = regexp.MustCompile(`(?i)bot\b|bot/|crawler|spider|preview|facebookexternalhit|whatsapp|linkexpanding`)

const longestToken = 64

func (s *Server) find(ctx context.Context, token string) (a device.Address, ok bool, err error) {
	if len(token) > longestToken {
		return a, false, nil
	}
	return s.Devices.Address(ctx, token)
}

func say(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(words + "\n"))
}

// nothing is the same for everything that there is not.
func nothing(w http.ResponseWriter) { say(w, http.StatusNotFound, "There is nothing here.") }

func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "60")
	say(w, http.StatusTooManyRequests, "Too many requests; try again in a minute.")
}
