// Package smppserver lets programs of organisations send and receive text messages by SMPP 3.4 instead of REST: it keeps their accounts, takes
// what they submit, and brings them receipts and messages until they have acknowledged them.
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
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/protocol/smpp"
)

// An Application is a program that speaks SMPP. Its password is shown when it is made, and never again.
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

// account is what the server knows the application by.
func (a Application) account() string { return a.org + " " + a.ID }

func (a Application) text() smpp.Text {
	alphabet := map[string]smpp.Alphabet{"latin1": smpp.Latin1, "ascii": smpp.ASCII}[a.DefaultAlphabet]
	return smpp.Text{Default: alphabet, GSMAsIA5: a.DefaultAlphabet == "gsm7"}
}

// Config is what the room is built from.
type Config struct {
	DB       *db.DB
	Jobs     *job.Queue
	Messages *sms.Service
	Digest   func(text string) string // recognises a password without keeping it
	Now      func() time.Time
	Node     string
	Log      *slog.Logger
	// Environment is where an organisation is: live or sandbox.
	Environment func(ctx context.Context, org string) (access.Environment, error)
	// Number reads a number as people write it in the country of the organisation, and returns it in E.164.
	Number func(ctx context.Context, org, text string) (e164 string, ok bool, err error)
	// PartsAge is how long the parts of a message are waited for, and known afterwards; 0: 5 minutes.
	PartsAge time.Duration
	// Bans is how strangers are kept from guessing; the zero Bans are 10 wrong passwords a minute, then five minutes and more.
	Bans Bans
}

// Service is the room.
type Service struct {
	Config
	server *smpp.Server
	guard  guard
	wait   sync.WaitGroup

	mu       sync.Mutex // guards what follows
	texts    map[string]smpp.Text
	progress map[string]smpp.Result // of messages of which an application has some parts
}

// New builds the room. Serve opens it.
func New(c Config) (*Service, error) {
	if c.PartsAge == 0 {
		c.PartsAge = 5 * time.Minute
	}
	s := &Service{Config: c, texts: map[string]smpp.Text{}, progress: map[string]smpp.Result{}}
	s.guard.init(c.Bans, c.Now)
	var err error
	s.server, err = smpp.NewServer(smpp.ServerConfig{Authenticate: s.login, Message: s.take, Query: s.query, NewID: func() string { return db.NewID("sms") },
		TextOf: s.textOf, Admit: s.guard.admits, Joined: s.joined, Left: s.left, Parts: parts{s}, PartsAge: c.PartsAge, Enquire: time.Minute, Log: c.Log})
	c.Messages.OnEnd, c.Messages.OnReceived = s.ended, s.received
	return s, err
}

// Serve takes connections until ctx ends, over TLS where c is given.
func (s *Service) Serve(ctx context.Context, l net.Listener, c *tls.Config) error {
	if c != nil {
		l = tls.NewListener(l, c)
	}
	return s.server.Serve(ctx, l)
}

// Close waits for what was begun beside; nobody may ask the room for anything any more.
func (s *Service) Close() { s.wait.Wait() }

// spawn does something that Close waits for.
func (s *Service) spawn(what string, f func(ctx context.Context) error) {
	s.wait.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), aside)
		defer cancel()
		if err := f(ctx); err != nil {
			s.Log.Warn("smpp: "+what, "err", err)
		}
	})
}

// aside is how long what is done beside may take.
const aside = 15 * time.Second

// textOf is how an account writes.
func (s *Service) textOf(account string) smpp.Text {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.texts[account]
	if !ok {
		return smpp.Text{GSMAsIA5: true}
	}
	return t
}

// owner is who an account belongs to.
func owner(account string) (org, id string) {
	org, id, _ = strings.Cut(account, " ")
	return org, id
}

// behalf is the context of what an application does.
func (s *Service) behalf(ctx context.Context, a Application) (context.Context, error) {
	env, err := s.Environment(ctx, a.org)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	return access.With(ctx, access.Principal{OrgID: a.org, KeyName: a.Name, Environment: env}), nil
}
