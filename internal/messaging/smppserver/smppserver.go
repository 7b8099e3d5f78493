// Package smppserver is an SMPP 3.4 server (SMSC) for applications of organisations, as an alternative to REST. It
// manages their accounts, accepts messages, and delivers receipts and received messages until they are acknowledged.
package smppserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/wiring"
	"soniq/internal/protocol/smpp"
)

// Application is an SMPP client (ESME) of an organisation. Its password is shown once, when it is created.
type Application struct {
	ID              string   `json:"id" example:"sma_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name            string   `json:"name"`
	SystemID        string   `json:"system_id" doc:"What it logs in as; nobody else on the server has it" example:"k7q2m9x4b1zt"`
	Enabled         bool     `json:"enabled"`
	Numbers         []string `json:"numbers" nullable:"false" doc:"Numbers it sends from, and whose messages it gets; none: all that have messages enabled"`
	MaxBinds        int      `json:"max_binds" doc:"Connections at once"`
	RatePerSecond   int      `json:"rate_per_second" doc:"Messages, or parts of them, that are taken in a second on all connections together"`
	DefaultAlphabet string   `json:"default_alphabet" enum:"gsm7,latin1,ascii" doc:"What data_coding 0 means. With gsm7 data_coding 1 is GSM 7 bit too, else ASCII"`
	Bound           int      `json:"bound" doc:"Connections at the moment, at the node that is asked"`
	CreatedAt       db.Time  `json:"created_at"`
	UpdatedAt       db.Time  `json:"updated_at"`

	org    string
	digest string // of the password
}

// account returns the account name of the application in package smpp.
func (a Application) account() string { return a.org + " " + a.ID }

func (a Application) textSettings() smpp.TextSettings {
	alphabet := map[string]smpp.Alphabet{"latin1": smpp.Latin1, "ascii": smpp.ASCII}[a.DefaultAlphabet]
	return smpp.TextSettings{Default: alphabet, GSMAsIA5: a.DefaultAlphabet == "gsm7"}
}

// Config has the dependencies of the service.
type Config struct {
	DB       *db.DB
	Jobs     *job.Queue
	Messages *sms.Service
	Digester sms.Digester // digests passwords and submissions
	Clock    clock.Clock  // nil: the system clock
	Node     string
	Log      *slog.Logger
	Numbers  sms.Numbers
	// Environments returns the environment of an organisation.
	Environments Environments
	// PartsAge is the time to wait for missing parts of a message, and to recognise repeated ones; 0: 5 minutes.
	PartsAge time.Duration
	// Bans limits password guessing. The zero value bans an address after 10 wrong passwords a minute, for five
	// minutes and more.
	Bans BanConfig
	// MayDelete is asked before parts and submissions are deleted by age.
	MayDelete clock.DeletionGate
}

// Environments returns the environment of an organisation: live or sandbox.
type Environments interface {
	Environment(ctx context.Context, org string) (access.Environment, error)
}

// Service is the SMPP server with its accounts. It is safe for concurrent use.
type Service struct {
	cfg     Config
	server  *smpp.Server
	guard   loginGuard
	running sync.WaitGroup

	mu            sync.Mutex // guards the fields below
	textByAccount map[string]smpp.TextSettings
	progress      map[string]smpp.Result // messages of which an application has accepted some parts, by job
}

// New returns a service that does not listen yet; call Serve for that. The service observes the message service.
func New(c Config) (*Service, error) {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	if c.PartsAge == 0 {
		c.PartsAge = 5 * time.Minute
	}
	s := &Service{cfg: c, textByAccount: map[string]smpp.TextSettings{}, progress: map[string]smpp.Result{}}
	s.guard.init(c.Bans, c.Clock.Now)
	var err error
	s.server, err = smpp.NewServer(smpp.ServerConfig{Handler: handler{s}, Binds: handler{s}, Parts: partStore{s}, PartsAge: c.PartsAge,
		EnquireInterval: time.Minute, Log: c.Log})
	c.Messages.Observe(s)
	return s, err
}

// Serve accepts connections until ctx ends, over TLS if c is not nil.
func (s *Service) Serve(ctx context.Context, l net.Listener, c *tls.Config) error {
	if c != nil {
		l = tls.NewListener(l, c)
	}
	return s.server.Serve(ctx, l)
}

// Close waits for background work. The service must not be used afterwards.
func (s *Service) Close() { s.running.Wait() }

// background runs a function in a goroutine for which Close waits. what is the log text for an error.
func (s *Service) background(what string, f func(ctx context.Context) error) {
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), backgroundTimeout)
		defer cancel()
		if err := f(ctx); err != nil {
			s.cfg.Log.Warn("smpp: "+what, "err", err)
		}
	})
}

// backgroundTimeout bounds background work.
const backgroundTimeout = 15 * time.Second

// textSettings returns the alphabet settings of an account.
func (s *Service) textSettings(account string) smpp.TextSettings {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.textByAccount[account]
	if !ok {
		return smpp.TextSettings{GSMAsIA5: true}
	}
	return t
}

// splitAccount returns the organisation and the application of an account name.
func splitAccount(account string) (org, id string) {
	org, id, _ = strings.Cut(account, " ")
	return org, id
}

// withPrincipal returns a context with the application as the principal.
func (s *Service) withPrincipal(ctx context.Context, a Application) (context.Context, error) {
	env, err := s.cfg.Environments.Environment(ctx, a.org)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	return access.With(ctx, access.Principal{OrgID: a.org, KeyName: a.Name, Environment: env}), nil
}
