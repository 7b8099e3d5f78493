// Package eventstream sends events to clients as server-sent events. A client can resume with Last-Event-ID.
package eventstream

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/event"
	"soniq/internal/platform/limit"
	"soniq/internal/platform/op"
	"soniq/internal/platform/wiring"
)

// Config holds the dependencies of a Service.
type Config struct {
	Outbox *event.Outbox
	// Credentials are those of the clients. Changed is the bus subject of changed ones.
	Credentials Credentials
	Changed     string

	Heartbeat    time.Duration // between comments on a quiet stream; 0: 15 s
	WriteTimeout time.Duration // limit for the client to read sent data; 0: 10 s
}

// Credentials reports what admitted principals may still do.
type Credentials interface {
	// Revalidate returns nil if an admitted principal is still valid.
	Revalidate(ctx context.Context, p access.Principal) error
	// StillHeld returns the scopes that a holder had and still has.
	StillHeld(ctx context.Context, h access.Holder) ([]access.Scope, error)
}

// Service serves the event streams. It is safe for concurrent use.
type Service struct {
	cfg Config

	mu      sync.Mutex // guards closed
	closed  bool
	open    limit.Gate
	newest  *bus.Cache[int64] // newest sequence of an organisation
	stop    chan struct{}
	streams sync.WaitGroup
}

// Limits and times of streams.
const (
	defaultHeartbeat    = 15 * time.Second
	defaultWriteTimeout = 10 * time.Second
	retryAfter          = 15 * time.Second
	pollInterval        = 2 * time.Second // reads the outbox if a wake-up was missed
	newestTTL           = 500 * time.Millisecond
	subscriptionBuffer  = 1024 // buffered announcements; dropped ones are read from the outbox
)

// New returns a service.
func New(c Config) *Service {
	wiring.Check(c)
	if c.Heartbeat == 0 {
		c.Heartbeat = defaultHeartbeat
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = defaultWriteTimeout
	}
	return &Service{cfg: c, stop: make(chan struct{}),
		newest: bus.NewClearedCache[int64](c.Outbox.Bus, event.Wake, newestTTL, time.Now)}
}

// Operations returns the API operations of events.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.NewStream("events.stream", "GET /events/stream", streamScope,
			"Follow what happens, as server-sent events; each kind needs its scope", s.Open).Fails("concurrency_limit", "draining").
			Answers(200, "text/event-stream", nil),
		op.New("events.list", "GET /events", access.UsersAdmin, "List events in their order", s.List),
	}
}

// Close ends every stream and waits for them.
func (s *Service) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stop)
	}
	s.mu.Unlock()
	s.streams.Wait()
}

// In is the request of events.stream.
type In struct {
	Events []string `query:"events" doc:"Only these kinds, such as call.ringing,call.ended" maxItems:"50"`
	CallID string   `query:"call_id" maxLength:"40" doc:"Only those of this call"`
	Queue  string   `query:"queue_id" maxLength:"40" doc:"Only those that name this queue, as waiting, taking or giving calls"`
	UserID string   `query:"user_id" maxLength:"40" doc:"Only those that name this user: as caller, as who answered, rang or is told"`
	Format string   `query:"format" enum:"data,webhook" default:"data" doc:"data: every kind, each event's data. webhook: the kinds of webhooks alone, each with its id and the exact body that webhooks are sent"`
	Timing string   `query:"call_ended_timing" enum:"enriched,immediate" default:"enriched" doc:"With format webhook: when call.ended is told"`
	After  string   `query:"after_sequence" maxLength:"20" doc:"Begin behind this sequence; with what happens from now on unless given"`
	LastID string   `header:"Last-Event-ID" maxLength:"20" doc:"Set by browsers when they connect again; goes before after_sequence"`
}

// position returns the sequence after which the stream begins. ok is false if none was given.
func (in *In) position() (after int64, ok bool, err error) {
	for _, p := range []struct{ field, text string }{{"Last-Event-ID", in.LastID}, {"after_sequence", in.After}} {
		if p.text == "" {
			continue
		}
		n, err := strconv.ParseInt(p.text, 10, 64)
		if err != nil || n < 0 {
			return 0, false, badQuery(op.Field(p.field, "invalid_value", "must be the sequence of an event"))
		}
		return n, true, nil
	}
	return 0, false, nil
}

func badQuery(all ...op.Violation) error {
	return &op.Error{Code: "invalid_query", Detail: all[0].Field + ": " + all[0].Message, Fields: all}
}

// check returns an error for unknown kinds.
func (in *In) check() error {
	var wrong []op.Violation
	for _, name := range in.Events {
		if !slices.Contains(kinds(), event.Kind(name)) {
			wrong = append(wrong, op.Field("events", "unknown_event", "there is no event "+strconv.Quote(name)))
		}
	}
	if len(wrong) > 0 {
		return badQuery(wrong...)
	}
	return nil
}

// Open opens a stream. It ends when the client disconnects or reads too slowly, when its credential is revoked, or
// when the server stops. A client that reconnects with the id of its last event misses none of the stored events,
// which are kept for 30 days.
func (s *Service) Open(ctx context.Context, in *In) (*huma.StreamResponse, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	after, given, err := in.position()
	if err != nil {
		return nil, err
	}
	who, _ := access.From(ctx)
	f := &streamConn{Service: s, principal: who, kinds: visibleKinds(who.Scopes, in.Events), lastSequence: after, write: writeData,
		asked: in.Events, about: subject{CallID: in.CallID, QueueID: in.Queue, UserID: in.UserID}}
	if in.Format == "webhook" {
		f.webhookFormat, f.write = true, writeWebhook(in.Timing)
	}
	f.announcements = s.cfg.Outbox.Bus.Subscribe(event.Stream, subscriptionBuffer)
	newest, err := s.cfg.Outbox.Last(ctx, who.OrgID) // after the subscription, so that no event is missed between the two
	var release func()
	if err == nil {
		release, err = s.acquire(ctx, who)
	}
	if err != nil {
		f.announcements.Close()
		return nil, err
	}
	if !given || f.lastSequence > newest {
		f.lastSequence = newest
	}
	leave := s.cfg.Outbox.Subscribe(who.OrgID, f.followedKinds())
	return &huma.StreamResponse{Body: func(h huma.Context) {
		defer release()
		defer f.announcements.Close()
		defer leave()
		_, w := humago.Unwrap(h)
		f.serve(h.Context(), w)
	}}, nil
}

// acquire takes one of the places of the organisation and of the credential. Tokens and sessions of a user share the places of the user.
func (s *Service) acquire(ctx context.Context, who access.Principal) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, op.Unavailable("draining", "the server is shutting down", "2")
	}
	credential := who.KeyID
	if who.UserID != "" {
		credential = who.UserID
	}
	claims := []limit.Claim{{Limit: limit.EventStreamsOfOrganisation, Key: who.OrgID},
		{Limit: limit.EventStreamsOfCredential, Key: who.OrgID + " " + credential}}
	if who.Kind == access.BrowserSession {
		claims = append(claims, limit.Claim{Limit: limit.EventStreamsOfSession, Key: who.KeyID})
	}
	leave, full := s.open.Enter(ctx, 0, claims...)
	if full != nil {
		return nil, op.TooManyAtOnce(full, "event streams", retryAfter)
	}
	s.streams.Add(1)
	return func() { leave(); s.streams.Done() }, nil
}

// setHeaders sets the headers of a stream. X-Accel-Buffering disables buffering in proxies.
func setHeaders(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
}
