package transport

import (
	"bytes"
	"strconv"
	"strings"

	"soniq/internal/protocol/sip/sipmsg"
)

// Splitting a byte stream into messages by Content-Length (RFC 3261 §18.3).

// framer splits a byte stream into messages by Content-Length (RFC 3261 §18.3).
type framer struct {
	buf   []byte
	limit int
}

type frame uint8

const (
	frameNone    frame = iota // more bytes are needed
	frameMessage              // a whole message
	framePing                 // a double CRLF (RFC 5626 §3.5.1)
	frameBroken               // the end of the message cannot be determined
)

func (f *framer) add(b []byte) { f.buf = append(f.buf, b...) }

// hasPartial reports whether a message has begun. Line ends alone are keep-alives.
func (f *framer) hasPartial() bool { return len(bytes.TrimLeft(f.buf, "\r\n")) > 0 }

var (
	crlf     = []byte("\r\n")
	crlfcrlf = []byte("\r\n\r\n")
)

// next returns the next message, or the kind of data that is there instead.
func (f *framer) next() (string, frame) {
	if bytes.HasPrefix(f.buf, crlfcrlf) {
		f.cut(4)
		return "", framePing
	}
	if len(f.buf) > 2 && bytes.HasPrefix(f.buf, crlf) && f.buf[2] != '\r' {
		f.cut(2) // RFC 3261 §7.5: CRLF before a start line is ignored
	}
	end := bytes.Index(f.buf, crlfcrlf)
	if end < 0 {
		if len(f.buf) > f.limit {
			return "", frameBroken
		}
		return "", frameNone
	}
	head := end + 4
	length, ok := contentLength(string(f.buf[:head]))
	if !ok || head+length > f.limit {
		return string(f.buf[:head]), frameBroken
	}
	if len(f.buf) < head+length {
		return "", frameNone
	}
	raw := string(f.buf[:head+length])
	f.cut(head + length)
	return raw, frameMessage
}

func (f *framer) cut(n int) {
	f.buf = append(f.buf[:0], f.buf[n:]...)
	if len(f.buf) == 0 && cap(f.buf) > 64<<10 {
		f.buf = nil
	}
}

// contentLength parses the single Content-Length of a header section. A stream needs it (RFC 3261 §20.14); a message
// without one has no body.
func contentLength(head string) (n int, ok bool) {
	seen := false
	for rest := head; rest != ""; {
		var line string
		line, rest, _ = sipmsg.CutLine(rest)
		if rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
			line, rest = sipmsg.Unfold(line, rest)
		}
		name, value, _ := strings.Cut(line, ":")
		if sipmsg.FieldNamed(strings.TrimRight(name, " \t")) != sipmsg.FieldContentLength {
			continue
		}
		v, err := strconv.ParseUint(strings.Trim(value, " \t"), 10, 31)
		if err != nil || seen && int(v) != n {
			return 0, false
		}
		n, seen = int(v), true
	}
	return n, true
}
