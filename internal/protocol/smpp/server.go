package smpp

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Login has the credentials of a client.
type Login struct {
	SystemID   string
	Password   Secret
	SystemType string
	Mode       Command // BindTransceiver, BindTransmitter or BindReceiver
	Remote     net.Addr
}

// Account is the account of an authenticated client.
type Account struct {
	ID         string  // chosen by the caller; used in Deliver
	MaxBinds   int     // limit of concurrent binds; 0: 10
	PerSecond  float64 // messages accepted on all of its binds together, others are throttled; 0: no limit
	MaxPending int     // messages of a bind that wait to be handled, up to 64; others are throttled; 0: 64
}

// Handler authenticates clients and handles what they send.
type Handler interface {
	// Authenticate checks the credentials of a client. The client does not receive the reason of an error.
	Authenticate(ctx context.Context, l Login) (Account, error)
	// Message is called for submitted messages. An error refuses the message: with the Status, or with SystemError
	// for other errors. Of a long message the last part is refused; the others stay stored until it is sent again.
	Message(ctx context.Context, in Incoming) error
	// Query returns the state of a message of an account. After an error query_sm fails.
	Query(ctx context.Context, account, messageID string) (QueryResponse, error)
	// NewID returns the identifier of a message, up to 64 characters; "": a random number of up to 19 digits.
	NewID() string
}

// Binds controls and observes binds.
type Binds interface {
	// AllowSource reports whether an address may connect.
	AllowSource(host string) bool
	// TextOf returns the text settings of an account.
	TextOf(account string) TextSettings
	// Bound is called when an account has a new bind that receives messages, Unbound when one of its binds has
	// ended; the reason is ErrUnbound if the client has sent unbind. Neither may wait for this bind.
	Bound(account string)
	Unbound(account, bind string, why error)
}

// ServerConfig configures a server. Handler is required.
type ServerConfig struct {
	SystemID string // in bind responses; default "soniq"
	Handler  Handler
	Binds    Binds       // nil: all addresses may connect, and Text is for all accounts
	TLS      *tls.Config // nil: none
	Text     TextSettings
	// Connections limits the connections, bound or not; default 100. Half of them may be from one address. If all are
	// taken, a new one replaces the one that has waited longest for a bind.
	Connections int
	// Window limits the unacknowledged messages to a client; default 10.
	Window int
	// LoginTimeout is the time for a client to bind (default 10 s), ResponseTimeout the time for any response (30 s).
	// IdleTimeout is the time without requests after which a client is unbound (2 min). EnquireInterval is the idle
	// time before enquire_link (0: never).
	LoginTimeout, ResponseTimeout, IdleTimeout, EnquireInterval time.Duration
	Parts                                                       PartStore // as in Config
	PartsAge                                                    time.Duration
	Log                                                         *slog.Logger
}

func (c ServerConfig) withDefaults() ServerConfig {
	setDefault(&c.SystemID, "soniq")
	setDefault(&c.Connections, 100)
	setDefault(&c.Window, 10)
	setDefault(&c.LoginTimeout, 10*time.Second)
	setDefault(&c.ResponseTimeout, 30*time.Second)
	setDefault(&c.IdleTimeout, 2*time.Minute)
	setDefault(&c.PartsAge, 5*time.Minute)
	setDefault(&c.Log, slog.New(slog.DiscardHandler))
	if c.Parts == nil {
		c.Parts = NewMemoryPartStore()
	}
	return c
}

func randomID() string {
	var b [8]byte
	rand.Read(b[:])
	return strconv.FormatUint(binary.BigEndian.Uint64(b[:])>>1, 10)
}

// Server is an SMSC to which clients bind.
type Server struct {
	config        ServerConfig
	receiver      *receiver
	lastReference atomic.Uint32 // last reference of a concatenated message
	mu            sync.Mutex
	open          int
	sources       map[string]int        // open connections by address
	binds         map[string][]*binding // by account
	unbound       []*binding            // connections without a bind, the oldest first
	rotation      int
}

