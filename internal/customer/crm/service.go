package crm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/job"
	"soniq/internal/platform/seal"
	"soniq/internal/telephony/call"
)

// Config holds the dependencies of the service.
type Config struct {
	DB      *db.DB
	Bus     *bus.Bus
	Jobs    *job.Queue
	Seal    *seal.Seal
	Guard   *egress.Guard
	BaseURL string         // of this server, without a trailing slash; vendors redirect browsers to it
	Apps    map[string]App // of the operator, by provider
	// CheckCredential reports whether the credential that started an authorization is still valid. nil accepts every
	// credential.
	Valid    func(ctx context.Context, p access.Principal) error
	Contacts *contact.Service
	Log      *slog.Logger
	Now      func() time.Time
	// Note and Call read the data that is written to connected systems. They return db.ErrNone if it was deleted.
	Note func(ctx context.Context, org, id, callID string) (call.Note, error)
	Call func(ctx context.Context, org, id string) (call.Call, error)
	// Transcript returns the transcript of a call; "" if there is none (yet). nil means that there are no
	// transcripts.
	Words func(ctx context.Context, org, callID string) (string, error)
}

// Service manages the connections of organisations. It is safe for concurrent use.
type Service struct {
	Config
	asking, lists *http.Client
	known         *bus.Cache[known]

	mu      sync.Mutex // guards the rest
	lines   map[string]*line
	reading map[string]bool      // ids of lists that are being read
	noticed map[string]time.Time // end of the current notice round, by connection
	running sync.WaitGroup       // renewals of tokens in progress
}

// orgConnections are the enabled connections of an organisation.
type known struct {
	all  []contact.Connected
	logs bool // at least one of them takes finished calls
}

// New returns a service.
func New(c Config) *Service {
	const cacheLife = 30 * time.Second
	return &Service{Config: c, asking: c.Guard.Client(askLimits), lists: c.Guard.Client(readLimits), lines: map[string]*line{}, reading: map[string]bool{},
		noticed: map[string]time.Time{},
		known:   bus.NewCache[known](c.Bus, Changed, cacheLife, c.Now)}
}

// Connected returns the connections of an organisation for lookups. It is cached, because it is called during call
// setup.
func (s *Service) Connected(ctx context.Context, org string) ([]contact.Connected, error) {
	k, err := s.connected(ctx, org)
	return k.all, err
}

func (s *Service) connected(ctx context.Context, org string) (known, error) {
	return s.known.Get(org, func() (out known, err error) {
		all, err := s.all(db.Detached(ctx), s.DB.Read(db.Detached(ctx)), org)
		if err != nil {
			return out, err
		}
		for _, c := range all {
			if !c.enabled {
				continue
			}
			x := contact.Connected{ID: c.ID, Name: c.Name, Provider: c.Provider, Priority: c.Priority}
			if l, err := s.line(c); err != nil {
				s.Log.Error("connection cannot be used", "org", org, "connection", c.ID, "err", err)
			} else if l != nil {
				if _, live := l.finder(); live {
					x.Ask = l.ask
				}
				out.logs = out.logs || l.adapter.Can().CallLog
			}
			out.all = append(out.all, x)
		}
		return out, nil
	})
}

// searcher returns the adapter if it can be searched during a call.
func (l *line) finder() (Finder, bool) {
	if !l.adapter.Can().Lookup {
		return nil, false
	}
	f, ok := l.adapter.(Finder)
	return f, ok
}

// allConnections returns the connections of an organisation in the order of their priority, including its own
// contacts.
func (s *Service) all(ctx context.Context, q db.Querier, org string) ([]Connection, error) {
	all, err := connections(ctx, q, org)
	if err != nil {
		return nil, fmt.Errorf("list connections: %w", err)
	}
	if !slices.ContainsFunc(all, func(c Connection) bool { return c.ID == contact.Internal }) {
		all = append(all, own(org))
	}
	for i := range all {
		if err := s.open(&all[i]); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b Connection) int { return a.Priority - b.Priority })
	return all, nil
}

// internalConnection returns the connection that represents an organisation's own contacts. It is used until the
// organisation changes it.
func own(org string) Connection {
	return Connection{ID: contact.Internal, Provider: "internal", Name: contact.Own, enabled: true, TimeoutMS: defaultTimeout, FieldMap: map[string]string{}, org: org}
}

// unsealSettings decrypts the settings of a connection in place.
func (s *Service) open(c *Connection) error {
	if len(c.settings) == 0 {
		c.settings = []byte("{}")
		return nil
	}
	plain, err := s.Seal.Unseal(c.settings, c.place())
	if err != nil {
		return fmt.Errorf("read settings of connection %s: %w", c.ID, err)
	}
	c.settings = plain
	return nil
}

// settingsAAD returns the associated data that binds sealed settings to their row.
func (c Connection) place() []byte { return []byte(c.org + "|crm_connections|" + c.ID + "|settings") }

// clientFor returns the client of a connection; nil for the organisation's own contacts.
func (s *Service) line(c Connection) (*line, error) {
	if c.Provider == "internal" {
		return nil, nil
	}
	name := c.org + " " + c.ID
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lines[name]; l != nil && l.version.Equal(c.updatedAt.Time) {
		return l, nil
	}
	p, ok := providerOf(c.Provider)
	if !ok || !p.made() {
		return nil, fmt.Errorf("provider %s is not built in", c.Provider)
	}
	a, wrong := p.adapterOf(s, c, c.settings)
	if a == nil {
		return nil, fmt.Errorf("settings of connection %s: %s", c.ID, wrong[0].Message)
	}
	s.lines[name].close()
	s.lines[name] = newLine(a, c, s.Now)
	return s.lines[name], nil
}

// Close waits for renewals of tokens in progress, and closes idle connections to systems.
func (s *Service) Close() {
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		l.close()
	}
}

// close closes the idle connections of an adapter. Requests in progress continue.
func (l *line) close() {
	if l == nil {
		return
	}
	if c, ok := l.adapter.(io.Closer); ok {
		_ = c.Close()
	}
}

// publishChanged publishes, at commit, that the connections of an organisation have changed.
func (s *Service) changed(tx db.Querier, org string) {
	db.OnCommit(tx, func() {
		s.Bus.Publish(Changed, org)
		s.Contacts.Reconnected(org)
	})
}

// fillView sets the fields of a connection that the API shows: status, capabilities, masked settings, health.
func (s *Service) dress(c *Connection) {
	c.Status = "active"
	p, _ := providerOf(c.Provider)
	c.Capabilities = p.can
	c.Settings = map[string]any{}
	_ = json.Unmarshal(c.settings, &c.Settings)
	c.Settings = mask(c.Settings)
	if c.FieldMap == nil {
		c.FieldMap = map[string]string{}
	}
	if l, err := s.line(*c); err == nil && l != nil {
		c.Capabilities = l.adapter.Can()
		l.health().show(c)
		if _, ok := l.adapter.(Directory); ok {
			c.NoticeURL = db.Null(s.BaseURL + s.noticePath(c.org, c.ID)).Ptr()
		}
	}
	if c.refresh != "" {
		c.LastError, c.Status = &c.refresh, "degraded"
	}
	s.dressGrant(c)
	if !c.enabled {
		c.Status = "disabled"
	}
}
