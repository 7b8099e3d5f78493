package media

import (
	"encoding/binary"
	"math"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
)

// One figure of G.107, and results of its formulas.
func TestEModel_Scores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		r    emodelInput
		want float64
	}{
		{"perfect", emodelInput{}, 4.4},
		{"5 % by chance", emodelInput{loss: 0.05}, 3.9},
		{"5 % in bursts of four", emodelInput{loss: 0.05, burst: 4}, 3.8},
		{"20 %", emodelInput{loss: 0.2}, 2.6},
		{"everything lost", emodelInput{loss: 1}, 1.16},
		{"satellite", emodelInput{rtt: 600 * time.Millisecond}, 3.6},
		{"opus stands more", emodelInput{codec: codec.Opus, loss: 0.05}, 4},
		{"40 ms jitter", emodelInput{jitter: 40 * time.Millisecond}, 4.35},
	} {
		if got := c.r.mos(); math.Abs(got-c.want) > 0.06 {
			t.Errorf("%s: %.2f, want %.2f", c.name, got, c.want)
		}
	}
}

// meteredLeg is a leg with a clock that the test controls.
type meteredLeg struct {
	*Stream
	from netip.AddrPort
	skip *atomic.Int64
	seq  uint16
	ts   uint32
}

func newMeteredLeg(t testing.TB) *meteredLeg {
	t.Helper()
	var skip atomic.Int64
	began := time.Now()
	e := testEngine(t, Config{Now: func() time.Time { return began.Add(time.Duration(skip.Load())) }, Latch: time.Hour}, newLoop)
	m := &meteredLeg{Stream: openStream(t, e), skip: &skip, from: rawSocket(t, "127.0.0.1").LocalAddr().(*net.UDPAddr).AddrPort()}
	m.SetRemote(Remote{Addr: m.from, Formats: g711Formats(codec.PCMU, 101)})
	return m
}

func (m *meteredLeg) pass(d time.Duration) { m.skip.Add(int64(d)) }

// hear delivers the next packet 20 ms after the previous one, plus jitter. A lost packet is not delivered.
func (m *meteredLeg) hear(lost bool, jitter time.Duration) {
	m.pass(packetTime)
	m.seq++
	m.ts += samplesPerPacket
	if !lost {
		m.receive(rtpPacket(m.seq, m.ts, 7, 0, make([]byte, 160)), m.from, m.engine.clock()+int64(jitter))
	}
}

func TestQuality_Loss(t *testing.T) {
	t.Parallel()
	m := newMeteredLeg(t)
	for i := range 3000 { // a minute
		burst := i >= 2010 && i < 2018 // eight in a row
		m.hear(i%20 == 10 || burst, 0)
	}
	q := m.Quality().Received
	if math.Abs(q.LossRate-5.2) > 0.1 || q.Lost != 157 || q.Packets != 2843 || q.BurstLossMax != 8 {
		t.Errorf("loss %.2f %%, %d of %d, longest %d", q.LossRate, q.Lost, q.Packets, q.BurstLossMax)
	}
	if math.Abs(q.MOS-3.9) > 0.1 || q.MOSMin >= q.MOS-0.1 {
		t.Errorf("MOS %.2f, least %.2f", q.MOS, q.MOSMin)
	}
	if n := len(q.Samples); n != 12 {
		t.Fatalf("%d samples of a minute", n)
	}
	if s := q.Samples[8]; math.Abs(s.LossRate-8) > 1 || s.MOS > 3.9 || s.At.IsZero() {
		t.Errorf("the sample with the burst: %+v", s)
	}
}

func TestQuality_ReorderingIsNoBurst(t *testing.T) {
	t.Parallel()
	m := newMeteredLeg(t)
	for i := range 100 {
		seq := uint16(i)
		if i%10 == 4 {
			seq++
		} else if i%10 == 5 {
			seq--
		}
		m.receive(rtpPacket(seq, 160*uint32(seq), 7, 0, make([]byte, 160)), m.from, m.engine.clock())
		m.pass(packetTime)
	}
	if q := m.Quality().Received; q.Lost != 0 || q.BurstLossMax != 0 {
		t.Errorf("%+v", q)
	}
}

func TestQuality_Jitter(t *testing.T) {
	t.Parallel()
	m := newMeteredLeg(t)
	for i := range 1500 {
		m.hear(false, time.Duration(i%2)*10*time.Millisecond)
	}
	for range 500 {
		m.hear(false, 0)
	}
	q := m.Quality().Received
	if q.JitterMax < 9*time.Millisecond || q.JitterMax > 10*time.Millisecond || q.JitterAvg < 6*time.Millisecond ||
		q.JitterAvg > 9*time.Millisecond || q.LossRate != 0 {
		t.Errorf("jitter %v, most %v, loss %.1f", q.JitterAvg, q.JitterMax, q.LossRate)
	}
}

