package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// mutations is the number of damaged messages sent over each transport.
const mutations = 2000

// TestSIP_MalformedMessages sends the messages of RFC 4475, then damaged ones, over UDP and TCP, to a running server.
// Afterwards calls succeed as before, nothing panicked, and memory and goroutines are at their old level.
func TestSIP_MalformedMessages(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, quick)
	o := newOffice(t, s)
	o.talk(200 * time.Millisecond)
	before := metrics(t, s)
	seeds := torture(t)
	random := rand.New(rand.NewPCG(4475, 3261))
	udp(t, s, seeds, random)
	tcp(t, s, seeds, random)
	o.talk(200 * time.Millisecond)
	after := metrics(t, s)
	if after["soniq_sip_panics_total"] != 0 {
		t.Errorf("%v panics", after["soniq_sip_panics_total"])
	}
	if got := after["soniq_sip_malformed_total"] - before["soniq_sip_malformed_total"]; got < mutations/10 {
		t.Errorf("only %v messages were recognised as malformed", got)
	}
	for _, text := range []string{"panic", "goroutine "} {
		if strings.Contains(s.Log(), text) {
			t.Errorf("the log says %q", text)
		}
	}
	rig.Until(t, "end of transactions", 45*time.Second, func() bool {
		now := metrics(t, s)
		return now["go_goroutines"] < before["go_goroutines"]+100 && now["soniq_sip_dialogs"] == 0 && now["soniq_calls_active"] == 0
	})
	t.Logf("%v of %v messages were malformed, %v were dropped", after["soniq_sip_malformed_total"], after["soniq_sip_received_total"], after["soniq_sip_dropped_total"])
}

// torture returns the messages of RFC 4475.
func torture(t *testing.T) [][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(rig.Root(), "internal", "protocol", "sip", "testdata", "torture", "*.dat"))
	if err != nil || len(files) < 45 {
		t.Fatalf("%d torture messages: %v", len(files), err)
	}
	var all [][]byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// ends lists line ends for damaged messages.
var ends = []string{"\n", "\r", "\r\n\r\n", "", "\x00\r\n"}

// mutate damages a message: bytes changed, removed, doubled, cut off, joined with another.
func mutate(random *rand.Rand, seeds [][]byte) []byte {
	b := bytes.Clone(seeds[random.IntN(len(seeds))])
	for range 1 + random.IntN(4) {
		if len(b) == 0 {
			b = []byte("INVITE")
		}
		at := random.IntN(len(b))
		end := min(len(b), at+1+random.IntN(40))
		switch random.IntN(7) {
		case 0:
			b[at] = byte(random.IntN(256))
		case 1:
			b = append(b[:at], b[end:]...)
		case 2:
			b = append(b[:end:end], b[at:]...)
		case 3:
			b = b[:at]
		case 4:
			other := seeds[random.IntN(len(seeds))]
			b = append(b[:at:at], other[random.IntN(len(other)):]...)
		case 5:
			b = bytes.Replace(b, []byte("\r\n"), []byte(ends[random.IntN(len(ends))]), 1)
		case 6:
			b = bytes.Replace(b, []byte("Content-Length:"), fmt.Appendf(nil, "Content-Length: %d\r\nX:", random.IntN(1<<random.IntN(40))), 1)
		}
	}
	return b[:min(len(b), 60000)]
}

func udp(t *testing.T, s *rig.Server, seeds [][]byte, random *rand.Rand) {
	t.Helper()
	c, err := net.Dial("udp", s.SIP)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for _, b := range seeds {
		_, _ = c.Write(b) // an ICMP error for a response sent elsewhere is ignored
		<-pace.C
	}
	for range mutations {
		_, _ = c.Write(mutate(random, seeds))
		<-pace.C
	}
	alive(t, s)
}

// tcp sends some messages on each connection, until the server closes it.
func tcp(t *testing.T, s *rig.Server, seeds [][]byte, random *rand.Rand) {
	t.Helper()
	for sent := 0; sent < mutations+len(seeds); {
		c, err := net.Dial("tcp", s.SIP)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		go func() { _, _ = io.Copy(io.Discard, c) }()
		for range 20 {
			b := mutate(random, seeds)
			if sent < len(seeds) {
				b = seeds[sent]
			}
			sent++
			if _, err := c.Write(b); err != nil {
				break
			}
		}
		_ = c.Close()
	}
	alive(t, s)
}

// alive sends an OPTIONS request, as a peer does, from an address that sent nothing malformed.
func alive(t *testing.T, s *rig.Server) {
	t.Helper()
	c, err := net.Dial("udp", s.SIP)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	request := fmt.Sprintf("OPTIONS sip:%s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bK%d;rport\r\nMax-Forwards: 70\r\nFrom: <sip:a@b>;tag=1\r\n"+
		"To: <sip:c@d>\r\nCall-ID: %d\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n", s.SIP, c.LocalAddr(), time.Now().UnixNano(), time.Now().UnixNano())
	answer := make([]byte, 4096)
	for range 20 {
		if _, err := c.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		n, err := c.Read(answer)
		if err == nil && bytes.HasPrefix(answer[:n], []byte("SIP/2.0 200")) {
			return
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	t.Errorf("OPTIONS is not answered any more: %.200s", answer)
}

var metric = regexp.MustCompile(`(?m)^(\w+) ([0-9.e+]+)$`)

// metrics returns the counters of a server that have no labels.
func metrics(t *testing.T, s *rig.Server) map[string]float64 {
	t.Helper()
	a, err := http.Get("http://" + s.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, m := range metric.FindAllStringSubmatch(string(b), -1) {
		var v float64
		if _, err := fmt.Sscan(m[2], &v); err == nil {
			values[m[1]] = v
		}
	}
	return values
}
