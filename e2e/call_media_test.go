package e2e

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
)

func TestAStrangersAudioIsNotHeard(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	office := newSite(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	low, _ := tone(t, 440)
	high, _ := tone(t, 1000)
	caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low})
	callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: high, Auto: true})
	caller.Dial(bob.Extension)
	caller.Listen(time.Second)
	callee.Listen(time.Second)
	ports := udpPorts(t, s)
	if len(ports) < 4 {
		t.Fatalf("the server has the UDP ports %v; two for each side were expected", ports)
	}
	for _, from := range []string{"127.66.6.6", "127.0.0.1"} { // a stranger, and another port of the telephones' own address
		spray(t, from, ports, 2300, 2*time.Second)
	}
	caller.Listen(5 * time.Second)
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
	r := office.record(ada.Extension)
	both := office.audio(office.recording(r.CallID).ID, "").PCM
	for who, pcm := range map[string][]int16{"the left channel": both[0], "the right channel": both[1],
		"Ada": read(t, caller.Close()).PCM[0], "Bob": read(t, callee.Close()).PCM[0]} {
		hearsNot(t, who, pcm, 2300, 0)
	}
	hears(t, "the left channel", both[0], 440, 4*time.Second)
	hears(t, "the right channel", both[1], 1000, 4*time.Second)
}

// udpPorts are the UDP ports of the server but that of SIP, as anybody on the network finds them by trying.
func udpPorts(t *testing.T, s *rig.Server) []int {
	t.Helper()
	own := sockets(t, s.PID())
	f, err := os.Open(fmt.Sprintf("/proc/%d/net/udp", s.PID()))
	if err != nil {
		t.Skipf("no list of ports: %v", err)
	}
	defer f.Close()
	var ports []int
	_, sipPort, _ := net.SplitHostPort(s.SIP)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || !own[fields[9]] {
			continue
		}
		_, hex, _ := strings.Cut(fields[1], ":")
		port, err := strconv.ParseInt(hex, 16, 32)
		if err == nil && strconv.Itoa(int(port)) != sipPort {
			ports = append(ports, int(port))
		}
	}
	return ports
}

// sockets are the inodes of a process's sockets.
func sockets(t *testing.T, pid int) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(files) == 0 {
		t.Skipf("no open files of the server: %v", err)
	}
	inodes := map[string]bool{}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && strings.HasPrefix(target, "socket:[") {
			inodes[strings.Trim(target, "socket:[]")] = true
		}
	}
	return inodes
}

// spray sends a tone as RTP to all ports, fifty packets a second each.
func spray(t *testing.T, from string, ports []int, hz float64, d time.Duration) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(from)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	pcm := media.Tone(hz, -6, d, 8000)
	payload := make([]byte, len(pcm))
	media.EncodeULaw(payload, pcm)
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

func TestALawIsSpokenWhereOneSideWantsIt(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	office := newSite(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	low, _ := tone(t, 440)
	high, _ := tone(t, 1000)
	caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low})
	callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: high, Auto: true, Codecs: "PCMA/8000"})
	caller.Dial(bob.Extension)
	caller.Listen(1500 * time.Millisecond)
	callee.Listen(1500 * time.Millisecond)
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
	r := office.record(ada.Extension)
	both := office.audio(office.recording(r.CallID).ID, "").PCM
	hears(t, "Ada", read(t, caller.Close()).PCM[0], 1000, time.Second)
	hears(t, "Bob", read(t, callee.Close()).PCM[0], 440, time.Second)
	hears(t, "the left channel", both[0], 440, time.Second)
	hears(t, "the right channel", both[1], 1000, time.Second)
	hears(t, "the agent's channel", office.audio(office.recording(r.CallID).ID, "?channel=agent").PCM[0], 1000, time.Second)
}

