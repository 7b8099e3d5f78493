package sip_test

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

const testTimeout = 30 * time.Second

// testServer is a Server that collects its incoming calls.
type testServer struct {
	*sip.Server
	calls chan *sip.Inbound
}

func (p *testServer) Invite(_ context.Context, in *sip.Inbound) { p.calls <- in }

// newTestServer starts a server on loopback that ends with the test.
func newTestServer(t testing.TB, c sip.Config) *testServer {
	t.Helper()
	p := &testServer{calls: make(chan *sip.Inbound, 4096)}
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if c.Accounts == nil {
		c.Accounts = sip.AnySource{}
	}
	c.Names = append(c.Names, "x") // digestAuthorization names it
	s, err := sip.Listen(context.Background(), c, p)
	if err != nil {
		t.Fatal(err)
	}
	p.Server = s
	t.Cleanup(func() {
		if n := s.Stats().Panics; n > 0 {
			t.Errorf("%d panics were recovered", n)
		}
		s.Close()
	})
	return p
}

func (p *testServer) uri(user string) string { return "sip:" + user + "@" + p.Addr().String() }

func (p *testServer) wantInbound(t testing.TB) *sip.Inbound {
	t.Helper()
	select {
	case in := <-p.calls:
		return in
	case <-time.After(testTimeout):
		t.Fatal("no call came in")
		return nil
	}
}

// eventLog collects a leg's events.
type eventLog chan sip.Event

func newEventLog() eventLog { return make(eventLog, 1024) }

func (e eventLog) record(ev sip.Event) { e <- ev }

// wantEvent waits for the next event and fails unless it is a T.
func wantEvent[T sip.Event](t testing.TB, e eventLog) T {
	t.Helper()
	select {
	case ev := <-e:
		v, ok := ev.(T)
		if !ok {
			t.Fatalf("got event %#v, want %T", ev, *new(T))
		}
		return v
	case <-time.After(testTimeout):
		t.Fatalf("no event, want %T", *new(T))
	}
	return *new(T)
}

// wantNoEvent fails if another event has been reported.
func wantNoEvent(t testing.TB, e eventLog) {
	t.Helper()
	select {
	case ev := <-e:
		t.Fatalf("got event %#v, want none", ev)
	default:
	}
}

var testOfferSDP = []byte("v=0\r\no=a 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 6000 RTP/AVP 0\r\n")
var testAnswerSDP = []byte("v=0\r\no=b 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 7000 RTP/AVP 0\r\n")

// fakeDirectory is an Accounts and Bindings in memory.
type fakeDirectory struct {
	mu       sync.Mutex
	accounts map[string]sip.Account
	trunks   []netip.Addr
	bindings map[string][]sip.Binding
	lost     map[string]time.Time
}

func newFakeDirectory() *fakeDirectory {
	return &fakeDirectory{accounts: map[string]sip.Account{}, bindings: map[string][]sip.Binding{}, lost: map[string]time.Time{}}
}

func (b *fakeDirectory) addAccount(user, password string) *fakeDirectory {
	plain := user + ":sip:" + password
	m, s := md5.Sum([]byte(plain)), sha256.Sum256([]byte(plain))
	b.accounts[user] = sip.Account{ID: "id-" + user, HA1MD5: hex.EncodeToString(m[:]), HA1SHA256: hex.EncodeToString(s[:])}
	return b
}

func (b *fakeDirectory) Credentials(_ context.Context, user string) (sip.Account, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.accounts[user]
	return a, ok, nil
}

// Exempt exempts the addresses of trunks.
func (b *fakeDirectory) Exempt(ctx context.Context, source netip.Addr) bool {
	_, is := b.Trunk(ctx, netip.AddrPortFrom(source, 0), sipmsg.UDP)
	return is
}

// IsSourceOf treats all addresses of trunks as those of one trunk.
func (b *fakeDirectory) IsSourceOf(ctx context.Context, trunkID string, source netip.AddrPort) bool {
	id, is := b.Trunk(ctx, source, sipmsg.UDP)
	return is && id == trunkID
}

func (b *fakeDirectory) Trunk(_ context.Context, source netip.AddrPort, _ sipmsg.Transport) (string, bool) {
	return "trunk-1", slices.Contains(b.trunks, source.Addr())
}

// Lose saves the remaining bindings, and stores when the browser became unreachable.
func (b *fakeDirectory) Lose(ctx context.Context, account string, left []sip.Binding, at time.Time) error {
	b.mu.Lock()
	b.lost[account] = at
	b.mu.Unlock()
	return b.Save(ctx, account, left)
}

func (b *fakeDirectory) Save(_ context.Context, account string, all []sip.Binding) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bindings[account] = slices.Clone(all)
	return nil
}

func (b *fakeDirectory) Load(_ context.Context, account string) ([]sip.Binding, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.bindings[account]), nil
}