// NewServer returns a server; Serve runs it.
func NewServer(c ServerConfig) (*Server, error) {
	c = c.withDefaults()
	if c.Handler == nil {
		return nil, errors.New("smpp: a server needs a Handler")
	}
	s := &Server{config: c, binds: map[string][]*binding{}, sources: map[string]int{}}
	s.receiver = &receiver{text: c.Text, parts: c.Parts, message: c.Handler.Message, newID: s.newID, errorStatus: SystemError, log: c.Log}
	if c.Binds != nil {
		s.receiver.textOf = c.Binds.TextOf
	}
	return s, nil
}

// newID returns the identifier of a message.
func (s *Server) newID() string {
	if id := s.config.Handler.NewID(); id != "" {
		return id
	}
	return randomID()
}

// Serve accepts connections until ctx ends; then it unbinds all of them, closes the listener and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { <-ctx.Done(); l.Close() })
	wg.Go(func() { s.receiver.sweep(ctx, s.config.PartsAge) })
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // too many open files, or the client has disconnected already
			s.config.Log.Warn("smpp: a connection was not accepted", "error", err)
			sleepContext(ctx, 50*time.Millisecond)
		case s.config.Binds != nil && !s.config.Binds.AllowSource(host(conn)) || !s.acquireConnection(host(conn)):
			conn.Close()
		default:
			wg.Go(func() { defer s.releaseConnection(host(conn)); s.serve(ctx, conn) })
		}
	}
}

func sleepContext(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// host returns a client's address without the port.
func host(c net.Conn) string {
	h, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	return h
}

func (s *Server) serve(ctx context.Context, conn net.Conn) {
	if s.config.TLS != nil {
		conn = tls.Server(conn, s.config.TLS)
	}
	c := s.config
	b := &binding{server: s, id: randomID(), ready: make(chan struct{}),
		session: newSession(conn, timeouts{response: c.ResponseTimeout, enquire: c.EnquireInterval, idle: c.IdleTimeout}, c.Window)}
	b.session.handle, b.session.admit, b.session.fullStatus = b.handle, b.admit, Throttled
	s.awaitBind(b)
	late := time.AfterFunc(c.LoginTimeout, func() {
		if b.boundAccount.Load() == nil {
			b.session.end(ErrNotBound)
		}
	})
	defer late.Stop()
	err := b.session.run(ctx)
	s.remove(b)
	if c.Binds != nil && b.account() != "" {
		c.Binds.Unbound(b.account(), b.id, err)
	}
	c.Log.Info("smpp: a client has disconnected", "account", b.account(), "remote", conn.RemoteAddr(), "error", err)
}

// add counts a bind, unless its account has too many.
func (s *Server) add(b *binding, a Account) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	setDefault(&a.MaxBinds, 10)
	if len(s.binds[a.ID]) >= a.MaxBinds {
		return false
	}
	if others := s.binds[a.ID]; len(others) > 0 {
		b.limiter = others[0].limiter
	}
	b.limiter = setMessageRate(b.limiter, a.PerSecond)
	s.endWait(b)
	s.binds[a.ID] = append(s.binds[a.ID], b)
	return true
}

func (s *Server) remove(b *binding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endWait(b)
	var left []*binding
	for _, other := range s.binds[b.account()] {
		if other != b {
			left = append(left, other)
		}
	}
	if s.binds[b.account()] = left; left == nil {
		delete(s.binds, b.account())
	}
}

// Disconnect unbinds all clients of an account.
func (s *Server) Disconnect(account string) {
	s.mu.Lock()
	all := slices.Clone(s.binds[account])
	s.mu.Unlock()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, b := range all {
		wg.Go(b.session.shutdown)
	}
}

