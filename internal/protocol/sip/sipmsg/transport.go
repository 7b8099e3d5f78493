package sipmsg

import "strings"

// Transport protocols: names, default ports, URI parameter.

// Transport is the transport protocol of a message.
type Transport string

// Transports of a Server. WS and WSS are for clients that connect to us (RFC 7118); the server makes no such
// connection itself.
const (
	UDP Transport = "udp"
	TCP Transport = "tcp"
	TLS Transport = "tls"
	WS  Transport = "ws"
	WSS Transport = "wss"
)

// ViaName returns the transport as written in Via.
func (t Transport) ViaName() string {
	switch t {
	case TCP:
		return "TCP"
	case TLS:
		return "TLS"
	case WS:
		return "WS"
	case WSS:
		return "WSS"
	}
	return "UDP"
}

// IsConnection reports whether messages travel over a connection.
func (t Transport) IsConnection() bool { return t != UDP && t != "" }

// IsWebSocket reports whether only the peer can make the connection.
func (t Transport) IsWebSocket() bool { return t == WS || t == WSS }

// IsEncrypted reports whether the hop is encrypted.
func (t Transport) IsEncrypted() bool { return t == TLS || t == WSS }

// DefaultPort returns the default port (RFC 3261 §19.1.2, RFC 7118 §5.2.2).
func (t Transport) DefaultPort() int {
	if t == TLS {
		return 5061
	}
	return 5060
}

// transportNamed parses a transport parameter. It returns "" if the transport is unknown.
func transportNamed(s string) Transport {
	for _, t := range []Transport{UDP, TCP, TLS, WS, WSS} {
		if strings.EqualFold(s, string(t)) {
			return t
		}
	}
	return ""
}

// Transport returns the transport that a URI asks for, or "" if it names none. "sips" over TCP means TLS (RFC 3261
// §26.2.2), and a sips URI never means an unencrypted transport.
func (u URI) Transport() Transport {
	name, _ := u.Param("transport")
	t := transportNamed(name)
	switch {
	case u.Scheme != "sips":
		return t
	case t == WS || t == WSS:
		return WSS
	}
	return TLS
}
