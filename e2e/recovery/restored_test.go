package recovery

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/platform/db/pgtest"
)

// A copy that was taken during a call is started beside the original. The original keeps its call, its trunk and its webhooks. The copy
// sends nothing until the operator says that it takes the place of the original.
//
// https://github.com/ParabolInc/parabol/issues/7818, https://github.com/opencollective/opencollective/issues/2054
func TestRestored_SendsNothingUntilConfirmed(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 3*time.Minute, "audio is heard beside the copy, after it, and beside the confirmed copy, for each way to copy")
	t.Run("backup", func(t *testing.T) {
		besideOriginal(t, "", func(s *rig.Server, to string) (address string) {
			s.Command("backup", "--to", to)
			return ""
		})
	})
	t.Run("folder", func(t *testing.T) {
		besideOriginal(t, "", func(s *rig.Server, to string) (address string) {
			s.Kill()
			copyFolder(t, s.Data, to)
			s.Start()
			return ""
		})
	})
	t.Run("postgres", func(t *testing.T) {
		address := os.Getenv("SONIQ_TEST_POSTGRES")
		if address == "" {
			t.Skip("SONIQ_TEST_POSTGRES names no PostgreSQL")
		}
		besideOriginal(t, pgtest.New(t, address), func(s *rig.Server, to string) string {
			s.Kill()
			copyFolder(t, s.Data, to)
			copied := copyDatabase(t, address, s.DB)
			s.Start()
			return copied
		})
	})
}

// copyFolder copies a data folder as an operator does.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp -a: %v: %s", err, out)
	}
}

// copyDatabase copies a database whose server was killed, when its connections have ended.
func copyDatabase(t *testing.T, address, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	d, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rig.Until(t, "the connections of the killed server to end", 10*time.Second, func() bool {
		var open int
		if err := d.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = $1`, name).Scan(&open); err != nil {
			t.Fatal(err)
		}
		return open == 0
	})
	return pgtest.Copy(t, address, name)
}

// besideOriginal runs a call, copies the data of its server during it, and starts the copy beside it.
func besideOriginal(t *testing.T, address string, take func(s *rig.Server, to string) (address string)) {
	sip := fmt.Sprintf("127.0.0.1:%d", rig.FreePort(t))
	s := rig.Start(t, rig.Options{DB: address, Env: fixture.NoSpeech, Flags: []string{"--sip", sip}})
	o := fixture.NewOffice(s)
	carrier := fixture.NewRegistrar(t)
	carrier.AddTrunk(o.Org)
	rig.Until(t, "the trunk to register", 20*time.Second, func() bool { return len(carrier.Hosts()) > 0 })
	call := strings.TrimPrefix(o.ConnectCall(), "/calls/")
	options := rig.Options{Data: filepath.Join(t.TempDir(), "copy"), Env: fixture.NoSpeech}
	options.DB = take(s, options.Data)
	hear := func(when string) {
		t.Helper()
		o.HearsOnly("Ada "+when, o.AdaPhone, fixture.BobTone)
		o.HearsOnly("Bob "+when, o.BobPhone, fixture.AdaTone)
	}
	hear("after the copy was taken")
	silentCopy(t, o, call, options, hear)
	if all := carrier.Hosts(); !slices.Equal(all, []string{sip}) {
		t.Errorf("contacts at the carrier: %v, want %s alone", all, sip)
	}
	if hasEnd(o.Webhook, call) {
		t.Error("the copy posted the end of the call")
	}
	liveCopy(t, options, carrier, func() bool { return hasEnd(o.Webhook, call) })
	hear("beside the confirmed copy")
	o.BobPhone.Do("hangup", "")
	o.AdaPhone.Wait("CALL_CLOSED", "")
	if r := o.CDR(o.Ada.Extension); r.String() != "internal completed agent_hangup agent 0" {
		t.Errorf("record of the original: %s", r)
	}
}

// silentCopy starts the copy, and stops it.
func silentCopy(t *testing.T, o *fixture.Office, call string, options rig.Options, hear func(when string)) {
	t.Helper()
	copied := rig.Start(t, options)
	there := of(o, copied)
	if r := there.CDR(o.Ada.Extension); r.String() != "internal completed node_crash system 0" {
		t.Errorf("record of the copy: %s", r)
	}
	if r := recordingOf(there, call); r.Status != "available" || r.Duration == 0 {
		t.Errorf("recording of the call in progress in the copy: %+v", r)
	}
	if got := there.ReadyStatus(); got != 503 {
		t.Errorf("GET /ready of the copy: %d", got)
	}
	said, err := copied.TryCommand("doctor", "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--transcriber", "off")
	for what, text := range map[string]string{"its log": copied.Log(), "doctor": said} {
		if !strings.Contains(text, "soniq serve --restored=live") {
			t.Errorf("%s does not say how to confirm the copy: %v %s", what, err, text)
		}
	}
	copied.Sipp(rig.Script{Scenario: "call_refused", Status: 403, Login: &o.Carol.SIP, Number: "+12125550143"}).Wait()
	hear("beside the copy")
	copied.Stop()
	hear("after the copy has stopped")
}

// liveCopy starts the copy as one that takes the place of the original.
func liveCopy(t *testing.T, options rig.Options, carrier *fixture.Registrar, posted func() bool) {
	t.Helper()
	options.Flags = []string{"--restored=live"}
	live := rig.Start(t, options)
	rig.Until(t, "the confirmed copy to register the trunk", 20*time.Second,
		func() bool { return slices.Contains(carrier.Hosts(), live.SIP) })
	rig.Until(t, "the confirmed copy to post the end of its call", 20*time.Second, posted)
}

// of returns the organisation as a client of another server.
func of(o *fixture.Office, s *rig.Server) *fixture.Org {
	c := *o.Client
	c.Server = s
	return &fixture.Org{Client: &c, Webhook: o.Webhook}
}

// recordingOf returns the recording of a call.
func recordingOf(o *fixture.Org, call string) (r fixture.Recording) {
	o.T.Helper()
	o.Want(200, "GET", "/calls/"+call+"/recording", nil, &r)
	return r
}

// hasEnd reports whether the end of a call was posted.
func hasEnd(r *rig.Receiver, call string) bool {
	return slices.ContainsFunc(r.Events(), func(e rig.Event) bool { return e.Event == "call.ended" && e.Data["call_id"] == call })
}
