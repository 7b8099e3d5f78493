package recording

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"soniq/internal/protocol/media/wav"
)

// opened counts the bytes that are read of a file.
type opened struct {
	*os.File
	read int
}

func (o *opened) Read(p []byte) (int, error) {
	n, err := o.File.Read(p)
	o.read += n
	return n, err
}

// Each channel, read whole or in any range, has its samples, and no more of the file is read than the range needs.
func TestSelectChannel_Ranges(t *testing.T) {
	t.Parallel()
	for _, enc := range []wav.Encoding{wav.PCM16, wav.ULaw, wav.ALaw} {
		for _, n := range []int{0, 1, 777, 200_001} {
			left, right := make([]int16, n), make([]int16, n)
			for i := range n {
				left[i], right[i] = int16(rand.Int()), int16(rand.Int())
			}
			path := filepath.Join(t.TempDir(), "a.wav")
			if err := wav.Write(path, wav.Audio{Rate: 8000, PCM: [][]int16{left, right}}, enc); err != nil {
				t.Fatal(err)
			}
			for channel, pcm := range [][]int16{left, right} {
				mono := filepath.Join(t.TempDir(), "mono.wav")
				if err := wav.Write(mono, wav.Audio{Rate: 8000, PCM: [][]int16{pcm}}, enc); err != nil {
					t.Fatal(err)
				}
				want, _ := os.ReadFile(mono)
				f, err := os.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				file := &opened{File: f}
				c, err := selectChannel(file, channel)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%v of %d samples, channel %d: %d bytes, want %d: %v", enc, n, channel, len(got), len(want), err)
				}
				for range 50 {
					from := rand.IntN(len(want))
					to := from + rand.IntN(min(len(want)-from, 5000)) + 1
					if at, err := c.Seek(int64(from), io.SeekStart); err != nil || at != int64(from) {
						t.Fatal(at, err)
					}
					part, before := make([]byte, to-from), file.read
					if _, err := io.ReadFull(c, part); err != nil || !bytes.Equal(part, want[from:to]) {
						t.Fatalf("%v, channel %d, bytes %d to %d differ: %v", enc, channel, from, to, err)
					}
					if used := file.read - before; used > 2*(to-from)+16 {
						t.Errorf("%d bytes were read for %d", used, to-from)
					}
				}
				if end, err := c.Seek(0, io.SeekEnd); err != nil || end != int64(len(want)) {
					t.Errorf("%d bytes, want %d: %v", end, len(want), err)
				}
			}
		}
	}
}
