package browser

import (
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/wav"
)

// A call between a browser over wss:// and a telephone over TLS: all traffic between them is encrypted.
func TestSecure_WSSToTLS(t *testing.T) {
	t.Parallel()
	own := rig.NewCertificate(t)
	s := rig.Start(t, rig.Options{Load: rig.Browser, Flags: append(own.ListenFlags(), "--web-origins", "*")})
	office := s.Org("live")
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	a := newWebPhone(t, s, ada.SIP, "440", true)
	var address string
	a.eval(&address, "ua.transport.url")
	if address != s.WSS {
		t.Errorf("the browser is connected to %s", address)
	}
	desk := s.Phone(bob.SIP, rig.PhoneOptions{Say: voice(t, "1000", "8000"), Auto: true, Transport: "tls", Authority: own.Authority, Encrypt: "srtp-mand"})
	var phones struct{ Data []struct{ ID string } }
	office.Want(200, "GET", "/devices?user_id="+bob.ID, nil, &phones)
	office.Want(200, "PATCH", "/devices/"+phones.Data[0].ID, map[string]any{"srtp": "required"}, nil)
	a.dial(bob.Extension)
	a.wait("confirmed")
	a.hears(1000)
	desk.Listen(2 * time.Second)
	a.eval(nil, "session.terminate()")
	desk.Wait("CALL_CLOSED", "")
	a.eval(nil, "(events.length = 0, 0)")
	desk.Dial(ada.Extension)
	a.wait("confirmed")
	a.hears(1000)
	desk.Listen(2 * time.Second)
	desk.Do("hangup", "")
	a.wait("ended")
	heard, err := wav.Read(desk.Close())
	if err != nil {
		t.Fatal(err)
	}
	pcm := heard.PCM[0]
	if hz, _ := dsp.DominantFrequency(pcm[len(pcm)/2:], 8000); hz < 430 || hz > 450 {
		t.Errorf("the desk phone heard %.0f Hz", hz)
	}
}
