package command_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

func TestDoctor_Healthy(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	before := soniq(t, nil, "doctor", "--data", data, "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--transcriber", "off")
	if before.code != 0 {
		t.Errorf("exit %d: %s", before.code, before.out)
	}
	says(t, before.out, "settings in force", "no soniq runs on it", "is free", "SQLite will be made", "transcription is switched off", "nothing is wrong")
	s := rig.Start(t, rig.Options{Data: data, Flags: []string{"--transcriber", "off"}})
	beside := soniq(t, nil, "doctor", "--data", data, "--transcriber", "off")
	if beside.code != 0 {
		t.Errorf("beside a running server: exit %d: %s", beside.code, beside.out)
	}
	says(t, beside.out, "runs on it", s.HTTP, s.SIP, "0 call(s) in progress", "SQLite is in use")
	if strings.Contains(beside.out, "redaction_failed") {
		t.Errorf("recordings without redaction: %s", beside.out)
	}
	redaction := map[string]any{"kinds": []string{"card"}, "audio": true}
	s.Org("live").Want(200, "PATCH", "/organization", map[string]any{"redaction": redaction}, nil)
	const fails = "numbers are to be removed from them: transcription is switched off"
	says(t, soniq(t, nil, "doctor", "--data", data, "--transcriber", "off").out, "redaction_failed", fails)
	s.Stop()
	says(t, soniq(t, nil, "doctor", "--data", data, "--transcriber", "off").out, "no soniq runs on it", "redaction_failed", fails)
}

func TestDoctor_Problems(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := soniq(t, nil, "doctor", "--data", filepath.Join(file, "data"), "--http", taken.Addr().String(), "--sip", udp.LocalAddr().String(),
		"--db", "postgres://someone:topsecret@127.0.0.1:1/none?sslmode=disable", "--transcriber", "off", "--rtp-ports", "30000-30099", "--base-url", "http://voice.example.com")
	if r.code != 1 {
		t.Errorf("exit %d: %s", r.code, r.out)
	}
	says(t, r.out, "BAD   --http "+taken.Addr().String(), "BAD   --sip "+udp.LocalAddr().String(), "BAD   data folder", "BAD   open PostgreSQL",
		"hint  --rtp-ports", "hint  --base-url is not https", "choose another port with --http", "(hidden)",
		fmt.Sprintf("%d problem(s)", strings.Count(r.out, "\n  BAD "))) // another program may use the TCP port with the same number
	if strings.Contains(r.out+r.wrong, "topsecret") {
		t.Error("the password of the database is shown")
	}
}

// TestDoctor_MissingRecogniserLibrary replaces the library of the recogniser by an empty file.
func TestDoctor_MissingRecogniserLibrary(t *testing.T) {
	t.Parallel()
	r := soniq(t, []string{withoutEngine(t)}, "doctor", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--transcriber", "pocketsphinx")
	if r.code != 0 {
		t.Errorf("exit %d: %s", r.code, r.out)
	}
	says(t, r.out, "hint  calls will not be transcribed", "libpocketsphinx", "soniq speech-model install, or apt-get install libpocketsphinx3 pocketsphinx-en-us")
}

func withoutEngine(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "libpocketsphinx.so.3"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return "LD_LIBRARY_PATH=" + dir
}
