package softphone

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/sdp"
)

// BadNetwork answers, and speaks over a network with packet loss and jitter (RFC 3550 §6.4.1). Each packet is delayed
// by up to three times the jitter.
func BadNetwork(loss float64, jitter, speech time.Duration) Behavior {
	return func(ctx context.Context, p *Callee) {
		p.Ring()
		if !p.Wait(ctx, time.Second) {
			return
		}
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			p.parties.log.Warn("test party has no audio", "err", err)
			return
		}
		defer conn.Close()
		p.mu.Lock()
		p.session = sdp.NewSession(conn.LocalAddr().(*net.UDPAddr).AddrPort())
		p.mu.Unlock()
		if !p.answerWith(ctx, answerPCMU, func() {}) {
			return
		}
		if remote, ok := p.session.Remote(); ok {
			ctx, cancel := context.WithTimeout(ctx, speech)
			defer cancel()
			speakWithLoss(ctx, conn, remote.Addr, p.parties.speech, loss, jitter)
		}
	}
}

// answerPCMU answers an offer with PCMU, which every server accepts.
func answerPCMU(offer sdp.Description) (sdp.LocalMedia, error) {
	var formats []sdp.Format
	for _, f := range offer.Formats {
		if c, ok := f.Codec(); ok && c == codec.PCMU {
			formats = append(formats, f)
		}
	}
	offer.Formats = formats
	return sdp.LocalAnswer(offer)
}

const (
	frame           = 20 * time.Millisecond
	samplesPerFrame = 160 // samples per frame
)

// speakWithLoss sends speech in real time until ctx ends. Lost packets use up a sequence number and are not sent.
func speakWithLoss(ctx context.Context, conn *net.UDPConn, to netip.AddrPort, pcm []int16, loss float64, jitter time.Duration) {
	var under sync.WaitGroup
	defer under.Wait()
	dice := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(frame)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if dice.Float64() < loss {
			continue
		}
		at := n * samplesPerFrame % (len(pcm) - samplesPerFrame)
		packet := binary.BigEndian.AppendUint16([]byte{0x80, 0}, uint16(n))
		packet = binary.BigEndian.AppendUint32(packet, uint32(n*samplesPerFrame))
		packet = binary.BigEndian.AppendUint32(packet, 0x50a7)
		packet = append(packet, codec.EncodeULaw(nil, pcm[at:at+samplesPerFrame])...)
		late := time.Duration(dice.Int64N(int64(3*jitter) + 1))
		under.Go(func() {
			time.Sleep(late)
			_, _ = conn.WriteToUDPAddrPort(packet, to)
		})
	}
}
