package attack

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// guessPasswords sends wrong passwords from an address until it gets no answer.
func guessPasswords(t *testing.T, s *rig.Server, from string, l rig.Login) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("udp", s.SIP)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	register := func(id string, seq int, extra string) string {
		fmt.Fprintf(conn, "REGISTER sip:%[1]s SIP/2.0\r\nVia: SIP/2.0/UDP %[2]s;branch=z9hG4bK%[3]s%[4]d;rport\r\nMax-Forwards: 70\r\n"+
			"From: <sip:%[5]s@%[6]s>;tag=1\r\nTo: <sip:%[5]s@%[6]s>\r\nCall-ID: %[3]s\r\nCSeq: %[4]d REGISTER\r\n"+
			"Contact: <sip:%[5]s@%[2]s>\r\n%[7]sContent-Length: 0\r\n\r\n", l.Domain, conn.LocalAddr(), id, seq, l.Username, l.Domain, extra)
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		b := make([]byte, 4000)
		n, _ := conn.Read(b)
		return strings.ReplaceAll(string(b[:n]), "\r", "")
	}
	for i := range 60 {
		m := register(fmt.Sprint("guess", i), 1, "")
		if m == "" {
			return
		}
		p := fixture.DigestParameters(rig.Field(m, "WWW-Authenticate"))
		register(fmt.Sprint("guess", i), 2, fmt.Sprintf("Authorization: Digest username=%q, realm=%q, nonce=%q, uri=\"sip:%s\", "+
			"response=\"00000000000000000000000000000000\", qop=auth, nc=00000001, cnonce=\"a\"\r\n", l.Username, p["realm"], p["nonce"], l.Domain))
	}
	t.Fatal("60 wrong passwords led to no ban")
}

// Wrong passwords from behind an office's router get its address banned. A phone there still calls for help.
func TestBan_EmergencyCallFromABannedAddress(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	ada, bob := company.AddUser("Ada"), company.AddUser("Bob")
	carrier := company.AddCarrier("", map[string]any{"emergency_capable": true})
	help := s.Sipp(rig.Script{Scenario: "answer", IP: carrier.IP, Port: carrier.Port})
	guessPasswords(t, s, "127.0.77.9", bob.SIP)
	s.Sipp(rig.Script{Scenario: "call", IP: "127.0.77.9", Login: &ada.SIP, Number: "911", Talk: time.Second}).Wait()
	help.Wait()
	if r := company.CDR("911"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}
