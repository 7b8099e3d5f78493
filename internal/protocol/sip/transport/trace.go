package transport

import (
	"net/netip"
	"strings"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
)

// Message trace, and the redaction of secrets in it.

// TraceEntry is one message as sent or received.
type TraceEntry struct {
	At            time.Time
	CallID        string // a substring of the message: clone it to keep it longer
	Sent          bool   // by us
	Transport     sipmsg.Transport
	Local, Remote netip.AddrPort
	Message       RawMessage
}

// RawMessage is a message as sent or received. Its text is shown without secrets: digest responses, SRTP keys, ICE
// passwords and DTMF digits (which may be those of a card or a PIN) are replaced by "***". So its body may be shorter
// than Content-Length says. Redaction happens on access, because most messages are never shown.
type RawMessage struct{ text string }

// NewRawMessage returns a RawMessage for the text of a message.
func NewRawMessage(text string) RawMessage { return RawMessage{text} }

// String returns the message without its secrets.
func (m RawMessage) String() string { return redacted(m.text, redactSecrets) }

// redacted returns the result of redact. If redact panics, because it cannot handle what a peer sent, the whole message is hidden.
func redacted(raw string, redact func(string) string) (shown string) {
	defer func() {
		if recover() != nil {
			shown = "(this message cannot be shown: internal error)"
		}
	}()
	return redact(raw)
}

// Size returns the number of bytes sent or received.
func (m RawMessage) Size() int { return len(m.text) }

// HasPrefix reports whether the message starts with the text. Its first line holds no secret.
func (m RawMessage) HasPrefix(with string) bool { return strings.HasPrefix(m.text, with) }

// TraceMessage passes a message to the tracer, if there is one.
func (s *Layer) TraceMessage(f Flow, callID, raw string, sent bool) {
	if s.config.Tracer == nil {
		return
	}
	s.config.Tracer.Trace(TraceEntry{
		CallID: callID, Sent: sent, Transport: f.Transport(),
		Local: s.localAddrOf(f), Remote: f.Addr, Message: RawMessage{raw},
	})
}

// localAddrOf returns our local address of a flow.
func (s *Layer) localAddrOf(f Flow) netip.AddrPort {
	if f.Conn != nil {
		return f.Conn.localAddr()
	}
	if f.sock != nil && !f.sock.addr.Addr().IsUnspecified() {
		return f.sock.addr
	}
	return s.advertised.advertisedFor(f.Addr.Addr(), s.advertised.plainAddrs)
}

const redactedText = "***"

// redactSecrets returns a message without its secrets. Most messages have none and are not copied.
func redactSecrets(raw string) string {
	var b []byte // the redacted copy, once it differs from raw
	secret, body, info := false, false, strings.HasPrefix(raw, "INFO ")
	for at := 0; at < len(raw); {
		line := raw[at:]
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i+1]
		}
		text := strings.TrimRight(line, "\r\n")
		shown := text
		switch {
		case body && info:
			shown = redactDigit(text)
		case body:
			shown = redactSDPLine(text)
		case text == "":
			body = true
		case text[0] != ' ' && text[0] != '\t':
			secret = isCredentialsField(text)
			fallthrough
		default:
			if secret {
				shown = redactCredentials(text)
			}
		}
		if b == nil && shown != text {
			b = append(make([]byte, 0, len(raw)), raw[:at]...)
		}
		if b != nil {
			b = append(append(b, shown...), line[len(text):]...)
		}
		at += len(line)
	}
	if b == nil {
		return raw
	}
	return string(b)
}

// isCredentialsField reports whether a header line carries credentials.
func isCredentialsField(line string) bool {
	if c := line[0] | 0x20; c != 'a' && c != 'p' {
		return false
	}
	name, _, _ := strings.Cut(line, ":")
	switch sipmsg.FieldNamed(strings.TrimRight(name, " \t")) {
	case sipmsg.FieldAuthorization, sipmsg.FieldProxyAuthorization:
		return true
	}
	return strings.EqualFold(strings.TrimRight(name, " \t"), "Authentication-Info")
}

// redactCredentials hides the parameters from which a password could be guessed. Schemes other than Digest are hidden
// entirely.
func redactCredentials(line string) string {
	name, value, ok := strings.Cut(line, ":")
	if ok && line[0] != ' ' && line[0] != '\t' {
		scheme, rest := sipmsg.CutSpace(strings.TrimLeft(value, " \t"))
		if rest != "" && !strings.Contains(scheme, "=") && !strings.EqualFold(scheme, "Digest") {
			return name + ": " + scheme + " " + redactedText
		}
	}
	var b strings.Builder
	for line != "" {
		part, rest, more := strings.Cut(line, ",")
		b.WriteString(redactParam(part))
		if line = rest; more {
			b.WriteByte(',')
		}
	}
	return b.String()
}

// redactParam hides the value of response=, rspauth= and cnonce=.
func redactParam(part string) string {
	name, _, ok := strings.Cut(part, "=")
	if !ok {
		return part
	}
	words := strings.Fields(name)
	if len(words) == 0 {
		return part
	}
	switch strings.ToLower(words[len(words)-1]) {
	case "response", "rspauth", "cnonce":
		return name + `="` + redactedText + `"`
	}
	return part
}

// redactDigit hides the digit in a line of application/dtmf-relay or application/dtmf.
func redactDigit(line string) string {
	name, _, relay := strings.Cut(line, "=")
	if relay && strings.EqualFold(strings.TrimSpace(name), "signal") {
		return name + "=" + redactedText
	}
	if _, key := sipmsg.ParseDigit(line); key && !relay {
		return redactedText
	}
	return line
}

// secretSDPPrefixes are the prefixes of SDP lines that end with a key (RFC 4566 §5.12, RFC 4567, RFC 8839 §5.4).
var secretSDPPrefixes = []string{"k=", "a=ice-pwd:", "a=key-mgmt:"}

func redactSDPLine(line string) string {
	for _, start := range secretSDPPrefixes {
		if len(line) >= len(start) && strings.EqualFold(line[:len(start)], start) {
			return line[:len(start)] + redactedText
		}
	}
	if len(line) < 9 || !strings.EqualFold(line[:9], "a=crypto:") {
		return line
	}
	const inline = "inline:" // RFC 4568 §9.2
	for i := len("a=crypto:"); i+len(inline) <= len(line); i++ {
		if strings.EqualFold(line[i:i+len(inline)], inline) {
			return line[:i+len(inline)] + redactedText
		}
	}
	return line[:9] + redactedText
}
