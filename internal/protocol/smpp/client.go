package smpp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Config configures a client. Address, Dialer, SystemID and Handler are required.
type Config struct {
	Address string      // host:port
	Dialer  Dialer      // the caller can restrict the allowed addresses in it
	TLS     *tls.Config // nil: none
	// SystemID, Password and SystemType are the credentials of the bind.
	SystemID   string
	Password   Secret
	SystemType string
	Range      Address // of recipients whose messages are requested; mostly empty
	// Mode is BindTransceiver (also if zero), BindTransmitter or BindReceiver.
	Mode Command
	Text TextSettings
	IDs  IDs
	// Window limits the unacknowledged messages; default 10.
	Window int
	// PerSecond limits the messages sent per second; 0: no limit.
	PerSecond float64
	// ConnectTimeout bounds connecting and binding (default 10 s), ResponseTimeout any other response (30 s).
	// EnquireInterval is the idle time after which enquire_link is sent (30 s).
	ConnectTimeout, ResponseTimeout, EnquireInterval time.Duration
	// ReconnectDelay is the delay before reconnecting (default 1 s). It doubles up to MaxReconnectDelay (1 min), with
	// jitter.
	ReconnectDelay, MaxReconnectDelay time.Duration
	Handler                           ClientHandler
	// Parts stores the parts of long messages (default NewMemoryPartStore()). Messages that are incomplete after
	// PartsAge (default 5 min) are passed on as they are.
	Parts    PartStore
	PartsAge time.Duration
	Log      *slog.Logger // nil: nothing is logged
}

// Dialer connects to the SMSC. *net.Dialer implements it.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// ClientHandler handles what the SMSC sends. After an error the SMSC keeps the message and sends it again; a Status is sent as it is.
type ClientHandler interface {
	// Message is called for received messages, in order; incomplete messages may be passed concurrently.
	Message(ctx context.Context, in Incoming) error
	// Receipt is called for receipts, several at the same time. A receipt may arrive before Submit has returned.
	Receipt(ctx context.Context, r Receipt) error
	// StateChanged is called with nil after a bind, and with the reason when it has ended; it must not block.
	StateChanged(why error)
}

func (c Config) withDefaults() Config {
	setDefault(&c.Mode, BindTransceiver)
	setDefault(&c.Window, 10)
	setDefault(&c.ConnectTimeout, 10*time.Second)
	setDefault(&c.ResponseTimeout, 30*time.Second)
	setDefault(&c.EnquireInterval, 30*time.Second)
	setDefault(&c.ReconnectDelay, time.Second)
	setDefault(&c.MaxReconnectDelay, time.Minute)
	setDefault(&c.PartsAge, 5*time.Minute)
	setDefault(&c.Log, slog.New(slog.DiscardHandler))
	if c.Parts == nil {
		c.Parts = NewMemoryPartStore()
	}
	return c
}

// setDefault sets a value that is zero.
func setDefault[T comparable](v *T, standard T) {
	var none T
	if *v == none {
		*v = standard
	}
}

// Client keeps one bind to an SMSC open.
type Client struct {
	config        Config
	receiver      *receiver
	pacer         *pacer
	lastReference atomic.Uint32 // last reference of a concatenated message
	mu            sync.Mutex
	session       *session
	changed       chan struct{} // closed when session changes
	failure       error         // reason for which there is no bind
}

// New returns a client; Run connects it.
func New(c Config) (*Client, error) {
	c = c.withDefaults()
	switch {
	case c.Address == "" || c.Dialer == nil || c.SystemID == "" || c.Handler == nil:
		return nil, errors.New("smpp: a client needs Address, Dialer, SystemID and Handler")
	case !c.Mode.isBind():
		return nil, errors.New("smpp: a client binds as transceiver, transmitter or receiver")
	case c.Window < 0 || c.Window > 1000 || c.PerSecond < 0 || c.ReconnectDelay < 0 || c.MaxReconnectDelay < c.ReconnectDelay:
		return nil, errors.New("smpp: Window must be 1 to 1000, and MaxReconnectDelay at least ReconnectDelay")
	}
	if _, err := (PDU{Command: c.Mode, Body: c.bind()}).Encode(); err != nil {
		return nil, err
	}
	cl := &Client{config: c, pacer: &pacer{}, changed: make(chan struct{}), failure: ErrNotBound}
	if c.PerSecond > 0 {
		cl.pacer.interval = time.Duration(float64(time.Second) / c.PerSecond)
	}
	cl.lastReference.Store(rand.Uint32())
	cl.receiver = &receiver{text: c.Text, ids: c.IDs, parts: c.Parts, message: c.Handler.Message, receipt: c.Handler.Receipt,
		errorStatus: TemporaryAppError, log: c.Log}
	return cl, nil
}

func (c Config) bind() *Bind {
	return &Bind{SystemID: c.SystemID, Password: c.Password, SystemType: c.SystemType, InterfaceVersion: version, Range: c.Range}
}

// version is our interface_version, 3.4.
const version = 0x34

