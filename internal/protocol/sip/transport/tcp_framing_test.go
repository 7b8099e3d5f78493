package transport

import (
	"fmt"
	"slices"
	"testing"
)

// frames returns the messages and the pings of a stream that comes in these pieces.
func frames(pieces ...string) (all []string) {
	f := framer{limit: 4096}
	for _, p := range pieces {
		f.add([]byte(p))
		for {
			raw, what := f.next()
			if what == frameNone {
				break
			}
			switch what {
			case framePing:
				all = append(all, "ping")
			case frameBroken:
				return append(all, "broken")
			default:
				all = append(all, raw)
			}
		}
	}
	return all
}

// TestFramer_AnyPieces proves that the messages and pings of a stream are the same in whatever pieces it comes. A single CRLF before a
// message belongs to neither.
// https://github.com/pjsip/pjproject/pull/5062
// https://github.com/haumacher/phoneblock/pull/443
// https://github.com/NormB/sipnab/pull/95
func TestFramer_AnyPieces(t *testing.T) {
	t.Parallel()
	options := func(n int, body string) string {
		return fmt.Sprintf("OPTIONS sip:x@y SIP/2.0\r\nCSeq: %d OPTIONS\r\nContent-Length: %d\r\n\r\n%s", n, len(body), body)
	}
	const ping = "\r\n\r\n"
	one, two, three := options(1, ""), options(2, "a\r\n\r\nb"), "SIP/2.0 200 OK\r\nCSeq: 3 REGISTER\r\nl:0\r\n\r\n"
	for name, c := range map[string]struct {
		stream string
		want   []string
	}{
		"a ping":                    {ping, []string{"ping"}},
		"two pings":                 {ping + ping, []string{"ping", "ping"}},
		"a ping before a message":   {ping + one, []string{"ping", one}},
		"a ping behind a message":   {one + ping + two, []string{one, "ping", two}},
		"one CRLF before a message": {"\r\n" + three, []string{three}},
		"one CRLF behind a message": {one + "\r\n" + three, []string{one, three}},
		"a ping and a CRLF":         {ping + "\r\n" + two, []string{"ping", two}},
		"three messages":            {one + two + three, []string{one, two, three}},
		"a CRLF between messages":   {ping + two + "\r\n" + one, []string{"ping", two, one}},
	} {
		if got := frames(c.stream); !slices.Equal(got, c.want) {
			t.Errorf("%s, whole: %q", name, got)
		}
		var bytes []string
		for i := range c.stream {
			bytes = append(bytes, c.stream[i:i+1])
			if got := frames(c.stream[:i], c.stream[i:]); !slices.Equal(got, c.want) {
				t.Errorf("%s, cut at byte %d: %q", name, i, got)
			}
		}
		if got := frames(bytes...); !slices.Equal(got, c.want) {
			t.Errorf("%s, a byte at a time: %q", name, got)
		}
	}
}
