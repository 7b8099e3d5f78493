package command_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

var quick = rig.Options{Flags: []string{"--transcriber", "off"}}

func TestServe_FirstStartShowsKeyOnce(t *testing.T) {
	t.Parallel()
	rig.Each(t, quick, func(t *testing.T, s *rig.Server) {
		found := regexp.MustCompile(`(?m)^soniq_live_\w{36}$`).FindAllString(s.Log(), -1)
		if len(found) != 1 {
			t.Fatalf("%d keys were shown at the first start", len(found))
		}
		if me := whoami(t, s, "/v1/me", found[0]); len(me.Scopes) != 13 {
			t.Errorf("the first key has %v", me.Scopes)
		}
		s.Stop()
		s.Start()
		if n := strings.Count(s.Log(), "soniq_live_"); n != 1 {
			t.Errorf("after the second start %d keys were shown", n)
		}
		whoami(t, s, "/v1/me", found[0])
		secretsAreNotKept(t, s, found[0])
	})
}

// secretsAreNotKept searches every file of the data folder for a key, and checks the permissions of the files.
func secretsAreNotKept(t *testing.T, s *rig.Server, key string) {
	t.Helper()
	s.Stop()
	err := filepath.Walk(s.Data, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others: %s", path, info.Mode())
		}
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), key) {
			t.Errorf("the key is in %s", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestServe_ReadyLineNamesPorts(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, quick)
	for _, address := range []string{s.HTTP, s.SIP} {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "0" {
			t.Errorf("the ready line names %q", address)
		}
	}
	a, err := http.Get("http://" + s.HTTP + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	if a.StatusCode != 200 {
		t.Errorf("ready was printed, and /ready answers %d", a.StatusCode)
	}
	for _, network := range []string{"udp", "tcp"} {
		c, err := net.Dial(network, s.SIP)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
}

// TestServe_DataFolderLocked proves that a second server on a data folder is refused, and that the first one keeps its control socket.
// After a kill the next server starts, whatever the old control socket and the lock file say.
//
// https://github.com/thin-edge/thin-edge.io/pull/4264
// https://github.com/pingcap/tidb/issues/26058
// https://github.com/nginx/nginx/issues/851
// https://github.com/mailgun/kafka-pixy/issues/4
// https://github.com/rethinkdb/rethinkdb/issues/36
// https://github.com/apple/ccs-calendarserver/issues/25
func TestServe_DataFolderLocked(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, quick)
	again := soniq(t, nil, "serve", "--data", s.Data, "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--rtp-ports", "0-0")
	again.refused(t, "another soniq serves this data folder", s.Data, "--data")
	a, err := http.Get("http://" + s.HTTP + "/ready")
	if err != nil || a.StatusCode != 200 {
		t.Fatalf("the first one is disturbed: %v", err)
	}
	_ = a.Body.Close()
	s.Org("live") // by the control socket
	s.Kill()
	if _, err := os.Lstat(filepath.Join(s.Data, "control.sock")); err != nil {
		t.Fatalf("the killed server left no control socket: %v", err)
	}
	write(t, filepath.Join(s.Data, "lock"), []byte(strconv.Itoa(os.Getpid())+"\n")) // the id of a process that is no soniq
	s.Start()
	s.Org("live")
}

// TestServe_PortInUse proves that a server does not start if an address is in use. The error names the setting. The next start succeeds.
//
// https://github.com/apache/apisix/issues/7986
func TestServe_PortInUse(t *testing.T) {
	t.Parallel()
	smpp := fmt.Sprintf("127.0.0.1:%d", rig.FreePort(t))
	s := rig.Start(t, rig.Options{Flags: append([]string{"--smpp", smpp}, quick.Flags...)})
	soniq(t, nil, "serve", "--data", t.TempDir(), "--http", s.HTTP, "--sip", "127.0.0.1:0").refused(t, s.HTTP, "in use", "--http")
	soniq(t, nil, "serve", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--sip", s.SIP, "--rtp-ports", "0-0").refused(t, s.SIP, "in use", "--sip")
	soniq(t, nil, "serve", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0",
		"--db", "postgres://nobody@127.0.0.1:1/none?sslmode=disable").refused(t, "PostgreSQL", "127.0.0.1:1")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	soniq(t, nil, "serve", "--data", filepath.Join(file, "data"), "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0").refused(t, "data folder", file)

	s.Stop()
	taken, err := net.Listen("tcp", smpp)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := s.TryStart(); err == nil || !strings.Contains(err.Error(), "--smpp") || !strings.Contains(err.Error(), "in use") {
		t.Errorf("while the address of SMPP is in use: %v", err) // SMPP listens after the control socket
	}
	_ = taken.Close()
	s.Start()
	s.Org("live") // by the control socket
}

// TestConfiguration_Precedence sets a value in all four sources, one after the other.
func TestConfiguration_Precedence(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "soniq.conf")
	if err := os.WriteFile(file, []byte("# ours\nbrand = \"filed\"\nmax-calls = 7\n\ndrain=11s\nwriter-key = hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	shown := func(env []string, args ...string) map[string]string {
		r := soniq(t, env, append([]string{"doctor", "--data", data, "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--transcriber", "off"}, args...)...)
		values := map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+) +(\S+)$`).FindAllStringSubmatch(r.out, -1) {
			values[m[1]] = m[2]
		}
		if strings.Contains(r.out+r.wrong, "hush") {
			t.Error("a secret is shown")
		}
		return values
	}
	for _, c := range []struct {
		env              []string
		args             []string
		brand, max, time string
	}{
		{nil, nil, "soniq", "20000", "30s"},
		{nil, []string{"--config", file}, "filed", "7", "11s"},
		{[]string{"SONIQ_CONFIG=" + file}, nil, "filed", "7", "11s"},
		{[]string{"SONIQ_CONFIG=" + file, "SONIQ_BRAND=environ", "SONIQ_MAX_CALLS=8"}, nil, "environ", "8", "11s"},
		{[]string{"SONIQ_CONFIG=" + file, "SONIQ_BRAND=environ", "SONIQ_MAX_CALLS=8"}, []string{"--brand", "flagged"}, "flagged", "8", "11s"},
	} {
		got := shown(c.env, c.args...)
		if got["brand"] != c.brand || got["max-calls"] != c.max || got["drain"] != c.time {
			t.Errorf("%v %v: brand %s, max-calls %s, drain %s; want %s, %s, %s", c.env, c.args, got["brand"], got["max-calls"], got["drain"], c.brand, c.max, c.time)
		}
	}
	if err := os.WriteFile(file, []byte("max-cals = 7\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	soniq(t, nil, "doctor", "--config", file).refused(t, "line 2", "name = value")
	if err := os.WriteFile(file, []byte("max-cals = 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	soniq(t, nil, "doctor", "--config", file).refused(t, `"max-cals"`)
}

func TestVersion_AndHelp(t *testing.T) {
	t.Parallel()
	if r := soniq(t, nil, "version"); r.code != 0 || !regexp.MustCompile(`^soniq \S+\n$`).MatchString(r.out) {
		t.Errorf("version: %+v", r)
	}
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"-h"}} {
		if r := soniq(t, nil, args...); r.code != 0 || !strings.Contains(r.out, "soniq serve") || strings.Contains(r.out, "asr-worker") {
			t.Errorf("soniq %v: %+v", args, r)
		}
	}
	for _, name := range []string{"serve", "demo", "org", "key", "doctor", "migrate", "backup"} {
		for _, args := range [][]string{{"help", name}, {name, "--help"}} {
			if r := soniq(t, nil, args...); r.code != 0 || !strings.Contains(r.out+r.wrong, "--data") && name != "demo" {
				t.Errorf("soniq %v: exit %d, %.200s", args, r.code, r.out+r.wrong)
			}
		}
	}
}
