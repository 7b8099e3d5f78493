package security

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
)

func TestRTPInjection_NotHeard(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	office := fixture.NewOrg(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	low, _ := fixture.Tone(t, 440)
	high, _ := fixture.Tone(t, 1000)
	caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low})
	callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: high, Auto: true})
	caller.Dial(bob.Extension)
	caller.Listen(time.Second)
	callee.Listen(time.Second)
	ports := fixture.UDPPorts(t, s)
	if len(ports) < 4 {
		t.Fatalf("the server has the UDP ports %v; two for each side were expected", ports)
	}
	for _, from := range []string{"127.66.6.6", "127.0.0.1"} { // an unknown address, and another port of the telephones' own address
		sendRTP(t, from, ports, 2300, 2*time.Second)
	}
	caller.Listen(5 * time.Second)
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
	r := office.CDR(ada.Extension)
	both := office.RecordingAudio(office.Recording(r.CallID).ID, "").PCM
	for who, pcm := range map[string][]int16{"the left channel": both[0], "the right channel": both[1],
		"Ada": fixture.ReadWAV(t, caller.Close()).PCM[0], "Bob": fixture.ReadWAV(t, callee.Close()).PCM[0]} {
		fixture.HearsNot(t, who, pcm, 2300, 0)
	}
	fixture.Hears(t, "the left channel", both[0], 440, 4*time.Second)
	fixture.Hears(t, "the right channel", both[1], 1000, 4*time.Second)
}

// sendRTP sends a tone as RTP to all ports, fifty packets a second each.
func sendRTP(t *testing.T, from string, ports []int, hz float64, d time.Duration) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(from)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	pcm := dsp.Tone(hz, -6, d, 8000)
	payload := make([]byte, len(pcm))
	codec.EncodeULaw(payload, pcm)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; i+160 <= len(payload); i += 160 {
		<-tick.C
		packet := binary.BigEndian.AppendUint16([]byte{0x80, 0}, uint16(i/160))
		packet = binary.BigEndian.AppendUint32(packet, uint32(i))
		packet = append(append(packet, 'e', 'v', 'i', 'l'), payload[i:i+160]...)
		for _, port := range ports {
			_, _ = conn.WriteToUDP(packet, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		}
	}
}
