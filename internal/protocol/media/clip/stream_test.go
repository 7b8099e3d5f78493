package clip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/wav"
)

// writeTone writes a file with so much of a tone.
func writeTone(t *testing.T, path string, length time.Duration) {
	t.Helper()
	if err := wav.Write(path, wav.Audio{Rate: 8000, PCM: [][]int16{dsp.Tone(600, -10, length, 8000)}}, wav.ULaw); err != nil {
		t.Fatal(err)
	}
}

// silentMP3 returns frames of 8 kbit/s at 16 kHz, whose samples are all zero: 36 bytes for 36 ms.
func silentMP3(length time.Duration) []byte {
	frame := make([]byte, 36)
	copy(frame, []byte{0xFF, 0xF3, 0x18, 0xC0}) // MPEG 2, layer 3, 8 kbit/s, 16 kHz, one channel
	return bytes.Repeat(frame, int(length/(36*time.Millisecond)))
}

// silentOgg returns pages with packets of 60 ms without sound.
func silentOgg(pages int) []byte {
	page := func(kind byte, sequence int, packets ...[]byte) []byte {
		b := append([]byte("OggS\x00"), kind)
		b = append(b, make([]byte, 8)...)
		b = binary.LittleEndian.AppendUint32(b, 1)
		b = binary.LittleEndian.AppendUint32(b, uint32(sequence))
		b = append(b, 0, 0, 0, 0, byte(len(packets)))
		for _, p := range packets {
			b = append(b, byte(len(p)))
		}
		b = append(b, bytes.Join(packets, nil)...)
		binary.LittleEndian.PutUint32(b[22:], oggChecksum(b))
		return b
	}
	out := page(2, 0, []byte("OpusHead\x01\x01\x00\x00\x80\x3e\x00\x00\x00\x00\x00"))
	out = append(out, page(0, 1, []byte("OpusTags\x00\x00\x00\x00\x00\x00\x00\x00"))...)
	packets := make([][]byte, 255)
	for i := range packets {
		packets[i] = []byte{0x18} // SILK, 60 ms, an empty frame
	}
	for i := range pages {
		out = append(out, page(0, 2+i, packets...)...)
	}
	return out
}

func oggChecksum(b []byte) (sum uint32) {
	for _, v := range b {
		sum ^= uint32(v) << 24
		for range 8 {
			if sum&0x80000000 != 0 {
				sum = sum<<1 ^ 0x04c11db7
			} else {
				sum <<= 1
			}
		}
	}
	return sum
}

// peak returns the largest growth of the heap while f runs.
func peak(f func()) int64 {
	var first, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&first)
	var most atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			runtime.ReadMemStats(&now)
			most.Store(max(most.Load(), int64(now.HeapAlloc)-int64(first.HeapAlloc)))
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	return most.Load()
}

// A small file that plays for hours is refused after the longest time, and costs little memory until then.
func TestDecode_HoursInAFewMegabytes(t *testing.T) {
	for name, b := range map[string][]byte{"MP3": silentMP3(2 * time.Hour), "Ogg": silentOgg(500)} {
		samples := 0
		var err error
		grown := peak(func() {
			err = decodeFrom(bytes.NewReader(b), "owner", 2*time.Minute, func(pcm []int16, _ int) error { samples += len(pcm); return nil })
		})
		if grown > 32<<20 || !errors.Is(err, ErrTooLong) || samples > 130*Rate {
			t.Errorf("%s of %d kB: %d MB for %d s: %v", name, len(b)>>10, grown>>20, samples/Rate, err)
		}
	}
}

