package media

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"soniq/internal/protocol/media/record"
	"soniq/internal/protocol/media/wav"
)

func TestRecord_FullDiskKeepsCall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=12k"); err != nil {
		t.Skip("needs the right to mount:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	e := testEngine(t, Config{}, newLoop)
	c := newTestCall(t, e)
	failed := make(chan error, 1)
	r, err := e.Record(record.Config{Path: filepath.Join(dir, "a.wav"), Left: c.a, Right: c.b, OnError: func(err error) { failed <- err }})
	if err != nil {
		t.Fatal(err)
	}
	ear := newEarpiece(c.callee)
	playTone(t, c.caller, 440)
	select {
	case err := <-failed:
		if !errors.Is(err, syscall.ENOSPC) || !errors.Is(r.Err(), syscall.ENOSPC) {
			t.Errorf("reported %v, Err %v", err, r.Err())
		}
	case <-time.After(patience):
		t.Fatal("the full disk was not reported")
	}
	ear.wantTone(t, "the callee of a call whose recording failed", 440)
	res, err := r.Close(t.Context())
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v", err)
	}
	if res.Missing <= 0 { // https://github.com/fastlabel/open-lutra/pull/73
		t.Errorf("the audio after the full disk is not reported as missing: %+v", res)
	}
	if w, err := wav.Read(res.Path); err != nil || len(w.PCM[0]) == 0 {
		t.Errorf("what fitted was not saved: %v", err)
	}
	if st := e.Stats(); st.RecordFail != 1 || st.Recorded != 0 || st.Recorders != 0 {
		t.Errorf("%+v", st)
	}
}
