package main

import (
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed peer/kamailio.cfg
var kamailioConfig string

// peerAddress is the address at which Kamailio listens.
const peerAddress = "127.0.0.20:15060"

// peer is Kamailio with rtpengine in user space.
type peer struct{ kamailio, rtpengine *process }

var errNoPeer = errors.New("kamailio or rtpengine is not installed")

// startPeer starts both. With record, rtpengine captures the packets of every call.
func startPeer(dir string, record bool) (*peer, error) {
	modules, _ := filepath.Glob("/usr/lib/*/kamailio/modules/tm.so")
	_, err := exec.LookPath("rtpengine")
	if err != nil || len(modules) == 0 {
		return nil, errNoPeer
	}
	flag, args := "", []string{"--config-file=none", "-f", "-E", "-t", "-1", "-i", "127.0.0.1", "-n", "127.0.0.25:2223", "-m", "45000",
		"-M", "59999", "-L", "3"}
	if record {
		flag = " record-call=yes"
		args = append(args, "--recording-dir", dir, "--recording-method", "pcap")
	}
	config := strings.NewReplacer("@MODULES@", filepath.Dir(modules[0])+"/", "@RECORD@", flag).Replace(kamailioConfig)
	file := filepath.Join(dir, "kamailio.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	p := &peer{}
	if p.rtpengine, err = start(dir, "rtpengine", args...); err != nil {
		return nil, err
	}
	<-time.After(500 * time.Millisecond) // Kamailio pings rtpengine once, when it starts
	if p.kamailio, err = start(dir, "kamailio", "-DD", "-E", "-m", "512", "-M", "16", "-Y", dir, "-f", file); err != nil {
		p.rtpengine.stop()
		return nil, err
	}
	err = until(10*time.Second, "Kamailio", func() bool { return inUse(peerAddress) })
	for _, x := range []*process{p.kamailio, p.rtpengine} {
		if x.ended() && err == nil {
			err = fmt.Errorf("%s ended at once; see %s", x.name, dir)
		}
	}
	return p, err
}

// inUse reports whether a program listens at a UDP address.
func inUse(address string) bool {
	u, err := net.ListenPacket("udp", address)
	if err == nil {
		_ = u.Close()
	}
	return err != nil
}

func (p *peer) stop() {
	p.kamailio.stop()
	p.rtpengine.stop()
}