// A file that is longer than MaxDuration is refused.
func TestMeasure_TooLong(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "long.wav")
	writeTone(t, path, time.Second)
	if d, err := Measure(path); err != nil || d != time.Second {
		t.Errorf("%v %v", d, err)
	}
	h := wav.Header(wav.ULaw, 1, 8000, 8000*1801)
	if err := os.WriteFile(path, append(h[:], make([]byte, 8000*1801)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Measure(path); !errors.Is(err, ErrTooLong) {
		t.Errorf("measured: %v", err)
	}
}

// A long clip is kept in a file without a name, and has the same samples as a short one.
func TestLoad_LongClipIsNotInMemory(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "long.wav")
	writeTone(t, path, 5*time.Minute)
	var c *Clip
	var err error
	if grown := peak(func() { c, err = Load(path) }); grown > 8<<20 || err != nil {
		t.Fatalf("5 minutes took %d MB: %v", grown>>20, err)
	}
	if d := c.Duration() - 5*time.Minute; d.Abs() > 10*time.Millisecond {
		t.Errorf("plays %v", c.Duration())
	}
	if all, _ := os.ReadDir(dir); len(all) != 1 {
		t.Errorf("the folder has %v", all)
	}
	short := filepath.Join(dir, "short.wav")
	writeTone(t, short, 10*time.Second)
	s, err := Load(short)
	if err != nil || s.file != nil {
		t.Fatalf("a short clip is kept in a file: %v", err)
	}
	var r, other Reader
	for from := 0; from < 9*Rate; from += 320 {
		if !slices.Equal(r.Samples(c, from, 320), other.Samples(s, from, 320)) {
			t.Fatalf("the samples from %d on differ", from)
		}
	}
	rest := c.StartingAt(9*time.Minute + 59*time.Second)
	if n := len(r.Samples(c, c.Len()-100, 320)); n != 100 || r.Samples(c, c.Len(), 320) != nil {
		t.Errorf("%d samples at the end", n)
	}
	if !slices.Equal(rest.PCM(), c.PCM()[c.Len()-rest.Len():]) {
		t.Error("the last second differs")
	}
}

// Calls that play the same file share its clip. A changed file is decoded again.
func TestLoad_Shared(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.wav")
	writeTone(t, path, time.Second)
	a, err := Load(path)
	b, err2 := Load(path)
	if a != b || err != nil || err2 != nil {
		t.Errorf("two clips of one file: %v %v", err, err2)
	}
	writeTone(t, path, 2*time.Second)
	if c, err := Load(path); err != nil || c.Duration() < 1900*time.Millisecond {
		t.Errorf("the changed file: %v", err)
	}
}

// An owner with many clips loses its own ones, not those of others.
func TestCache_SharedFairly(t *testing.T) {
	t.Parallel()
	c := &cache{entries: map[string]*entry{}}
	one := make([]int16, 1<<20)
	keep := func(owner, key string) *entry {
		e := c.entry(key, owner)
		c.keep(e, inMemory(one))
		return e
	}
	others := []*entry{keep("b", "1"), keep("c", "2")}
	for i := range 100 {
		keep("a", string(rune('A'+i)))
	}
	if n := c.size(""); n > CacheBytes {
		t.Errorf("%d MB are kept", n>>20)
	}
	for _, e := range others {
		if e.strong == nil {
			t.Errorf("the clip of %s was dropped for those of another owner", e.owner)
		}
	}
}

// A short file of one owner does not wait for the long files of others.
func TestDecode_TakesTurns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long, short := filepath.Join(dir, "long.mp3"), filepath.Join(t.TempDir(), "short.wav")
	if err := os.WriteFile(long, silentMP3(20*time.Second), 0o600); err != nil {
		t.Fatal(err)
	}
	writeTone(t, short, time.Second)
	done := make(chan error, 4)
	for range 4 {
		go func() { _, err := Measure(long); done <- err }()
	}
	if _, err := Measure(short); err != nil {
		t.Error(err)
	}
	if len(done) == 4 {
		t.Error("the short file was the last")
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	turns.mu.Lock()
	defer turns.mu.Unlock()
	if turns.owners[dir] != nil {
		t.Error("the owner is still counted")
	}
}
