package recovery

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// SIGHUP leaves the server and its call alone. A second SIGINT ends the wait for calls, hangs them up and says how many.
//
// https://github.com/traefik/traefik/issues/1660, k0sctl#877
func TestSignals(t *testing.T) {
	t.Parallel()
	s, company, _, from, to := busyServer(t, "10m", rig.Script{Scenario: "call_until_bye"}, rig.Script{Scenario: "answer"})
	send := func(sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(s.PID(), sig); err != nil {
			t.Fatal(err)
		}
	}
	says := func(text string) {
		t.Helper()
		rig.Until(t, fmt.Sprintf("the server to say %q", text), 10*time.Second, func() bool { return strings.Contains(s.Log(), text) })
	}
	send(syscall.SIGHUP)
	says("nothing to read again")
	if live := company.LiveCall(nil); live["status"] != "in_progress" {
		t.Errorf("the call is %v after SIGHUP", live["status"])
	}
	send(syscall.SIGINT)
	says("soniq is stopping")
	send(syscall.SIGTERM) // changes nothing
	send(syscall.SIGINT)
	says("soniq ends at once: 1 call(s) in progress are cut off")
	from.Wait()
	to.Wait()
	r := fixture.CDRAfterRestart(s, company)
	if r.String() != "inbound completed shutdown system 0" {
		t.Errorf("record: %s", r)
	}
	company.WantEvents(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
}

// SIGHUP reads a renewed certificate, which every listener shows.
func TestSignals_Certificate(t *testing.T) {
	t.Parallel()
	own, renewed := rig.NewCertificate(t), rig.NewCertificate(t)
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: append(own.ListenFlags(), "--smpps", "127.0.0.1:0")})
	addresses := tlsAddresses(t, s.Log())
	before := certificates(t, addresses)
	for from, to := range map[string]string{renewed.Cert: own.Cert, renewed.Key: own.Key} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(s.PID(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, "the certificate to be read", 10*time.Second, func() bool { return strings.Contains(s.Log(), "read again on request") })
	for address, was := range before {
		if now := certificates(t, []string{address})[address]; now == was {
			t.Errorf("%s shows the certificate from before", address)
		}
	}
}

// tlsAddresses returns the addresses of the listeners with TLS in the line of the start.
func tlsAddresses(t *testing.T, log string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(` (?:https|sips|smpps)=(\S+)`).FindAllStringSubmatch(log, -1) {
		all = append(all, m[1])
	}
	if len(all) != 3 {
		t.Fatalf("listeners with TLS: %v", all)
	}
	return all
}

// certificates returns a digest of the certificate that each address shows.
func certificates(t *testing.T, addresses []string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	for _, a := range addresses {
		c, err := tls.Dial("tcp", a, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		all[a] = sha256.Sum256(c.ConnectionState().PeerCertificates[0].Raw)
		_ = c.Close()
	}
	return all
}
