package sip

import (
	"net/netip"
	"strconv"
	"strings"
)

// Writing responses, and the ACK or CANCEL that belongs to a request.

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

// appendField writes "Name: value" and CRLF.
func appendField(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	return append(append(b, value...), "\r\n"...)
}

// appendStatus writes a status line.
func appendStatus(b []byte, status int, reason string) []byte {
	if reason == "" {
		reason = reasonPhrase(status)
	}
	b = appendInt(append(b, "SIP/2.0 "...), int64(status))
	return append(append(append(b, ' '), sanitizeHeader(reason)...), "\r\n"...)
}

// appendHead writes the fields that every response copies from its request (RFC 3261 §8.2.6.2). toTag is added if To
// has none.
func (m *message) appendHead(b []byte, toTag string) []byte {
	first := true
	for i := range m.fields {
		if m.fields[i].kind != fVia {
			continue
		}
		b = append(b, "Via: "...)
		if first && m.via.head != "" {
			b = m.via.append(b, m.flow)
			if m.via.rest != "" {
				b = append(append(b, ", "...), m.via.rest...)
			}
		} else {
			b = append(b, m.fields[i].value...)
		}
		b, first = append(b, "\r\n"...), false
	}
	return m.appendDialogFields(b, toTag)
}

func (m *message) appendDialogFields(b []byte, toTag string) []byte {
	for i := range m.fields {
		value := m.fields[i].value
		switch m.fields[i].kind {
		case fFrom:
			b = appendField(b, "From", value)
		case fTo:
			b = append(append(b, "To: "...), value...)
			if toTag != "" && m.to.tag == "" {
				b = append(append(b, ";tag="...), toTag...)
			}
			b = append(b, "\r\n"...)
		case fCallID:
			b = appendField(b, "Call-ID", value)
		case fCSeq:
			b = appendField(b, "CSeq", value)
		}
	}
	return b
}

// appendRecordRoute copies Record-Route for responses that create a dialog (RFC 3261 §12.1.1).
func (m *message) appendRecordRoute(b []byte) []byte {
	for i := range m.fields {
		if m.fields[i].kind == fRecordRoute {
			b = appendField(b, "Record-Route", m.fields[i].value)
		}
	}
	return b
}

// appendBody writes Content-Length and the body, the end of a message.
func appendBody(b []byte, contentType string, body []byte) []byte {
	if len(body) > 0 {
		b = appendField(b, "Content-Type", contentType)
	}
	b = appendInt(append(b, "Content-Length: "...), int64(len(body)))
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}

// appendResponse writes a whole response without a body.
func (m *message) appendResponse(b []byte, status int, reason, toTag, extra string) []byte {
	b = appendStatus(b, status, reason)
	b = m.appendHead(b, toTag)
	b = append(b, extra...)
	return appendBody(b, "", nil)
}

// replyFlow returns the flow of responses to m: its own connection, or for UDP the source address with the port of
// replyPort (RFC 3261 §18.2.2).
func (m *message) replyFlow() flow {
	f := m.flow
	if f.conn == nil {
		f.addr = netip.AddrPortFrom(f.addr.Addr(), m.via.replyPort(f.addr.Port()))
	}
	return f
}

// deriveRequest writes the ACK or CANCEL that belongs to our request: same request URI, Via, Route, From, Call-ID and
// CSeq number (RFC 3261 §9.1, §17.1.1.3).
func deriveRequest(b, request []byte, method, to string) []byte {
	line, rest, _ := cutLine(string(request))
	_, uri, _ := strings.Cut(line, " ")
	b = append(append(append(b, method...), ' '), uri...)
	b = append(b, "\r\n"...)
	for {
		if line, rest, _ = cutLine(rest); line == "" {
			b = append(b, "Max-Forwards: 70\r\n"...)
			return appendBody(b, "", nil)
		}
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "Via", "Route", "From", "Call-ID":
			b = appendField(b, name, value)
		case "To":
			if to != "" {
				value = to
			}
			b = appendField(b, name, value)
		case "CSeq":
			number, _, _ := strings.Cut(value, " ")
			b = appendField(b, name, number+" "+method)
		}
	}
}

// sanitizeHeader replaces control characters in s by spaces, so that it is safe in a header line.
func sanitizeHeader(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, s)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// warningField returns a Warning header with the code 399 (miscellaneous, RFC 3261 §20.43), or "" if there is no text.
func warningField(text string) string {
	if text == "" {
		return ""
	}
	quoted := strings.NewReplacer(`\`, `/`, `"`, `'`).Replace(sanitizeHeader(text))
	return `Warning: 399 soniq "` + quoted + "\"\r\n"
}

// reasonPhrase returns the standard reason phrase of a status (RFC 3261 §21).
func reasonPhrase(status int) string {
	if p, ok := reasonPhrases[status]; ok {
		return p
	}
	return "Unknown"
}

var reasonPhrases = map[int]string{
	100: "Trying", 180: "Ringing", 181: "Call Is Being Forwarded", 182: "Queued", 183: "Session Progress",
	200: "OK", 202: "Accepted",
	300: "Multiple Choices", 301: "Moved Permanently", 302: "Moved Temporarily", 305: "Use Proxy",
	400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
	405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required",
	408: "Request Timeout", 410: "Gone", 413: "Request Entity Too Large", 414: "Request-URI Too Long",
	415: "Unsupported Media Type", 416: "Unsupported URI Scheme", 420: "Bad Extension",
	421: "Extension Required", 422: "Session Interval Too Small", 423: "Interval Too Brief",
	430: "Flow Failed", 480: "Temporarily Unavailable", 481: "Call/Transaction Does Not Exist",
	482: "Loop Detected", 483: "Too Many Hops", 484: "Address Incomplete", 485: "Ambiguous",
	489: "Bad Event",
	486: "Busy Here", 487: "Request Terminated", 488: "Not Acceptable Here", 491: "Request Pending",
	500: "Server Internal Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
	504: "Server Time-out", 505: "Version Not Supported", 513: "Message Too Large",
	600: "Busy Everywhere", 603: "Decline", 604: "Does Not Exist Anywhere", 606: "Not Acceptable",
}
