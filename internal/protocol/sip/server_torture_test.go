package sip_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"soniq/internal/protocol/sip"
)

// torture lists the responses that RFC 4475 requires of a UAS to untrusted senders. 407 and 401 mean that the message
// was accepted and its sender challenged; 0 means silence. The section is that of RFC 4475.
var torture = map[string]struct {
	section string
	udp     int
	tcp     int // if different: 0 means the same, -1 silence
	ws      int // if different from UDP
}{
	// 3.1.1 valid
	"wsinv":      {"3.1.1.1", 481, 0, 0}, // well-formed; its To has a tag of a dialog we do not have
	"intmeth":    {"3.1.1.2", 501, 0, 0},
	"esc01":      {"3.1.1.3", 407, 0, 0},
	"escnull":    {"3.1.1.4", 401, 0, 0},
	"esc02":      {"3.1.1.5", 501, 0, 0}, // an unknown method, not an escaped REGISTER
	"lwsdisp":    {"3.1.1.6", 200, 0, 0},
	"longreq":    {"3.1.1.7", 407, 0, 0},
	"dblreq":     {"3.1.1.8", 401, 400, 0}, // over UDP the rest is ignored, over TCP it is a second, bad message
	"semiuri":    {"3.1.1.9", 200, 0, 0},
	"transports": {"3.1.1.10", 200, 0, 0},
	"mpart01":    {"3.1.1.11", 405, 0, 0},
	"unreason":   {"3.1.1.12", 0, 0, 0}, // responses
	"noreason":   {"3.1.1.13", 0, 0, 0},
	// 3.1.2 invalid
	"badinv01":   {"3.1.2.1", 400, 0, 0},
	"clerr":      {"3.1.2.2", 400, -1, 0}, // over TCP the rest is awaited
	"ncl":        {"3.1.2.3", 400, 0, 0},
	"scalar02":   {"3.1.2.4", 400, 0, 0},
	"scalarlg":   {"3.1.2.5", 0, 0, 0},
	"quotbal":    {"3.1.2.6", 400, 0, 0},
	"ltgtruri":   {"3.1.2.7", 400, 0, 0},
	"lwsruri":    {"3.1.2.8", 400, 0, 0},
	"lwsstart":   {"3.1.2.9", 400, 0, 0},
	"trws":       {"3.1.2.10", 400, 0, 0},
	"escruri":    {"3.1.2.11", 400, 0, 0},
	"baddate":    {"3.1.2.12", 407, 0, 0}, // the Date is not used
	"regbadct":   {"3.1.2.13", 400, 0, 0},
	"badaspec":   {"3.1.2.14", 400, 0, 0},
	"baddn":      {"3.1.2.15", 400, 0, 0},
	"badvers":    {"3.1.2.16", 505, 0, 0},
	"mismatch01": {"3.1.2.17", 400, 0, 0},
	"mismatch02": {"3.1.2.18", 501, 0, 0},
	"bigcode":    {"3.1.2.19", 0, 0, 0},
	// 3.2 to 3.4
	"badbranch": {"3.2.1", 200, 0, 0}, // matched as RFC 2543 did
	"insuf":     {"3.3.1", 400, 0, 0},
	"unkscm":    {"3.3.2", 416, 0, 0},
	"novelsc":   {"3.3.3", 416, 0, 0},
	"unksm2":    {"3.3.4", 400, 0, 0},
	"bext01":    {"3.3.5", 420, 0, 0},
	"invut":     {"3.3.6", 415, 0, 0},
	"regaut01":  {"3.3.7", 401, 0, 0},
	"multi01":   {"3.3.8", 400, 0, 0},
	"mcl01":     {"3.3.9", 400, 0, 0},
	"bcast":     {"3.3.10", 0, 0, 0},
	"zeromf":    {"3.3.11", 483, 0, 0},
	"cparam01":  {"3.3.12", 401, 0, 0},
	"cparam02":  {"3.3.13", 401, 0, 0},
	"regescrt":  {"3.3.14", 401, 0, 0},
	"sdp01":     {"3.3.15", 406, 0, 0},
	"inv2543":   {"3.4.1", 407, 0, 0},
	// not of the RFC: no Via, so no destination for a response
	"test": {"-", 0, 0, 0},
}

var firstVia = regexp.MustCompile(`(?im)^((?:via|v)[ \t]*:[^\r\n,]*)`)

