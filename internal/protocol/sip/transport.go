package sip

import "strings"

// Transport names how a message travels.
type Transport string

// The transports a Server speaks. WS and WSS are for clients that connect to
// us (RFC 7118); nothing is sent to an address over them.
const (
	UDP Transport = "udp"
	TCP Transport = "tcp"
	TLS Transport = "tls"
	WS  Transport = "ws"
	WSS Transport = "wss"
)

// viaName is the transport as Via spells it.
func (t Transport) viaName() string {
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

// stream tells whether messages travel over a connection.
func (t Transport) stream() bool { return t != UDP && t != "" }

// web tells whether only the other side can make the connection.
func (t Transport) web() bool { return t == WS || t == WSS }

// secure tells whether the hop is encrypted.
func (t Transport) secure() bool { return t == TLS || t == WSS }

// port is the default port (RFC 3261 §19.1.2, RFC 7118 §5.2.2).
func (t Transport) port() int {
	if t == TLS {
		return 5061
	}
	return 5060
}

// transportNamed reads a transport parameter; "" when it is none we know.
func transportNamed(s string) Transport {
	for _, t := range []Transport{UDP, TCP, TLS, WS, WSS} {
		if strings.EqualFold(s, string(t)) {
			return t
		}
	}
	return ""
}

// transport is what a URI asks for; "" when it leaves that open. "sips" over
// TCP is TLS (RFC 3261 §26.2.2), and a sips URI never means anything less.
func (u URI) transport() Transport {
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
