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
	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
	"soniq/internal/platform/wiring"
	"soniq/internal/telephony/call"
)

// Config holds the dependencies of the service.
type Config struct {
	DB      *db.DB
	Bus     *bus.Bus
	Jobs    *job.Queue
	Seal    *seal.Seal
	Guard   *egress.Guard
	BaseURL string                 // of this server, without a trailing slash; vendors redirect browsers to it
	Apps    map[string]adapter.App // of the operator, by provider
	// Credentials checks the credential that started an authorization.
	Credentials Credentials
	// Browsers finds the person who is signed in in a browser.
	Browsers Browsers
	Contacts *contact.Service
	Log      *slog.Logger
	Clock    clock.Clock `wiring:"optional"`
	Subjects Subjects
}

// Credentials reports whether a credential is still valid.
type Credentials interface {
	Revalidate(ctx context.Context, p access.Principal) error
	// StillHeld returns the scopes that a holder had and still has.
	StillHeld(ctx context.Context, h access.Holder) ([]access.Scope, error)
}

// Browsers returns the person who is signed in in the browser of a request. The key of the principal is the session; it is "" if nobody is
// signed in. If org is the sandbox of the person's organisation, the principal belongs to the sandbox.
type Browsers interface {
	Person(r *http.Request, org string) (access.Principal, error)
}

// Subjects reads the data that is written to connected systems.
type Subjects interface {
	// Note returns a note of a call, or of a contact if callID is "". It returns db.ErrNone if the note was deleted.
	Note(ctx context.Context, org, id, callID string) (call.Note, error)
	// Call returns a call, or db.ErrNone if it was deleted.
	Call(ctx context.Context, org, id string) (call.Call, error)
	// Transcript returns the transcript of a call; "" if there is none (yet).
	Transcript(ctx context.Context, org, callID string) (string, error)
}

// Service manages the connections of organisations. It is safe for concurrent use.
type Service struct {
	cfg   Config
	env   *adapter.Env
	cache *bus.Cache[orgConnections]

	mu           sync.Mutex // guards the rest
	clients      map[string]*connectionClient
	readingLists map[string]bool      // ids of lists that are being read
	noticeRounds map[string]time.Time // end of the current notice round, by connection
	renewals     sync.WaitGroup       // renewals of tokens in progress
}

// orgConnections are the enabled connections of an organisation.
type orgConnections struct {
	sources   []contact.Source
	logsCalls bool // at least one of them takes finished calls
}

// New returns a service.
func New(c Config) *Service {
	wiring.Check(c)
	c.Clock = clock.OrSystem(c.Clock)
	const cacheLife = 30 * time.Second
	return &Service{cfg: c, env: adapter.NewEnv(c.Guard, c.Apps, c.BaseURL+CallbackPath, c.Contacts, c.Clock),
		clients: map[string]*connectionClient{}, readingLists: map[string]bool{},
		noticeRounds: map[string]time.Time{},
		cache:        bus.NewCache[orgConnections](c.Bus, Changed, cacheLife, c.Clock.Now)}
}

// Connected returns the connections of an organisation for lookups. It is cached, because it is called during call
// setup.
func (s *Service) Connected(ctx context.Context, org string) ([]contact.Source, error) {
	k, err := s.cachedConnections(ctx, org)
	return k.sources, err
}

func (s *Service) cachedConnections(ctx context.Context, org string) (orgConnections, error) {
	return s.cache.Get(org, func() (out orgConnections, err error) {
		all, err := s.allConnections(db.Detached(ctx), s.cfg.DB.Read(db.Detached(ctx)), org)
		if err != nil {
			return out, err
		}
		for _, c := range all {
			if !c.enabled {
				continue
			}
			x := contact.Source{ID: c.ID, Name: c.Name, Provider: c.Provider, Priority: c.Priority}
			if l, err := s.clientFor(c); err != nil {
				s.cfg.Log.Error("connection cannot be used", "org", org, "connection", c.ID, "err", err)
			} else if l != nil {
				if _, live := l.searcher(); live {
					x.Live = l
				}
				out.logsCalls = out.logsCalls || l.adapter.Can().CallLog
			}
			out.sources = append(out.sources, x)
		}
		return out, nil
	})
}

// searcher returns the adapter if it can be searched during a call.
func (l *connectionClient) searcher() (adapter.Searcher, bool) {
	if !l.adapter.Can().Lookup {
		return nil, false
	}
	f, ok := l.adapter.(adapter.Searcher)
	return f, ok
}

