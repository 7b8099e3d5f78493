package media

import (
	"bytes"
	"net"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/record"
)

func TestRecord_TransferChangesChannel(t *testing.T) {
	t.Parallel()
	undisturbed(t, func(t testing.TB) {
		e := testEngine(t, Config{}, newLoop)
		c, other := newTestCall(t, e), newTestCall(t, e)
		r := startRecording(t, e, c, nil)
		if _, err := e.Record(record.Config{Path: filepath.Join(t.TempDir(), "b.wav"), Left: c.a}); err == nil {
			t.Error("a stream is in two recorders")
		}
		if err := c.callee.Send(t.Context(), dsp.Tone(1000, -6, 300*time.Millisecond, 8000)); err != nil {
			t.Fatal(err)
		}
		if err := r.SetRight(other.b); err != nil {
			t.Fatal(err)
		}
		c.b.Close()
		if err := other.callee.Send(t.Context(), dsp.Tone(700, -6, 300*time.Millisecond, 8000)); err != nil {
			t.Fatal(err)
		}
		_, w := closeRecording(t, r)
		at := 8 * onset(w.PCM[1], 0)
		if hz, _ := dsp.DominantFrequency(samplesAt(t, w.PCM[1], at+400, 1600), 8000); !mediatest.NearHz(hz, 1000) {
			t.Errorf("first callee: %.0f Hz", hz)
		}
		if hz, _ := dsp.DominantFrequency(samplesAt(t, w.PCM[1], at+2800, 1600), 8000); !mediatest.NearHz(hz, 700) {
			t.Errorf("second callee: %.0f Hz", hz)
		}
	})
}

// Lost packets become silence, and reordered ones are sorted. A packet that arrives after its position was written is
// patched in.
func TestRecord_LostAndLatePackets(t *testing.T) {
	t.Parallel()
	undisturbed(t, func(t testing.TB) {
		e := testEngine(t, Config{}, newLoop)
		a, phone := openStream(t, e), rawSocket(t, "127.0.0.1")
		a.SetRemote(Remote{Addr: phone.LocalAddr().(*net.UDPAddr).AddrPort(), Formats: g711Formats(codec.PCMU, 101)})
		r, err := e.Record(record.Config{Path: filepath.Join(t.TempDir(), "a.wav"), Left: a})
		if err != nil {
			t.Fatal(err)
		}
		send := func(n int) { // 20 ms of the code word 0x80+n
			_, _ = phone.WriteToUDPAddrPort(rtpPacket(uint16(n), uint32(160*n), 5, 0, bytes.Repeat([]byte{byte(0x80 + n)}, 160)), a.Local())
		}
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := range 40 {
			switch n {
			case 5: // lost for good
			case 10: // very late
			case 20: // swapped with the next
			case 21:
				send(21)
				send(20)
			case 39:
				send(39)
				send(10) // 580 ms late: its place has been written
			default:
				send(n)
			}
			<-tick.C
		}
		waitFor(t, "all packets", func() bool { return a.Stats().Received == 39 })
		waitFor(t, "the late one patched", func() bool { return r.Stats().Late >= 1 }) // also others that the machine delayed
		_, w := closeRecording(t, r)
		words := codec.EncodeULaw(nil, w.PCM[0])
		first := bytes.Index(words, []byte{0x80, 0x80})
		if first < 0 || first+160*40 > len(words) {
			t.Fatalf("%d samples, the first packet at %d", len(words), first)
		}
		for n := range 40 {
			want := byte(0x80 + n)
			if n == 5 {
				want = 0xFF
			}
			if got := words[first+160*n+80]; got != want {
				t.Errorf("packet %d: %#x in the file, want %#x", n, got, want)
			}
		}
	})
}
