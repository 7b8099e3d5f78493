package transport

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"soniq/internal/protocol/sip/sipmsg"
)

// WebSocket upgrade (RFC 7118): Origin, token, source address behind a proxy.

// WebSocketConfig configures which clients may connect by WebSocket.
type WebSocketConfig struct {
	// Origins are pages, "phone.example" or "https://phone.example", whose scripts may connect in addition to those
	// of our own host. "*" allows every page. Programs that are not browsers send no Origin and are always allowed.
	Origins []string
	// Proxies are networks whose X-Forwarded-For and X-Forwarded-Proto are trusted. The proxy must set these fields
	// itself, not pass them on.
	Proxies []netip.Prefix
	// Tokens verifies the tokens of browsers. nil means no token is valid.
	Tokens TokenVerifier
}

// TokenVerifier verifies the tokens with which browsers connect.
type TokenVerifier interface {
	// UseToken returns the login of a token, and may end the token. Requests over such a connection come from its account,
	// without a password. ok is false for an invalid token.
	UseToken(ctx context.Context, token string) (l TokenLogin, ok bool, err error)
}

// TokenLogin is what a token authorises a connection for: requests of an account, until the account has a later generation.
// An empty Username means none.
type TokenLogin struct {
	Username   string
	Generation int64
}

// tokenTimeout bounds the lookup of a token.
const tokenTimeout = 5 * time.Second

// webSocketSubprotocol is the WebSocket subprotocol (RFC 7118 §4). A browser cannot send other headers with an upgrade, so a token may be
// offered as a further subprotocol, behind tokenSubprotocol.
const (
	webSocketSubprotocol = "sip"
	tokenSubprotocol     = "token."
)

// ServeWebSocket serves SIP to a browser (RFC 7118, RFC 6455).
func (s *Layer) ServeWebSocket(w http.ResponseWriter, r *http.Request) {
	from, kind, ok := s.webSocketSource(r)
	switch {
	case !ok || !s.originAllowed(r):
		http.Error(w, "the Origin or the source address is not allowed to connect", http.StatusForbidden)
		return
	case !offersSIP(r):
		http.Error(w, "offer the WebSocket subprotocol "+webSocketSubprotocol, http.StatusBadRequest)
		return
	case s.config.Host.IsDraining() || s.ctx.Err() != nil || !s.config.Guard.MayConnect(from.Addr(), s.config.Host.Elapsed()):
		http.Error(w, "the server does not accept connections at present", http.StatusServiceUnavailable)
		return
	}
	login, err := s.tokenLogin(r)
	if err != nil {
		http.Error(w, "the token is unknown, was used or has expired; get another", http.StatusUnauthorized)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{webSocketSubprotocol}, InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	c := NewConn(s, ConnKey{Transport: kind, Addr: from})
	c.Token = login
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		c.setLocalAddr(addrPort(local))
	}
	ch := newWebSocketChannel(s, ws)
	c.channel = ch
	if !s.conns.add(c, c.writeLoop, c.serve, func() { ch.pingLoop(c) }) {
		ch.close()
	}
}

// errUnknownToken is returned for an invalid or expired token.
var errUnknownToken = errors.New("sip: unknown token")

// tokenLogin returns the login for the token of a request; it is empty if there is no token. The token is a subprotocol, or in the URL, as
// SIP libraries offer no other place for it.
func (s *Layer) tokenLogin(r *http.Request) (l TokenLogin, err error) {
	token := r.URL.Query().Get("token")
	for _, p := range subprotocols(r) {
		if after, ok := strings.CutPrefix(p, tokenSubprotocol); ok {
			token = after
		}
	}
	if token == "" {
		return l, nil
	}
	if s.config.WebSocket.Tokens == nil {
		return l, errUnknownToken
	}
	ctx, cancel := context.WithTimeout(r.Context(), tokenTimeout)
	defer cancel()
	l, ok, err := s.config.WebSocket.Tokens.UseToken(ctx, token)
	if err == nil && !ok {
		err = errUnknownToken
	}
	return l, err
}

// originAllowed checks the Origin, so that no foreign page can use a browser's network position (RFC 6455 §10.2).
func (s *Layer) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return slices.Contains(s.config.WebSocket.Origins, "*")
	}
	same := func(o string) bool { return o == "*" || strings.EqualFold(o, u.Host) || strings.EqualFold(o, origin) }
	return strings.EqualFold(u.Host, r.Host) || slices.ContainsFunc(s.config.WebSocket.Origins, same)
}

func offersSIP(r *http.Request) bool {
	return slices.ContainsFunc(subprotocols(r), func(p string) bool { return strings.EqualFold(p, webSocketSubprotocol) })
}

// subprotocols returns the subprotocols that a request offers.
func subprotocols(r *http.Request) (all []string) {
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for p := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(p))
		}
	}
	return all
}

// webSocketSource returns the address and transport of the client, taken from X-Forwarded-* if a trusted proxy sent
// the request.
func (s *Layer) webSocketSource(r *http.Request) (netip.AddrPort, sipmsg.Transport, bool) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return at, sipmsg.WS, false
	}
	at = unmapAddrPort(at)
	kind := sipmsg.WS
	if r.TLS != nil {
		kind = sipmsg.WSS
	}
	if !slices.ContainsFunc(s.config.WebSocket.Proxies, func(p netip.Prefix) bool { return p.Contains(at.Addr()) }) {
		return at, kind, true
	}
	if p := r.Header.Get("X-Forwarded-Proto"); p == "https" || p == "wss" {
		kind = sipmsg.WSS
	}
	all := r.Header.Values("X-Forwarded-For")
	if len(all) == 0 {
		return at, kind, true
	}
	hops := strings.Split(all[len(all)-1], ",")
	a, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1]))
	return netip.AddrPortFrom(a.Unmap(), at.Port()), kind, err == nil
}
