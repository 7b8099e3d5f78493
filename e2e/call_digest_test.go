package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// A device that is challenged with SHA-256 (RFC 8760) is used by a telephone that others wrote: it registers, calls and is called.
func TestLinphoneAnswersChallengesWithSHA256(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	o := &office{site: newSite(s)}
	o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Auto: true})
	var phones struct{ Data []struct{ ID string } }
	o.Want(200, "GET", "/devices?user_id="+o.bob.ID, nil, &phones)
	o.Want(200, "PATCH", "/devices/"+phones.Data[0].ID, map[string]any{"sip": map[string]any{"digest": "sha256"}}, nil)
	if asked := o.challenge(o.bob.SIP); asked["algorithm"] != "SHA-256" {
		t.Errorf("the phone is asked %v", asked)
	}
	say, _ := tone(t, bobTone)
	bob := s.Linphone(o.bob.SIP, rig.LinphoneOptions{Say: say, Auto: true})
	bob.Dial(o.ada.Extension)
	o.talks("Ada, who was called,", o.adaPhone, bobTone)
	o.talks("Bob, who called,", bob, adaTone)
	bob.Do("terminate")
	o.adaPhone.Wait("CALL_CLOSED", "")
	o.adaPhone.Dial(o.bob.Extension)
	o.talks("Ada, who called,", o.adaPhone, bobTone)
	o.adaPhone.Do("hangup", "")
}

// challenge is what a phone is asked that registers, by the parameters of Digest.
func (o *office) challenge(l rig.Login) map[string]string {
	o.T.Helper()
	conn, err := net.Dial("udp", o.Server.SIP)
	if err != nil {
		o.T.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "REGISTER sip:%s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bKask;rport\r\nMax-Forwards: 70\r\nFrom: <sip:%[3]s@%[4]s>;tag=1\r\n"+
		"To: <sip:%[3]s@%[4]s>\r\nCall-ID: ask\r\nCSeq: 1 REGISTER\r\nContact: <sip:%[3]s@%[2]s>\r\nContent-Length: 0\r\n\r\n", o.Server.SIP, conn.LocalAddr(), l.Username, l.Domain)
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	b := make([]byte, 4000)
	n, err := conn.Read(b)
	if err != nil {
		o.T.Fatal(err)
	}
	return parameters(rig.Field(strings.ReplaceAll(string(b[:n]), "\r", ""), "WWW-Authenticate"))
}