// tortureMessage reads a message and adds rport to its topmost Via, so that the response comes to the source port.
func tortureMessage(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "torture", name+".dat"))
	if err != nil {
		t.Fatal(err)
	}
	if name == "baddn" { // the file lacks the line that ends the header
		b = append(b, "\r\n"...)
	}
	if name == "wsinv" { // its Via is folded
		return bytes.Replace(b, []byte("branch=390skdjuw"), []byte("branch=390skdjuw;rport"), 1)
	}
	if loc := firstVia.FindIndex(b); loc != nil && name != "badinv01" {
		b = append(b[:loc[1]:loc[1]], append([]byte(";rport"), b[loc[1]:]...)...)
	}
	return b
}

func TestParse_RFC4475Torture(t *testing.T) {
	t.Parallel()
	if len(torture) != 50 {
		t.Fatalf("%d messages listed, want 49 and test.dat", len(torture))
	}
	book := newFakeDirectory()
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	stream := newTestServer(t, sip.Config{Accounts: book, Bindings: book}) // the same messages again would be retransmissions
	browser := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	address := serveWebSocket(t, browser)
	for name, c := range torture {
		t.Run("udp/"+name, func(t *testing.T) {
			t.Parallel()
			conn := dialUDP(t, server)
			conn.Write(tortureMessage(t, name))
			wantFinalStatus(t, conn, c.udp, 300*time.Millisecond)
		})
		t.Run("tcp/"+name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", stream.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.Write(tortureMessage(t, name))
			status := c.udp
			if c.tcp != 0 {
				status = max(0, c.tcp)
			}
			if name == "dblreq" { // its first message gets a response of its own, perhaps in a separate read
				wantFinalStatus(t, conn, status, 0, c.udp)
				return
			}
			wantFinalStatus(t, conn, status, 300*time.Millisecond)
		})
		t.Run("ws/"+name, func(t *testing.T) {
			t.Parallel()
			ws := dialWebSocket(t, address, nil)
			ws.Write(context.Background(), websocket.MessageBinary, tortureMessage(t, name))
			status := c.udp
			if c.ws != 0 {
				status = max(0, c.ws)
			}
			wantFinalStatus(t, websocket.NetConn(context.Background(), ws, websocket.MessageText), status, 300*time.Millisecond)
		})
	}
	t.Cleanup(func() {
		wantOptionsAnswered(t, server)
		wantOptionsAnswered(t, stream)
		wantOptionsAnswered(t, browser)
	})
}

var statusLine = regexp.MustCompile(`(?m)^SIP/2\.0 (\d{3}) `)

// statusCodes returns the status codes of all responses in b.
func statusCodes(b []byte) (all []int) {
	for _, m := range statusLine.FindAllSubmatch(b, -1) {
		n, _ := strconv.Atoi(string(m[1]))
		all = append(all, n)
	}
	return all
}

func dialUDP(t testing.TB, server *testServer) net.Conn {
	t.Helper()
	conn, err := net.Dial("udp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// wantFinalStatus reads until the final response; those to other messages may precede it. 0 expects silence.
func wantFinalStatus(t *testing.T, conn net.Conn, status int, silence time.Duration, before ...int) {
	t.Helper()
	limit := testTimeout
	if status == 0 {
		limit = silence
	}
	end := time.Now().Add(limit)
	conn.SetReadDeadline(end)
	buf := make([]byte, 65536)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			if status == 0 && !time.Now().Before(end) {
				return // it stayed silent and open
			}
			t.Fatalf("no answer, want %d: %v", status, err)
		}
		got := statusCodes(buf[:n])
		if slices.Contains(got, status) {
			return
		}
		got = slices.DeleteFunc(got, func(s int) bool { return slices.Contains(before, s) })
		if len(got) > 0 && slices.Max(got) >= 200 {
			t.Fatalf("got %d, want %d:\n%s", got, status, buf[:n])
		}
	}
}

// wantOptionsAnswered sends OPTIONS, repeatedly if a datagram is lost, and expects a 200.
func wantOptionsAnswered(t testing.TB, server *testServer) {
	t.Helper()
	conn := dialUDP(t, server)
	buf := make([]byte, 4096)
	for range 20 {
		id := time.Now().UnixNano()
		fmt.Fprintf(conn, "OPTIONS sip:x@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK%d;rport\r\n"+
			"From: <sip:a@b>;tag=1\r\nTo: <sip:x@b>\r\nCall-ID: alive%d\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n", id, id)
		conn.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := conn.Read(buf); err == nil && strings.HasPrefix(string(buf[:n]), "SIP/2.0 200") {
			return
		}
	}
	t.Error("the server does not answer OPTIONS")
}