// IsBound reports whether a bind is connected.
func (s *Server) IsBound(account, bind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.binds[account], func(b *binding) bool { return b.id == bind })
}

// nextBinding returns a bind of an account that receives messages, in turn; nil if there is none.
func (s *Server) nextBinding(account string) *binding {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.binds[account]
	s.rotation++
	for i := range all {
		if b := all[(i+s.rotation)%len(all)]; b.mode != BindTransmitter {
			return b
		}
	}
	return nil
}

// receivingBinding returns a bind of an account that receives messages and has got its bind response; nil if there is
// none.
func (s *Server) receivingBinding(ctx context.Context, account string) *binding {
	b := s.nextBinding(account)
	if b == nil {
		return nil
	}
	select {
	case <-b.ready:
		return b
	case <-b.session.done:
	case <-ctx.Done():
	}
	return nil
}

// BindCount returns the number of binds of an account.
func (s *Server) BindCount(account string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.binds[account])
}

// Deliver sends a message to a client and waits until it has accepted all parts. The error is an *Error; it is
// Retryable if the account has no bind that receives messages.
func (s *Server) Deliver(ctx context.Context, account string, o Outgoing) (Result, error) {
	b := s.receivingBinding(ctx, account)
	if b == nil {
		return Result{Reference: o.Reference, MessageIDs: o.Sent}, &Error{Outcome: Retryable, Part: len(o.Sent) + 1, Err: ErrNotBound}
	}
	text := s.receiver.textFor(account)
	o.Reference = nextReference(o.Reference, &s.lastReference, text.Long)
	return sender{b.session, DeliverSM, text, IDs{}, &b.pacer}.send(ctx, o)
}

// Receipt sends a client the receipt of a part that it has submitted. r.From is the recipient of that part, r.To its
// sender.
func (s *Server) Receipt(ctx context.Context, account string, r Receipt) error {
	b := s.receivingBinding(ctx, account)
	if b == nil {
		return &Error{Outcome: Retryable, Part: 1, Err: ErrNotBound}
	}
	setDefault(&r.Parts, 1)
	if r.State == Delivered {
		setDefault(&r.Delivered, r.Parts)
	}
	text := s.receiver.textFor(account)
	m := &Message{Source: r.From, Destination: r.To, ESMClass: 0x04, ShortMessage: text.encodeReceipt(r.String()),
		TLVs: TLVs{receiptedID(r.MessageID), octetTLV(TagMessageState, uint8(r.State))}}
	if !r.State.Final() {
		m.ESMClass = 0x20
	}
	if _, err := (sender{b.session, DeliverSM, text, IDs{}, &b.pacer}).sendPart(ctx, m); err != nil {
		err.Part = 1
		return err
	}
	return nil
}

// encodeReceipt encodes the text of a receipt. It is ASCII unless the default alphabet is packed, because programs
// compare the octets of the id with those of the response: an underscore is another octet in GSM 7 bit. Other characters
// become question marks. At most maxReceiptText characters are used.
func (t TextSettings) encodeReceipt(text string) []byte {
	if t.encodingOf(codingDefault) == gsmPacked {
		return t.encodeLossy(text)
	}
	var octets []byte
	for _, r := range text {
		if r > '~' {
			r = '?'
		}
		octets = append(octets, byte(r))
	}
	return octets[:min(len(octets), maxReceiptText)]
}

// maxReceiptText is the number of characters in the text of a receipt.
const maxReceiptText = 160

// encodeLossy encodes a text in the default alphabet, with question marks for missing characters. At most
// maxReceiptText characters are used.
func (t TextSettings) encodeLossy(text string) []byte {
	clean := []rune(text)
	for i, r := range clean {
		if _, ok := t.encodeGSM(string(r)); !ok {
			clean[i] = '?'
		}
	}
	e, _ := t.encodeGSM(string(clean[:min(len(clean), maxReceiptText)]))
	return e.body(0, len(e.octets), 0)
}
