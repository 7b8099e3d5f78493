package media

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// RTCP reports (RFC 3550 §6). RTCP is not relayed: each leg is an RTP session of its own. Its reports cover the
// packets received from it and sent to it. Reports are sent while packets arrive, so that an idle stream costs
// nothing.

// reportInterval is the minimum interval of RFC 3550 §6.2.
const reportInterval = int64(5 * time.Second)

// RTCP packet types (RFC 3550 §12.1).
const (
	rtcpSR   = 200
	rtcpRR   = 201
	rtcpSDES = 202
	rtcpBYE  = 203
)

// ntpEpoch is the number of seconds from 1900 to 1970.
const ntpEpoch = 2208988800

// rtcpReceiver is the stream as the receiver of its RTCP socket.
type rtcpReceiver Stream

func (r *rtcpReceiver) receive(b []byte, from netip.AddrPort, now int64) {
	s := (*Stream)(r)
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if s.in.closed {
		return
	}
	l := &s.in.latch
	if !(l.source.IsValid() && from.Addr() == l.source.Addr()) && l.rankOf(netip.AddrPortFrom(from.Addr(), 0)) < rankKnownHost {
		s.in.ignored++
		return
	}
	if s.in.protected {
		var ok bool
		if b, ok = s.decrypt(b, true, now); !ok {
			s.in.unauthenticated++
			return
		}
	}
	if s.receiveReport(b, now) {
		s.in.rtcpFrom = from
		s.reportIfDue(now)
	}
}

// receiveReport reads the first packet of a compound RTCP packet: the NTP time of a sender report, and the report
// blocks. It returns false if b is not RTCP. The caller holds in.mu.
func (s *Stream) receiveReport(b []byte, now int64) bool {
	if len(b) < 8 || b[0]>>6 != 2 || b[1] < rtcpSR || b[1] > 207 {
		s.in.malformed++
		return false
	}
	if b[1] == rtcpSR && len(b) >= 28 {
		s.in.lastSR, s.in.lastSRAt = binary.BigEndian.Uint32(b[10:]), now
	}
	if b[1] <= rtcpRR {
		s.readReportBlocks(b, now)
	}
	return true
}

func (s *Stream) reportIfDue(now int64) {
	in := &s.in
	if in.lastReport == 0 {
		in.lastReport = now - reportInterval/2 // RFC 3550 §6.2: the first report after half the interval
	}
	if now-in.lastReport >= reportInterval {
		in.lastReport = now
		s.sendReport(now, false)
	}
}

// sendBye sends an RTCP BYE, because our source ends (RFC 3550 §6.6).
func (s *Stream) sendBye() {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	s.sendReport(s.engine.clock(), true)
}

// sendReport sends SR or RR, SDES and, if bye is set, BYE. The caller holds in.mu.
func (s *Stream) sendReport(now int64, bye bool) {
	o := &s.out
	o.mu.Lock()
	defer o.mu.Unlock()
	to, socket := o.rtcpTo, s.rtcp
	switch {
	case o.mux:
		to, socket = o.to, s.rtp
	case s.in.rtcpFrom.IsValid():
		to = s.in.rtcpFrom
	}
	if o.closed || !to.IsValid() || bye && !o.started {
		return
	}
	b := o.report[:]
	n := s.putReport(b, now)
	n += putSDES(b[n:], o.ssrc)
	if bye {
		n += putHeader(b[n:], 1, rtcpBYE, 8, o.ssrc)
	}
	b = b[:n]
	if o.protected {
		b = o.encrypt(b, true)
	}
	if b != nil {
		socket.send(b, to)
	}
}

// putReport writes SR if packets were sent, else RR, with one block about the received source (RFC 3550 §6.4).
func (s *Stream) putReport(b []byte, now int64) int {
	o, n, blocks := &s.out, 8, 0
	kind := byte(rtcpRR)
	if o.packets > 0 {
		kind, n = rtcpSR, 28
		wall := s.engine.startTime.Add(time.Duration(now))
		be := binary.BigEndian
		be.PutUint32(b[8:], uint32(wall.Unix()+ntpEpoch))
		be.PutUint32(b[12:], uint32(uint64(wall.Nanosecond())<<32/1e9))
		be.PutUint32(b[16:], o.ts+o.elapsed(now))
		be.PutUint32(b[20:], uint32(o.packets))
		be.PutUint32(b[24:], uint32(o.bytes))
	}
	if s.in.rx.started {
		s.putBlock(b[n:], now)
		n, blocks = n+24, 1
	}
	putHeader(b, byte(blocks), kind, n, o.ssrc)
	return n
}

func (s *Stream) putBlock(b []byte, now int64) {
	rx, be := &s.in.rx, binary.BigEndian
	be.PutUint32(b[0:], rx.ssrc)
	lost := max(-1<<23, min(1<<23-1, rx.lost()))
	be.PutUint32(b[4:], uint32(rx.fractionLost())<<24|uint32(lost)&0xFFFFFF)
	be.PutUint32(b[8:], rx.max-1<<16)
	be.PutUint32(b[12:], uint32(rx.jitter>>4))
	be.PutUint32(b[16:], s.in.lastSR)
	be.PutUint32(b[20:], 0)
	if s.in.lastSR != 0 {
		be.PutUint32(b[20:], uint32((now-s.in.lastSRAt)*65536/int64(time.Second)))
	}
}

// putSDES writes the CNAME chunk that every compound packet must have (RFC 3550 §6.1).
func putSDES(b []byte, ssrc uint32) int {
	const hex = "0123456789abcdef"
	n := putHeader(b, 1, rtcpSDES, 20, ssrc)
	b[8], b[9] = 1, 8
	for i := range 8 {
		b[10+i] = hex[ssrc>>(4*i)&15]
	}
	b[18], b[19] = 0, 0
	return n
}

func putHeader(b []byte, count, kind byte, size int, ssrc uint32) int {
	b[0], b[1] = 2<<6|count, kind
	binary.BigEndian.PutUint16(b[2:], uint16(size/4-1))
	binary.BigEndian.PutUint32(b[4:], ssrc)
	return size
}