// Run connects, and reconnects whenever the bind ends or is refused, until ctx ends; then it unbinds.
func (c *Client) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.receiver.sweep(ctx, c.config.PartsAge) })
	for pause := c.config.ReconnectDelay; ctx.Err() == nil; pause = min(2*pause, c.config.MaxReconnectDelay) {
		began := time.Now()
		bound, err := c.runOnce(ctx)
		c.setState(nil, err)
		c.config.Log.Warn("smpp: the bind has ended", "centre", c.config.Address, "system_id", c.config.SystemID, "was_bound", bound,
			"error", err)
		if bound && time.Since(began) > c.config.MaxReconnectDelay {
			pause = c.config.ReconnectDelay
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2+1)):
		}
	}
}

// runOnce connects, binds, and returns when that bind has ended.
func (c *Client) runOnce(ctx context.Context) (bound bool, err error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return false, err
	}
	s := newSession(conn, timeouts{response: c.config.ResponseTimeout, enquire: c.config.EnquireInterval}, c.config.Window)
	s.handle, s.unordered, s.fullStatus = c.handle, isReceipt, TemporaryAppError
	var wg sync.WaitGroup
	wg.Go(func() { bound = c.login(ctx, s) })
	err = s.run(ctx)
	wg.Wait()
	return bound, err
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.ConnectTimeout)
	defer cancel()
	conn, err := c.config.Dialer.DialContext(ctx, "tcp", c.config.Address)
	if err != nil || c.config.TLS == nil {
		return conn, err
	}
	settings := c.config.TLS.Clone()
	if host, _, err := net.SplitHostPort(c.config.Address); err == nil && settings.ServerName == "" {
		settings.ServerName = host
	}
	secure := tls.Client(conn, settings)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

func (c *Client) login(ctx context.Context, s *session) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.ConnectTimeout, ErrNoResponse)
	defer cancel()
	a, err := s.exchange(ctx, PDU{Command: c.config.Mode, Body: c.config.bind()})
	switch {
	case err != nil:
		s.end(err)
	case a.Status != OK:
		s.end(statusError(a.Status))
	case a.Command != c.config.Mode.Response():
		s.end(ErrFrame)
	default:
		c.setState(s, nil)
		c.config.Log.Info("smpp: bound", "centre", c.config.Address, "system_id", c.config.SystemID)
		return true
	}
	return false
}

func (c *Client) setState(s *session, why error) {
	c.mu.Lock()
	c.session, c.failure = s, why
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	c.config.Handler.StateChanged(why)
}

func (c *Client) current() (*session, <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.changed, c.failure
}

// State returns nil while bound, else ErrNotBound with the reason.
func (c *Client) State() error {
	s, _, why := c.current()
	if s != nil {
		return nil
	}
	return errors.Join(ErrNotBound, why)
}

// WaitBound waits until there is a bind, or returns the error of ctx.
func (c *Client) WaitBound(ctx context.Context) error {
	for {
		s, change, _ := c.current()
		if s != nil {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Submit sends a message and waits until the SMSC has accepted all of its parts. The error is an *Error; its Outcome
// determines whether to retry. Without a bind it returns a Retryable error at once.
func (c *Client) Submit(ctx context.Context, o Outgoing) (Result, error) {
	s, _, why := c.current()
	switch {
	case c.config.Mode == BindReceiver:
		return Result{}, &Error{Outcome: Permanent, Part: 1, Err: ErrForbidden}
	case s == nil:
		return Result{Reference: o.Reference, MessageIDs: o.Sent}, &Error{Outcome: Retryable, Part: len(o.Sent) + 1,
			Err: errors.Join(ErrNotBound, why)}
	}
	o.Reference = nextReference(o.Reference, &c.lastReference, c.config.Text.Long)
	return sender{s, SubmitSM, c.config.Text, c.config.IDs, c.pacer}.send(ctx, o)
}

// Query requests the state of a message, by the identifier as the SMSC gave it and the sender's address.
func (c *Client) Query(ctx context.Context, messageID string, from Address) (QueryResponse, error) {
	s, _, why := c.current()
	if s == nil {
		return QueryResponse{}, &Error{Outcome: Retryable, Part: 1, Err: errors.Join(ErrNotBound, why)}
	}
	a, err := s.request(ctx, PDU{Command: QuerySM, Body: &Query{MessageID: messageID, Source: from}})
	if err != nil {
		return QueryResponse{}, err
	}
	answer, _ := a.Body.(*QueryResponse)
	return *answer, nil
}

// isReceipt reports whether a request is a receipt. Receipts need no order.
func isReceipt(p PDU) bool {
	m, ok := p.Body.(*Message)
	if !ok {
		return false
	}
	kind := m.ESMClass & 0x3c
	return kind == 0x04 || kind == 0x20 || m.TLVs.Text(TagReceiptedMessageID) != ""
}

// handle handles a request of the SMSC.
func (c *Client) handle(ctx context.Context, p PDU) reply {
	m, ok := p.Body.(*Message)
	switch {
	case !ok || p.Command == SubmitSM:
		return reply{status: BadCommand}
	case c.config.Mode == BindTransmitter:
		return reply{status: BadBindState}
	}
	_, status := c.receiver.receive(ctx, "", "", m)
	if status != OK {
		return reply{status: status}
	}
	return reply{body: &MessageResponse{}}
}