func TestQuality_RTCPReports(t *testing.T) {
	t.Parallel()
	m := newMeteredLeg(t)
	m.out.ssrc = 0xABCD
	m.out.packets, m.out.started = 500, true
	echo := m.middleNTP(m.engine.clock())
	for i := range uint32(3) {
		m.pass(5080 * time.Millisecond)
		rr := make([]byte, 32)
		be := binary.BigEndian
		putHeader(rr, 1, rtcpRR, 32, 7)
		be.PutUint32(rr[8:], 0xABCD)
		be.PutUint32(rr[12:], 64<<24|100) // a quarter since the last, 100 in all
		be.PutUint32(rr[16:], 1000+250*i)
		be.PutUint32(rr[20:], 80) // 10 ms
		be.PutUint32(rr[24:], echo)
		be.PutUint32(rr[28:], 5<<16) // sent five seconds after the report arrived
		(*rtcpReceiver)(m.Stream).receive(rr, m.from, m.engine.clock())
		echo = m.middleNTP(m.engine.clock())
	}
	q := m.Quality()
	if q.RTT < 79*time.Millisecond || q.RTT > 81*time.Millisecond {
		t.Errorf("round trip %v, want 80 ms", q.RTT)
	}
	if s := q.Sent; s.Lost != 100 || s.Packets != 400 || s.LossRate != 20 || s.JitterMax != 10*time.Millisecond || len(s.Samples) != 3 ||
		s.MOS > 2.5 || s.MOS < 1 {
		t.Errorf("sent %+v", s)
	}
}

func TestQuality_SamplesBounded(t *testing.T) {
	t.Parallel()
	var m qualityMeter
	for i := range int64(100_000) {
		m.add(i*sampleTime, emodelInput{}, 250)
	}
	if n := len(m.samples); n > maxSamples || n < maxSamples/2 {
		t.Errorf("%d samples kept", n)
	}
	if last := m.samples[len(m.samples)-1].at; last < 99_000*sampleTime {
		t.Error("the end of the call is not among them")
	}
}

func TestQuality_SilenceAndOneWay(t *testing.T) {
	t.Parallel()
	m := newMeteredLeg(t)
	for range 50 {
		m.hear(false, 0)
	}
	m.SetDirection(true, false) // on hold: the leg may not send
	m.pass(time.Minute)
	m.SetDirection(true, true)
	m.hear(false, 0)
	if q := m.Quality(); q.Silence != 0 || q.OneWay || q.FirstAudio.IsZero() {
		t.Errorf("%+v", q)
	}
	m.pass(4 * time.Second)
	m.hear(false, 0)
	m.pass(6 * time.Second)
	m.out.mu.Lock() // meanwhile media was sent to it
	m.out.started, m.out.sentAt = true, m.engine.clock()
	m.out.mu.Unlock()
	q := m.Quality()
	if got := q.Silence.Round(100 * time.Millisecond); got != 10*time.Second || !q.OneWay {
		t.Errorf("silence %v, one way %v", got, q.OneWay)
	}
	m.Close()
	m.pass(time.Hour)
	if after := m.Quality(); after.Silence != q.Silence || after.Received.Packets != q.Received.Packets {
		t.Errorf("after the end %+v", after)
	}
}

func TestOnSilence_OncePerSilence(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	phone, leg := plainPhone(t, e)
	told := make(chan struct{}, 10)
	leg.OnSilence(50*time.Millisecond, func() { told <- struct{}{} })
	for n := range 3 {
		select {
		case <-told:
		case <-time.After(patience):
			t.Fatalf("silence %d was not told of", n)
		}
		select {
		case <-told:
			t.Fatal("one silence was told of twice")
		case <-time.After(150 * time.Millisecond): // the test shows that nothing happens in this time
		}
		_, _ = phone.WriteToUDPAddrPort(rtpPacket(uint16(n), 1, 1, 0, make([]byte, 160)), leg.Local())
	}
	<-told
	leg.SetDirection(true, false)
	_, _ = phone.WriteToUDPAddrPort(rtpPacket(9, 1, 1, 0, make([]byte, 160)), leg.Local())
	select {
	case <-told:
		t.Error("a leg on hold was called silent")
	case <-time.After(150 * time.Millisecond):
	}
}

func TestLatestSample_AtMostFiveSecondsOld(t *testing.T) {
	t.Parallel()
	m := newMeteredLeg(t)
	if x, _, ok := m.LatestSample(); ok {
		t.Errorf("before anything is heard: %+v", x)
	}
	for range 3 * maxSamples * 250 / 50 { // three hours, a packet a second
		for range 49 {
			m.pass(packetTime)
		}
		m.hear(false, 0)
	}
	for i := range 300 {
		m.hear(i >= 40 && i < 140, 0)
	}
	x, _, ok := m.LatestSample()
	if age := m.engine.wallTime(m.engine.clock()).Sub(x.At); !ok || age > 5*time.Second+packetTime || x.LossRate < 20 || x.MOS > 3 {
		t.Errorf("%+v, %v old", x, age)
	}
	if n := len(m.Quality().Received.Samples); n > maxSamples {
		t.Errorf("%d samples", n)
	}
}
