package crash_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// check fails unless everything acknowledged is there.
func (l *loop) check() {
	l.t.Helper()
	byCaller, byCall := map[string][]record{}, map[string]record{}
	cut := 0
	for r := range list[record](l.t, l.c, "/cdr?limit=200") {
		byCaller[r.From] = append(byCaller[r.From], r)
		byCall[r.CallID] = r
		if r.Reason == "node_crash" {
			cut++
		}
	}
	for _, caller := range l.answered {
		switch rs := byCaller[caller]; {
		case len(rs) != 1:
			l.t.Errorf("caller %s was connected and has %d records", caller, len(rs))
		case rs[0].Answered == nil:
			l.t.Errorf("caller %s was connected, the record says %s %s", caller, rs[0].Status, rs[0].Reason)
		}
	}
	for caller, rs := range byCaller {
		if len(rs) > 1 {
			l.t.Errorf("caller %s has %d records: %+v", caller, len(rs), rs)
		}
	}
	if cut == 0 {
		l.t.Error("no call was cut by a crash: this test proves nothing")
	}
	available, salvaged := l.recordings(byCall)
	l.events(byCall)
	l.t.Logf("%d kills; start and recovery took %s; %d callers connected, %d records, %d of them cut by a crash; %d recordings, %d of them salvaged; "+
		"%d deliveries, %d answered with 500, %d events delivered twice", len(l.killed), l.starts, len(l.answered), len(byCall), cut,
		available, salvaged, l.hooks.attempts, l.hooks.refused, l.hooks.twice())
}

// events checks that each record has its events, once and in order, and that no other events came.
func (l *loop) events(records map[string]record) {
	l.t.Helper()
	told, late := l.hooks.ofCall()
	for call, kinds := range told {
		if _, ok := records[call]; !ok {
			l.t.Errorf("%v came of call %s, which has no record", kinds, call)
		}
		inOrder(l.t, call, kinds, late[call])
	}
	for call, r := range records {
		want := []string{"call.started", "call.ended"}
		if r.Answered != nil {
			want = append(want, "call.answered", "call.recording", "call.transcription")
		}
		if r.Status == "missed" {
			want = append(want, "call.missed")
		}
		got := slices.Clone(told[call])
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			l.t.Errorf("call %s (%s, %s): events %v, want %v", call, r.Status, r.Reason, got, want)
		}
	}
}

// lostAtMost limits the audio that a crash may cut off the end of a recording.
const lostAtMost = 2 * time.Second

// recordings checks that each recording is complete and as long as its call, and that each file has a record.
func (l *loop) recordings(records map[string]record) (available, salvaged int) {
	l.t.Helper()
	names := map[string]bool{}
	var stood time.Duration
	for a := range list[audio](l.t, l.c, "/recordings?limit=200") {
		call := records[a.CallID]
		names[a.CallID+".wav"] = true
		end, cut := call.Ended, call.Reason == "node_crash"
		if cut {
			end = l.killAfter(a.Started)
			salvaged++
		}
		lost := lostAtMost + l.disk.stood(end)
		stood = max(stood, lost-lostAtMost)
		if a.Status != "available" {
			if !cut && !l.killedNear(a.Started) || end.Sub(a.Started) > lost {
				l.t.Errorf("recording of call %s (%s, %s long) is %s: %+v", a.CallID, call.Reason, end.Sub(a.Started), a.Status, a.Error)
			}
			continue
		}
		available++
		length, ok := l.whole(a)
		if short := end.Sub(a.Started) - length; ok && (short > lost || !cut && short > time.Second || short < -1500*time.Millisecond) {
			l.t.Errorf("recording of call %s (%s) is %s long, the call %s", a.CallID, call.Reason, length, end.Sub(a.Started))
		}
	}
	l.files(names)
	l.t.Logf("the disk stood still for %s at most in the four seconds before a recording's end", stood)
	return available, salvaged
}

// killedNear reports whether the server was killed within moments of a time. A call that was connected then may have
// no audio on the disk, even if its caller hung up only after the restart.
func (l *loop) killedNear(t time.Time) bool {
	for _, k := range l.killed {
		if d := k.Sub(t); d > -lostAtMost && d < lostAtMost {
			return true
		}
	}
	return false
}

// killAfter returns the time of the next kill of the server.
func (l *loop) killAfter(t time.Time) time.Time {
	for _, k := range l.killed {
		if k.After(t) {
			return k
		}
	}
	return t
}

// whole fetches the audio, compares it with its record, and returns its length.
func (l *loop) whole(a audio) (time.Duration, bool) {
	l.t.Helper()
	r := l.c.Do("GET", "/recordings/"+a.ID+"/audio", nil)
	sum := sha256.Sum256(r.Body)
	if r.Status != 200 || len(r.Body) != a.SizeBytes || a.SHA256 == nil || *a.SHA256 != hex.EncodeToString(sum[:]) {
		l.t.Errorf("audio of call %s: %d with %d bytes, the record says %d bytes", a.CallID, r.Status, len(r.Body), a.SizeBytes)
		return 0, false
	}
	at := bytes.Index(r.Body, []byte("data"))
	if !bytes.HasPrefix(r.Body, []byte("RIFF")) || at < 0 || len(r.Body) < at+8 {
		l.t.Errorf("audio of call %s is no WAV file", a.CallID)
		return 0, false
	}
	samples := len(r.Body) - at - 8
	if riff, data := binary.LittleEndian.Uint32(r.Body[4:]), binary.LittleEndian.Uint32(r.Body[at+4:]); int(data) != samples ||
		int(riff) != len(r.Body)-8 {
		l.t.Errorf("audio of call %s: header says %d and %d bytes, there are %d and %d", a.CallID, riff, data, len(r.Body)-8, samples)
		return 0, false
	}
	return time.Duration(samples/2) * time.Second / 8000, true
}

// files fails for recording files without a record.
func (l *loop) files(known map[string]bool) {
	l.t.Helper()
	err := filepath.WalkDir(filepath.Join(l.s.Data, "recordings"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".part") || !known[filepath.Base(path)]) {
			l.t.Errorf("%s belongs to no recording", path)
		}
		return err
	})
	if err != nil {
		l.t.Error(err)
	}
}
