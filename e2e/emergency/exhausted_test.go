package emergency

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/platform/db/pgtest"
)

// wantHelp has a telephone dial the emergency number and fails unless the tone of the emergency service is heard.
func wantHelp(t *testing.T, p *rig.Phone, while func()) {
	t.Helper()
	mark := p.Mark()
	began := time.Now()
	p.Dial("911")
	if d := time.Since(began); d > 8*time.Second {
		t.Errorf("the emergency call was answered after %s", d)
	}
	fixture.Hears(t, "Ada", p.Since(mark, 2*time.Second), fixture.BobTone, 500*time.Millisecond)
	if while != nil {
		while()
	}
	p.Do("hangup", "")
}

// fill has handsets of an organisation call each other until a call is refused. It returns the number of calls.
func fill(t *testing.T, o *fixture.Org) (n int) {
	t.Helper()
	rings := make(chan *fixture.IncomingCall, 100)
	from, to := o.AddHandset("Eve", rings), o.AddHandset("Mallory", rings)
	for n < 100 {
		d := from.Dial(to.User.Extension)
		ended := make(chan string, 1)
		go func() { ended <- d.WaitEnd() }()
		select {
		case <-rings:
			n++
		case <-ended:
			return n
		}
	}
	t.Fatal("there is no end of calls")
	return n
}

// With every RTP port in use, emergency calls take those kept back, then those of the organisation with most calls.
func TestEmergency_PreemptsPorts(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--rtp-ports", "24200-24239", "--org-share", "100",
		"--device-calls", "0", "--user-calls", "0", "--drain", "1s"}})
	_, ulaw := fixture.Tone(t, fixture.BobTone)
	company, other := fixture.NewOrg(s), fixture.NewOrg(s)
	help := addEmergencyCarrier(company, rig.Script{Scenario: "answer", Play: ulaw, Calls: 3})
	ada := company.Phone(company.AddUser("Ada"), fixture.AdaTone, rig.PhoneOptions{})
	if n := fill(t, other); n < 6 {
		t.Fatalf("only %d calls fill the ports", n)
	}
	carol := company.AddHandset("Carol", nil)
	first, second := carol.Dial("911").WaitAnswered(), carol.Dial("911").WaitAnswered() // take what is kept back
	wantHelp(t, ada, nil)
	first.HangUp()
	second.HangUp()
	help.Wait()
	company.CDRs(3, "phone=911&status=completed")
	reasons := map[string]int{}
	for _, r := range other.CDRs(2, "") { // the last that rang, and one that was refused because no port was free
		reasons[r.EndReason+" "+r.HangupBy]++
	}
	if reasons["blocked system"] != 1 || reasons["carrier_error system"] != 1 {
		t.Errorf("the other organisation's calls ended so: %v", reasons)
	}
}

// With every file descriptor in use, emergency calls use those kept back.
func TestEmergency_DescriptorsExhausted(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Upset: true})
	company := fixture.NewOrg(s)
	_, ulaw := fixture.Tone(t, fixture.BobTone)
	help := addEmergencyCarrier(company, rig.Script{Scenario: "answer", Play: ulaw, Calls: 3})
	ada := company.Phone(company.AddUser("Ada"), fixture.AdaTone, rig.PhoneOptions{})
	carol := company.AddHandset("Carol", nil)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command("prlimit", "--pid", strconv.Itoa(s.PID()), "--nofile="+strconv.Itoa(len(open)+8)+":").CombinedOutput(); err != nil {
		t.Skipf("prlimit: %v %s", err, out)
	}
	for range 40 { // by SIP over TCP, because the HTTP server refuses connections earlier
		c, err := net.Dial("tcp", s.SIP)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	rig.Until(t, "the descriptors are used up", 10*time.Second, func() bool {
		now, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
		return err == nil && len(now) >= len(open)+8
	})
	first, second := carol.Dial("911").WaitAnswered(), carol.Dial("911").WaitAnswered()
	wantHelp(t, ada, nil)
	first.HangUp()
	second.HangUp()
	help.Wait()
}

// An emergency call leaves while nothing can be written to the database. Its record is complete when the database
// answers again.
func TestEmergency_DatabaseLocked(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Upset: true})
	company := fixture.NewOrg(s)
	_, ulaw := fixture.Tone(t, fixture.BobTone)
	help := addEmergencyCarrier(company, rig.Script{Scenario: "answer", Play: ulaw})
	ada := company.Phone(company.AddUser("Ada"), fixture.AdaTone, rig.PhoneOptions{})
	unlock := fixture.LockDatabase(t, s)
	wantHelp(t, ada, nil)
	help.Wait()
	unlock()
	wantRecord(t, company)
}

// An emergency call leaves while PostgreSQL cannot be reached, and nothing of it is lost.
func TestEmergency_DatabaseAway(t *testing.T) {
	t.Parallel()
	address := os.Getenv("SONIQ_TEST_POSTGRES")
	if address == "" {
		t.Skip("SONIQ_TEST_POSTGRES names no PostgreSQL")
	}
	u, err := url.Parse(pgtest.New(t, address))
	if err != nil {
		t.Fatal(err)
	}
	w := fixture.NewWire(t, u.Host)
	u.Host = w.Addr()
	s := rig.Start(t, rig.Options{DB: u.String(), Env: fixture.NoSpeech, Upset: true})
	company := fixture.NewOrg(s)
	_, ulaw := fixture.Tone(t, fixture.BobTone)
	help := addEmergencyCarrier(company, rig.Script{Scenario: "answer", Play: ulaw})
	ada := company.Phone(company.AddUser("Ada"), fixture.AdaTone, rig.PhoneOptions{})
	rig.Until(t, "the phone can call without the database", 20*time.Second, func() bool {
		return fixture.Metric(s, "soniq_emergency_standby_phones") == 1
	})
	w.Set(true)
	<-time.After(4 * time.Second) // caches of trunks and organisations expire
	wantHelp(t, ada, nil)
	help.Wait()
	w.Set(false)
	wantRecord(t, company)
}

func wantRecord(t *testing.T, company *fixture.Org) {
	t.Helper()
	r := company.CDR("911")
	if r.String() != "outbound completed caller_hangup caller 0" || r.Talk < 1 {
		t.Errorf("record: %s, %d s", r, r.Talk)
	}
	company.Recording(r.CallID)
	if told := firstStreamed(company, "emergency.call_placed"); told == "" {
		t.Error("the event was lost")
	}
}

// Neither a suspension of the user nor a stop of outbound calls keeps an emergency call back.
func TestEmergency_StoppedAndSuspended(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	_, ulaw := fixture.Tone(t, fixture.BobTone)
	help := addEmergencyCarrier(company, rig.Script{Scenario: "answer", Play: ulaw})
	user := company.AddUser("Ada")
	ada := company.Phone(user, fixture.AdaTone, rig.PhoneOptions{})
	s.Command("admin", "outbound", "stop")
	company.Want(200, "PATCH", "/users/"+user.ID, map[string]any{"status": "suspended"}, nil)
	wantHelp(t, ada, func() {
		s.Command("admin", "outbound", "stop", "--calls")
		mark := ada.Mark()
		fixture.Hears(t, "Ada", ada.Since(mark, time.Second), fixture.BobTone, 500*time.Millisecond)
	})
	help.Wait()
	if r := company.CDR("911"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}
