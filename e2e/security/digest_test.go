package security

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A third-party telephone whose device uses SHA-256 challenges (RFC 8760) registers, calls and is called.
func TestDigest_SHA256WithLinphone(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true})
	var phones struct{ Data []struct{ ID string } }
	o.Want(200, "GET", "/devices?user_id="+o.Bob.ID, nil, &phones)
	o.Want(200, "PATCH", "/devices/"+phones.Data[0].ID, map[string]any{"sip": map[string]any{"digest": "sha256"}}, nil)
	if asked := challengeOf(o, o.Bob.SIP); asked["algorithm"] != "SHA-256" {
		t.Errorf("the phone is asked %v", asked)
	}
	say, _ := fixture.Tone(t, fixture.BobTone)
	bob := s.Linphone(o.Bob.SIP, rig.LinphoneOptions{Say: say, Auto: true})
	bob.Dial(o.Ada.Extension)
	o.HearsOnly("Ada, who was called,", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob, who called,", bob, fixture.AdaTone)
	bob.Do("terminate")
	o.AdaPhone.Wait("CALL_CLOSED", "")
	o.AdaPhone.Dial(o.Bob.Extension)
	o.HearsOnly("Ada, who called,", o.AdaPhone, fixture.BobTone)
	o.AdaPhone.Do("hangup", "")
}

// challengeOf returns the Digest challenge of a phone that registers.
func challengeOf(o *fixture.Office, l rig.Login) map[string]string {
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
	return fixture.DigestParameters(rig.Field(strings.ReplaceAll(string(b[:n]), "\r", ""), "WWW-Authenticate"))
}