func TestALateOfferIsHeardOnBothSides(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	low, _ := tone(t, 440)
	_, high := tone(t, 1000)
	phone := s.Phone(user.SIP, rig.PhoneOptions{Say: low, Auto: true})
	s.Sipp(rig.Script{Scenario: "call", LateOffer: true, IP: way.ip, From: "+12125550177", Number: way.number, Play: high, Talk: 3 * time.Second}).Wait()
	phone.Wait("CALL_CLOSED", "")
	r := company.record("+12125550177")
	both := company.audio(company.recording(r.CallID).ID, "").PCM
	hears(t, "the left channel", both[0], 1000, 2*time.Second)
	hears(t, "the right channel", both[1], 440, 2*time.Second)
	hears(t, "the phone", read(t, phone.Close()).PCM[0], 1000, 2*time.Second)
}

func TestSidesWithoutACommonCodecAreToldSo(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	const g729 = "18"
	port := company.sippPhone(user.SIP)
	s.Sipp(rig.Script{Scenario: "call_refused", Status: 488, IP: way.ip, From: "+12125550101", Number: way.number, Formats: g729}).Wait()
	if r := company.record("+12125550101"); r.String() != "inbound missed carrier_error system 488" {
		t.Errorf("record of an offer that cannot be taken: %s", r)
	}
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: port, From: user.SIP.Username, Formats: g729})
	s.Sipp(rig.Script{Scenario: "call_refused", Status: 488, IP: way.ip, From: "+12125550102", Number: way.number}).Wait()
	callee.Wait()
	if r := company.record("+12125550102"); r.String() != "inbound missed carrier_error system 488" {
		t.Errorf("record of an answer that cannot be taken: %s", r)
	}
}

// A digit by INFO reaches the other side in its audio: as an event, where that was agreed, else as its tones. The telephone that agreed
// to none sends back what it hears, which is recorded as what it says.
func TestDigitsByINFOArePassedOnInTheAudio(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	ada, bob := company.AddUser("Ada"), company.AddUser("Bob")
	toAda, toBob := company.carrier(ada.ID, nil), company.carrier(bob.ID, nil)
	say, _ := tone(t, 440)
	phone := s.Phone(ada.SIP, rig.PhoneOptions{Say: say, Auto: true})
	info := func(way carrier, from string) cdr {
		t.Helper()
		s.Sipp(rig.Script{Scenario: "call_info", Status: 200, IP: way.ip, From: from, Number: way.number, Talk: 2 * time.Second}).Wait()
		r := company.record(from)
		if r.String() != "inbound completed caller_hangup caller 0" {
			t.Errorf("record: %s", r)
		}
		var trace traced
		rig.Until(t, "the trace of the call", 10*time.Second, func() bool {
			company.Want(200, "GET", "/calls/"+r.CallID+"/trace", nil, &trace)
			return strings.Contains(trace.outline(), "BYE sip:")
		})
		if got := strings.Count(trace.outline(), "INFO sip:"); got != 1 {
			t.Errorf("the INFO went on to the telephone: %s", trace.outline())
		}
		return r
	}
	info(toAda, "+12125550101")
	phone.Wait("CALL_DTMF_START", "5")
	echo := s.Sipp(rig.Script{Scenario: "answer", NoEvents: true, Echo: true, Port: company.sippPhone(bob.SIP), From: bob.SIP.Username})
	r := info(toBob, "+12125550102")
	echo.Wait()
	if d := both(company.audio(company.recording(r.CallID).ID, "").PCM[1], [2]float64{770, 1336}); d < 300*time.Millisecond || d > 500*time.Millisecond {
		t.Errorf("the tones of a 5 of 400 ms were heard for %s", d)
	}
}

func TestOtherINFOIsPassedOn(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	port := company.sippPhone(user.SIP)
	for status, from := range map[int]string{200: "+12125550101", 415: "+12125550102"} { // 415: a phone that does not know it
		callee := s.Sipp(rig.Script{Scenario: "answer_info", Status: status, Port: port, From: user.SIP.Username})
		s.Sipp(rig.Script{Scenario: "call_info", Picture: true, Status: status, IP: way.ip, From: from, Number: way.number}).Wait()
		callee.Wait()
		if info := callee.Received("INFO ", 0); !strings.Contains(info, "picture_fast_update") || rig.Field(info, "Content-Type") != "application/media_control+xml" {
			t.Errorf("the phone got\n%s", info)
		}
		if r := company.record(from); r.String() != "inbound completed caller_hangup caller 0" {
			t.Errorf("record: %s", r)
		}
	}
}