// allConnections returns the connections of an organisation in the order of their priority, including its own
// contacts.
func (s *Service) allConnections(ctx context.Context, q db.Querier, org string) ([]Connection, error) {
	all, err := listConnections(ctx, q, org)
	if err != nil {
		return nil, fmt.Errorf("list connections: %w", err)
	}
	if !slices.ContainsFunc(all, func(c Connection) bool { return c.ID == contact.InternalID }) {
		all = append(all, internalConnection(org))
	}
	for i := range all {
		if err := s.unsealSettings(&all[i]); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b Connection) int { return a.Priority - b.Priority })
	return all, nil
}

// internalConnection returns the connection that represents an organisation's own contacts. It is used until the
// organisation changes it.
func internalConnection(org string) Connection {
	return Connection{ID: contact.InternalID, Provider: "internal", Name: contact.InternalName, enabled: true, TimeoutMS: defaultTimeout,
		FieldMap: map[string]string{}, org: org}
}

// unsealSettings decrypts the settings of a connection in place.
func (s *Service) unsealSettings(c *Connection) error {
	if len(c.settings) == 0 {
		c.settings = []byte("{}")
		return nil
	}
	plain, err := s.cfg.Seal.Unseal(c.settings, c.settingsAAD())
	if err != nil {
		return fmt.Errorf("read settings of connection %s: %w", c.ID, err)
	}
	c.settings = plain
	return nil
}

// settingsAAD returns the associated data that binds sealed settings to their row.
func (c Connection) settingsAAD() []byte {
	return []byte(c.org + "|crm_connections|" + c.ID + "|settings")
}

// clientFor returns the client of a connection; nil for the organisation's own contacts.
func (s *Service) clientFor(c Connection) (*connectionClient, error) {
	if c.Provider == "internal" {
		return nil, nil
	}
	name := c.org + " " + c.ID
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.clients[name]; l != nil && l.version.Equal(c.updatedAt.Time) {
		return l, nil
	}
	p, ok := adapter.FindProvider(c.Provider)
	if !ok || !p.IsAvailable() {
		return nil, fmt.Errorf("provider %s is not built in", c.Provider)
	}
	a, wrong := s.adapterOf(p, c, c.settings)
	if a == nil {
		return nil, fmt.Errorf("settings of connection %s: %s", c.ID, wrong[0].Message)
	}
	s.clients[name].close()
	s.clients[name] = newConnectionClient(a, c, s.cfg.Clock.Now)
	return s.clients[name], nil
}

// Close waits for renewals of tokens in progress, and closes idle connections to systems.
func (s *Service) Close() {
	s.renewals.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.clients {
		l.close()
	}
}

// close closes the idle connections of an adapter. Requests in progress continue.
func (l *connectionClient) close() {
	if l == nil {
		return
	}
	if c, ok := l.adapter.(io.Closer); ok {
		_ = c.Close()
	}
}

// publishChanged publishes, at commit, that the connections of an organisation have changed.
func (s *Service) publishChanged(tx db.Querier, org string) {
	db.OnCommit(tx, func() {
		s.cfg.Bus.Publish(Changed, org)
		s.cfg.Contacts.InvalidateOrg(org)
	})
}

// fillView sets the fields of a connection that the API shows: status, capabilities, masked settings, health.
func (s *Service) fillView(c *Connection) {
	c.Status = "active"
	p, _ := adapter.FindProvider(c.Provider)
	c.Capabilities = p.Capabilities
	c.Settings = map[string]any{}
	_ = json.Unmarshal(c.settings, &c.Settings)
	c.Settings = op.MaskSettings(c.Settings)
	if c.FieldMap == nil {
		c.FieldMap = map[string]string{}
	}
	if l, err := s.clientFor(*c); err == nil && l != nil {
		c.Capabilities = l.adapter.Can()
		l.health().applyTo(c)
		if _, ok := l.adapter.(adapter.Directory); ok {
			c.NoticeURL = db.Null(s.cfg.BaseURL + s.noticePath(c.org, c.ID)).Ptr()
		}
	}
	if c.refreshError != "" {
		c.LastError, c.Status = &c.refreshError, "degraded"
	}
	s.setGrantStatus(c)
	if !c.enabled {
		c.Status = "disabled"
	}
}

// adapterOf checks settings and builds the adapter of a connection.
func (s *Service) adapterOf(p adapter.Provider, c Connection, raw json.RawMessage) (adapter.Adapter, []op.Violation) {
	tokens := func(d adapter.VendorConnection) adapter.CredentialSource { return &grantTokens{s: s, c: c, p: p, d: d} }
	return p.Adapter(s.env, c.org, c.FieldMap, raw, tokens)
}
