package record

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/protocol/media/rtp"
)

// fakeSource is a source that keeps the rings it got.
type fakeSource struct{ claimed, fed *rtp.Ring }

func (s *fakeSource) ClaimRecording(ring *rtp.Ring, _ bool) bool {
	if s.claimed != nil && s.claimed != ring {
		return false
	}
	s.claimed = ring
	return true
}

func (s *fakeSource) ReleaseRecording(bool)                { s.claimed = nil }
func (s *fakeSource) FeedRecording(ring *rtp.Ring, _ bool) { s.fed = ring }

func testRecorders(t testing.TB) *Recorders {
	began := time.Now()
	w := NewRecorders(func() int64 { return int64(time.Since(began)) }, slog.New(slog.DiscardHandler))
	t.Cleanup(w.Close)
	return w
}

func startTestRecorder(t testing.TB, w *Recorders, left Source) *Recorder {
	t.Helper()
	r, err := w.Record(Config{Path: filepath.Join(t.TempDir(), "a.wav"), Left: left})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A stream that is attached to a recorder while it closes is detached afterwards, and writes to no released buffer.
func TestRecordClose_SourceAttachedMeanwhileDetached(t *testing.T) {
	t.Parallel()
	w, late := testRecorders(t), &fakeSource{}
	r := startTestRecorder(t, w, &fakeSource{})
	r.detachAll()
	if err := r.SetRight(late); err != nil {
		t.Fatal(err)
	}
	if late.fed == nil {
		t.Error("the source is not recorded")
	}
	if gaveUp, _ := r.stopWriting(); gaveUp != nil {
		t.Fatal(gaveUp)
	}
	if late.fed != nil {
		t.Error("the source writes to a recorder that is closed")
	}
	next := startTestRecorder(t, w, late)
	if _, err := next.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := r.finalize(); err != nil {
		t.Error(err)
	}
}

func TestRecord_SourceInOneRecorderOnly(t *testing.T) {
	t.Parallel()
	w, s := testRecorders(t), &fakeSource{}
	r := startTestRecorder(t, w, s)
	if _, err := w.Record(Config{Path: filepath.Join(t.TempDir(), "b.wav"), Left: s}); err == nil {
		t.Error("a second recorder got the source")
	}
	if _, err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := r.Close(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

// FuzzRecorder records arbitrary packets of all codecs.
func FuzzRecorder(f *testing.F) {
	w, s := testRecorders(f), &fakeSource{}
	r := startTestRecorder(f, w, s)
	f.Add(append([]byte{0x80, 0, 0, 1, 0, 0, 0, 160, 0, 0, 0, 7}, make([]byte, 160)...))
	f.Add([]byte{0x80, 0x82, 0, 1, 0xFF, 0, 0, 160, 0, 0, 0, 7, 1, 2, 3})
	scratch := make([]byte, flushScratch)
	f.Fuzz(func(t *testing.T, packet []byte) {
		h, from, to, ok := rtp.Parse(packet)
		if !ok || to-from > 2048 {
			return
		}
		s.fed.Push(h, rtp.Kind(h.PT&3), packet[from:to], w.clock())
		r.drain(scratch)
		if err := r.Err(); err != nil {
			t.Error(err)
		}
	})
}
