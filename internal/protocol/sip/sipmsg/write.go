package sipmsg

import (
	"strconv"
	"strings"
)

// Writing responses, and the ACK or CANCEL that belongs to a request.

// AppendInt writes n in decimal.
func AppendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

// AppendField writes "Name: value" and CRLF.
func AppendField(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	return append(append(b, value...), "\r\n"...)
}

// AppendStatus writes a status line.
func AppendStatus(b []byte, status int, reason string) []byte {
	if reason == "" {
		reason = ReasonPhrase(status)
	}
	b = AppendInt(append(b, "SIP/2.0 "...), int64(status))
	return append(append(append(b, ' '), SanitizeHeader(reason)...), "\r\n"...)
}

// AppendHead writes the fields that every response copies from its request (RFC 3261 §8.2.6.2). toTag is added if To
// has none.
func (m *Message) AppendHead(b []byte, toTag string) []byte {
	first := true
	for i := range m.Fields {
		if m.Fields[i].Kind != FieldVia {
			continue
		}
		b = append(b, "Via: "...)
		if first && m.Via.head != "" {
			b = m.Via.AppendTo(b, m.source)
			if m.Via.Rest != "" {
				b = append(append(b, ", "...), m.Via.Rest...)
			}
		} else {
			b = append(b, m.Fields[i].Value...)
		}
		b, first = append(b, "\r\n"...), false
	}
	return m.appendDialogFields(b, toTag)
}

func (m *Message) appendDialogFields(b []byte, toTag string) []byte {
	for i := range m.Fields {
		value := m.Fields[i].Value
		switch m.Fields[i].Kind {
		case FieldFrom:
			b = AppendField(b, "From", value)
		case FieldTo:
			b = append(append(b, "To: "...), value...)
			if toTag != "" && m.To.Tag == "" {
				b = append(append(b, ";tag="...), toTag...)
			}
			b = append(b, "\r\n"...)
		case FieldCallID:
			b = AppendField(b, "Call-ID", value)
		case FieldCSeq:
			b = AppendField(b, "CSeq", value)
		}
	}
	return b
}

// AppendRecordRoute copies Record-Route for responses that create a dialog (RFC 3261 §12.1.1).
func (m *Message) AppendRecordRoute(b []byte) []byte {
	for i := range m.Fields {
		if m.Fields[i].Kind == FieldRecordRoute {
			b = AppendField(b, "Record-Route", m.Fields[i].Value)
		}
	}
	return b
}

// AppendBody writes Content-Length and the body, the end of a message.
func AppendBody(b []byte, contentType string, body []byte) []byte {
	if len(body) > 0 {
		b = AppendField(b, "Content-Type", contentType)
	}
	b = AppendInt(append(b, "Content-Length: "...), int64(len(body)))
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}

// AppendResponse writes a whole response without a body.
func (m *Message) AppendResponse(b []byte, status int, reason, toTag, extra string) []byte {
	b = AppendStatus(b, status, reason)
	b = m.AppendHead(b, toTag)
	b = append(b, extra...)
	return AppendBody(b, "", nil)
}

// DeriveRequest writes the ACK or CANCEL that belongs to our request: same request URI, Via, Route, From, Call-ID and
// CSeq number (RFC 3261 §9.1, §17.1.1.3).
func DeriveRequest(b, request []byte, method, to string, further ...string) []byte {
	line, rest, _ := CutLine(string(request))
	_, uri, _ := strings.Cut(line, " ")
	b = append(append(append(b, method...), ' '), uri...)
	b = append(b, "\r\n"...)
	for {
		if line, rest, _ = CutLine(rest); line == "" {
			b = append(b, "Max-Forwards: 70\r\n"...)
			for i := 0; i+1 < len(further); i += 2 {
				b = AppendField(b, further[i], further[i+1])
			}
			return AppendBody(b, "", nil)
		}
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "Via", "Route", "From", "Call-ID":
			b = AppendField(b, name, value)
		case "To":
			if to != "" {
				value = to
			}
			b = AppendField(b, name, value)
		case "CSeq":
			number, _, _ := strings.Cut(value, " ")
			b = AppendField(b, name, number+" "+method)
		}
	}
}

// SanitizeHeader replaces control characters in s by spaces, so that it is safe in a header line.
func SanitizeHeader(s string) string {
	if strings.IndexFunc(s, IsControl) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// IsControl reports whether r is a control character that no header value may contain.
func IsControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// WarningField returns a Warning header with the code 399 (miscellaneous, RFC 3261 §20.43), or "" if there is no text.
func WarningField(text string) string {
	if text == "" {
		return ""
	}
	quoted := strings.NewReplacer(`\`, `/`, `"`, `'`).Replace(SanitizeHeader(text))
	return `Warning: 399 soniq "` + quoted + "\"\r\n"
}

// ReasonPhrase returns the standard reason phrase of a status (RFC 3261 §21).
func ReasonPhrase(status int) string {
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
