package rig

import (
	"bytes"
	"net/netip"
	"regexp"
	"strconv"
)

var (
	contactField = regexp.MustCompile(`(?mi)^(?:Contact|m): .*$`)
	hostPort     = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	lengthField  = regexp.MustCompile(`(?mi)^((?:Content-Length|l): *)\d+`)
	audioLine    = regexp.MustCompile(`(?m)^m=audio (\d+)`)
	reportLine   = regexp.MustCompile(`(?m)^a=rtcp:(\d+)`)
)

// readdressed returns a message whose Contact names a port, and whose SDP names the port of a way. Audio for the
// sender of the message then passes through the way. The rest of the message is unchanged.
func readdressed(b []byte, port int, w *way) []byte {
	head, body, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	if !ok {
		return b
	}
	head = contactField.ReplaceAllFunc(head, func(field []byte) []byte {
		return hostPort.ReplaceAll(field, []byte("127.0.0.1:"+strconv.Itoa(port)))
	})
	if at := audioLine.FindSubmatch(body); at != nil {
		hears, _ := strconv.Atoi(string(at[1]))
		w.aim(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(hears)))
		body = audioLine.ReplaceAll(body, []byte("m=audio "+strconv.Itoa(w.port)))
		body = reportLine.ReplaceAll(body, []byte("a=rtcp:"+strconv.Itoa(w.port+1)))
		head = lengthField.ReplaceAll(head, []byte("${1}"+strconv.Itoa(len(body))))
	}
	return append(append(append([]byte(nil), head...), "\r\n\r\n"...), body...)
}
