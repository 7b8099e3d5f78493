package provisioning

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/op"
	"soniq/internal/platform/wiring"
	"soniq/internal/telephony/device"
)

// Config holds the dependencies of a Server.
type Config struct {
	Devices   *device.Service
	Zones     Zones
	Log       *slog.Logger
	Clock     clock.Clock `wiring:"optional"`
	Registrar Registrar
	Realm     string
	NTP       string
	Interval  time.Duration  // between two fetches of a phone
	Plain     []netip.Prefix // networks whose requests are answered without TLS
}

// Zones returns the time zone of an organisation.
type Zones interface {
	Zone(ctx context.Context, org string) (*time.Location, error)
}

// Registrar returns the host or address at which phones register, and the port of the transport.
type Registrar interface {
	RegistrarAddress(transport string) (host string, port int)
}

// Server sends configurations to phones. It is safe for concurrent use.
type Server struct {
	cfg     Config
	auth    *httpAuth
	limiter *access.Limiter
}

// New returns a server.
func New(c Config) *Server {
	wiring.Check(c)
	c.Clock = clock.OrSystem(c.Clock)
	return &Server{cfg: c, auth: newHTTPAuth(c.Realm, c.Clock.Now), limiter: access.NewLimiter(c.Clock.Now)}
}

var (
	// tokenPolicy limits the wrong tokens per source address.
	tokenPolicy = access.Policy{Name: "tokens", Quota: 20, Window: time.Minute}
	// fetchPolicy limits the requests of a phone, and thereby its audit log entries.
	fetchPolicy = access.Policy{Name: "fetches", Quota: 60, Window: time.Minute}
	// loginPolicy limits the wrong passwords per phone.
	loginPolicy = access.Policy{Name: "logins", Quota: 10, Window: time.Minute}
)

// Serve answers GET /provision/{token}/{file}. private reports whether the connection is confidential (TLS).
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, private bool) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	if !private && !s.allowsPlain(r) {
		writeText(w, http.StatusForbidden, "Configurations carry passwords: ask by https. (--provision-plain names networks that need not.)")
		return
	}
	token, source := r.PathValue("token"), op.ClientKey(op.ClientAddress(r.Context()))
	if standing, ok := s.limiter.Take(source, 0, tokenPolicy); !ok || standing[0].Left == 0 {
		tooManyRequests(w)
		return
	}
	a, ok, err := s.findAddress(r.Context(), token)
	switch {
	case err != nil:
		s.cfg.Log.Error("configuration not found", "err", err)
		writeText(w, http.StatusInternalServerError, "Something went wrong.")
	case !ok:
		s.limiter.Take(source, 1, tokenPolicy)
		notFound(w)
	default:
		s.serve(w, r, a, token)
	}
}

// allowsPlain reports whether a request without TLS may be answered.
func (s *Server) allowsPlain(r *http.Request) bool {
	from := op.ClientAddress(r.Context())
	return slices.ContainsFunc(s.cfg.Plain, func(p netip.Prefix) bool { return p.Contains(from) })
}

// linkPreviewAgents matches programs that open links in messages before people do. Browsers are recognised by the
// header Sec-Fetch-Mode: navigate.
var linkPreviewAgents = regexp.MustCompile(`(?i)bot\b|bot/|crawler|spider|preview|facebookexternalhit|whatsapp|linkexpanding`)

const maxTokenLength = 64

func (s *Server) findAddress(ctx context.Context, token string) (a device.ProvisioningAddress, ok bool, err error) {
	if len(token) > maxTokenLength {
		return a, false, nil
	}
	return s.cfg.Devices.FindAddress(ctx, token)
}

func writeText(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(words + "\n"))
}

// notFound sends the same response for every missing address and file, so that it does not reveal which addresses
// exist.
func notFound(w http.ResponseWriter) { writeText(w, http.StatusNotFound, "There is nothing here.") }

func tooManyRequests(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "60")
	writeText(w, http.StatusTooManyRequests, "Too many requests; try again in a minute.")
}
