package attack

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// With few file descriptors, hundreds of idle HTTP connections neither stop the API nor keep a call from being recorded.
func TestHTTP_IdleConnectionsLeaveRecordings(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Upset: true})
	o := fixture.NewOffice(s)
	few := unix.Rlimit{Cur: 600, Max: 600}
	if err := unix.Prlimit(s.PID(), unix.RLIMIT_NOFILE, &few, nil); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, "the server to know its new limit", 20*time.Second, func() bool { // it reads the limit once in a second
		return strings.Contains(metricsText(t, s), "soniq_descriptors_allowed 600\n")
	})
	most := mostDescriptors(t, s)
	for range 700 {
		c, err := net.Dial("tcp", s.HTTP)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	rig.Until(t, "an answer beside the idle connections", 20*time.Second, func() bool { // new connections are not closed for a second
		a, err := once.Get("http://" + s.HTTP + "/health")
		if err != nil {
			return false
		}
		_ = a.Body.Close()
		return a.StatusCode == http.StatusOK
	})
	if used := most(); used > 500 {
		t.Errorf("idle connections left %d of 600 descriptors", 600-used)
	}
	o.AdaPhone.Dial(o.Bob.Extension)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
	o.AdaPhone.Do("hangup", "")
	o.Webhook.Wait("call.recording", time.Minute, func(rig.Event) bool { return true })
}

// mostDescriptors counts the file descriptors of the server until most is called, which returns the highest count. Idle connections end
// after a while, so what they use up is seen only meanwhile.
func mostDescriptors(t *testing.T, s *rig.Server) (most func() int) {
	t.Helper()
	done, highest := make(chan struct{}), make(chan int, 1)
	go func() {
		n, tick := 0, time.NewTicker(20*time.Millisecond)
		defer tick.Stop()
		for {
			if all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID())); err == nil {
				n = max(n, len(all))
			}
			select {
			case <-done:
				highest <- n
				return
			case <-tick.C:
			}
		}
	}()
	return func() int { close(done); return <-highest }
}

// GET /metrics refuses requests that a proxy on this machine forwards. If a key is configured, it refuses requests without it.
func TestHTTP_MetricsOfProxies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env    map[string]string
		header http.Header
		want   int
	}{
		{nil, nil, 200},
		{nil, http.Header{"X-Forwarded-For": {"203.0.113.9"}}, 401},
		{nil, http.Header{"Via": {"1.1 proxy"}}, 401},
	} {
		s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
		if got := metrics(t, s, c.header); got != c.want {
			t.Errorf("%v: %d", c.header, got)
		}
	}
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_METRICS_KEY": "s3cret", "SONIQ_TRANSCRIBER": "off"}})
	if got := metrics(t, s, nil); got != 401 {
		t.Errorf("a key is set, and none is shown: %d", got)
	}
	if got := metrics(t, s, http.Header{"Authorization": {"Bearer s3cret"}}); got != 200 {
		t.Errorf("the key is shown: %d", got)
	}
}

// metricsText returns the text of GET /metrics.
func metricsText(t *testing.T, s *rig.Server) string {
	t.Helper()
	a, err := http.Get("http://" + s.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func metrics(t *testing.T, s *rig.Server, h http.Header) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+s.HTTP+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if h != nil {
		r.Header = h
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	return a.StatusCode
}

// A malformed chunk is the fault of who sent it: 400, and nothing in the log of errors.
func TestHTTP_MalformedChunk(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	o := fixture.NewOrg(s)
	for _, body := range []string{"ZZ\r\n{}\r\n0\r\n\r\n", "-1\r\n{}\r\n0\r\n\r\n", "5\r\n{\"na\r\n0\r\n\r\n", "fffffffffffffffff\r\n{}"} {
		for _, to := range []string{"/api/v1/queues application/json", "/api/v1/audio multipart/form-data;boundary=x", "/auth/oauth/token application/x-www-form-urlencoded",
			"/mcp application/json"} {
			path, kind, _ := strings.Cut(to, " ")
			c, err := net.Dial("tcp", s.HTTP)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: "+s.HTTP+"\r\nAuthorization: Bearer "+o.Key+"\r\nContent-Type: "+kind+
				"\r\nAccept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"+body)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(limit.Hang(0)))
			a, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("%q to %s: %v", body, path, err)
			}
			if a.StatusCode < 400 || a.StatusCode >= 500 {
				t.Errorf("%q to %s: %d", body, path, a.StatusCode)
			}
			_, _ = a.Body.Close(), c.Close()
		}
	}
}

// Every page and answer has a policy without inline code.
func TestHTTP_PagesHavePolicy(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	for _, path := range []string{"/", "/docs", "/errors", "/errors/not_found", "/v1", "/openapi.json", "/account/login", "/nowhere", "/health", "/crm/oauth/callback"} {
		a, err := http.Get("http://" + s.HTTP + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		policy := a.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script-src 'self' 'unsafe") {
			t.Errorf("%s: %q", path, policy)
		}
	}
}
