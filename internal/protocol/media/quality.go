package media

import (
	"encoding/binary"
	"time"

	"soniq/internal/protocol/media/codec"
)

// Quality holds the audio quality of a leg in both directions.
type Quality struct {
	Received DirectionQuality // from the leg, as measured here
	Sent     DirectionQuality // to the leg, as it reports by RTCP; without reports only Codec is known
	RTT      time.Duration    // average of the reports; 0 is unknown
	Secure   bool             // SRTP is active

	FirstAudio time.Time     // arrival of the first accepted packet; zero if there was none
	Silence    time.Duration // time in which the leg could send and sent nothing for over 2 s
	OneWay     bool          // it sent nothing for 5 s or more while media was sent to it
}

// DirectionQuality holds the quality of one direction.
type DirectionQuality struct {
	Codec        codec.Codec
	MOS          float64 // mean opinion score by the E-model, 1 to 4.5; 0 before the first measurement
	MOSMin       float64 // of the worst 5 s
	Packets      uint64  // received
	Lost         int64
	LossRate     float64 // percent
	BurstLossMax int     // most packets lost in a row; unknown for Sent
	JitterAvg    time.Duration
	JitterMax    time.Duration
	Samples      []Sample // every 5 s, or as often as reports arrive; after an hour less often
}

// A Sample is the quality of a direction over a few seconds.
type Sample struct {
	At       time.Time
	MOS      float64
	LossRate float64 // percent
	Jitter   time.Duration
}

// Quality returns the figures up to now. It may be called after Close.
func (s *Stream) Quality() Quality {
	now := s.engine.clock()
	in := &s.in
	in.mu.Lock()
	defer in.mu.Unlock()
	rx := in.rx // includes the current window
	rx.meter.samples = append([]qualitySample(nil), rx.meter.samples...)
	if now-rx.window.began > sampleTime/5 && !in.closed {
		rx.closeWindow(now)
	}
	q := Quality{RTT: in.peerMeter.rtt(), Secure: in.decryptor != nil && in.protected, FirstAudio: s.engine.wallTime(rx.first)}
	q.Received = rx.meter.figures(s.engine)
	g := rx.lossRuns.finished()
	q.Received.Codec, q.Received.BurstLossMax = rx.codec, int(g.longest)
	q.Received.setCounts(rx.packets, rx.lost())
	q.Sent = in.peerMeter.figures(s.engine)
	q.Sent.setCounts(in.peerReports.packets, in.peerReports.lost)
	total, oneWay := in.silence.totals(s, now)
	q.Silence, q.OneWay = time.Duration(total), oneWay
	s.out.mu.Lock()
	q.Sent.Codec = s.out.codec
	s.out.mu.Unlock()
	return q
}

func (h *DirectionQuality) setCounts(packets uint64, lost int64) {
	h.Packets, h.Lost = packets, max(0, lost)
	if sum := float64(packets) + float64(h.Lost); sum > 0 {
		h.LossRate = 100 * float64(h.Lost) / sum
	}
}

// figures returns the figures of a meter.
func (m *qualityMeter) figures(e *Engine) DirectionQuality {
	h := DirectionQuality{MOSMin: m.mosMin, JitterMax: m.jitterMax}
	if m.weight > 0 {
		h.MOS = m.mosSum / m.weight
		h.JitterAvg = time.Duration(m.jitterSum / m.weight)
	}
	for _, x := range m.samples {
		h.Samples = append(h.Samples, x.sample(e))
	}
	return h
}

func (r qualitySample) sample(e *Engine) Sample {
	return Sample{e.wallTime(r.at), float64(r.mos) / 100, float64(r.loss) / 100, time.Duration(r.jitter) * time.Microsecond}
}

// LatestSample returns the last measurement over five seconds of packets and the round-trip time, 0 if unknown. ok is
// false before the first measurement. It is cheap. Unlike the samples of Quality it is updated every five seconds,
// however long the call lasts.
func (s *Stream) LatestSample() (x Sample, rtt time.Duration, ok bool) {
	in := &s.in
	in.mu.Lock()
	defer in.mu.Unlock()
	r := in.rx.meter.latest
	return r.sample(s.engine), in.peerMeter.rtt(), r.at != 0
}

// finishQuality ends the measurements when the stream closes.
func (s *Stream) finishQuality() {
	now := s.engine.clock()
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if now-s.in.rx.window.began > sampleTime/5 {
		s.in.rx.closeWindow(now)
	}
	s.in.silence.setDirection(s, false, now)
}

// peerReports holds the figures of the other side's RTCP reports about our packets.
type peerReports struct {
	packets     uint64
	lost        int64
	at          int64 // time of the last evaluated report
	high, first uint32
	known       bool
}

// minReport is the least time between two reports that become samples.
const minReport = int64(time.Second)

// readReportBlocks reads the report block about us in a report (RFC 3550 §6.4.1). The caller holds in.mu.
func (s *Stream) readReportBlocks(b []byte, now int64) {
	from := 8
	if b[1] == rtcpSR {
		from = 28
	}
	s.out.mu.Lock()
	ssrc, codec := s.out.ssrc, s.out.codec
	s.out.mu.Unlock()
	for range b[0] & 31 {
		if len(b) < from+24 {
			return
		}
		if block := b[from : from+24]; binary.BigEndian.Uint32(block) == ssrc {
			s.readReportBlock(block, codec, now)
			return
		}
		from += 24
	}
}

func (s *Stream) readReportBlock(b []byte, codec codec.Codec, now int64) {
	be, t := binary.BigEndian, &s.in.peerReports
	if rtt, ok := s.roundTrip(be.Uint32(b[16:]), be.Uint32(b[20:]), now); ok {
		s.in.peerMeter.addRoundTrip(rtt)
		s.in.rx.meter.addRoundTrip(rtt)
	}
	high := be.Uint32(b[8:])
	if t.known && now-t.at < minReport {
		return
	}
	packets := float64(250) // five seconds, until the first interval is known
	if t.known {
		packets = float64(high - t.high)
	} else {
		t.first = high
	}
	t.known, t.at, t.high = true, now, high
	t.lost = int64(int32(be.Uint32(b[4:])<<8) >> 8)
	s.out.mu.Lock()
	t.packets = uint64(max(0, int64(s.out.packets)-max(0, t.lost)))
	s.out.mu.Unlock()
	if packets <= 0 || packets > 1<<20 {
		return
	}
	jitter := time.Duration(min(int64(be.Uint32(b[12:])), 1<<24)) * time.Second / time.Duration(codec.Clock())
	s.in.peerMeter.add(now, emodelInput{codec: codec, loss: float64(b[4]) / 256, burst: 1, jitter: jitter, rtt: s.in.peerMeter.rtt()},
		packets)
}

// roundTrip returns the round-trip time from the echo of our last report (RFC 3550 §6.4.1).
func (s *Stream) roundTrip(echo, held uint32, now int64) (time.Duration, bool) {
	if echo == 0 {
		return 0, false
	}
	units := s.middleNTP(now) - echo - held // 1/65536 s
	if units > 10<<16 {
		return 0, false
	}
	return time.Duration(units) * time.Second >> 16, true
}

// middleNTP returns the middle 32 bits of the NTP time, as reports echo it.
func (s *Stream) middleNTP(now int64) uint32 {
	wall := s.engine.startTime.Add(time.Duration(now))
	return uint32(wall.Unix()+ntpEpoch)<<16 | uint32(uint64(wall.Nanosecond())<<16/1e9)
}
