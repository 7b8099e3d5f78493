package pbx

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/record"
	"soniq/internal/telephony/call"
)

// callRecordings has the recordings of a call.
type callRecordings struct {
	recording *recording
	recorded  []*recording // stopped before the end
}

// recording is a running or stopped recording of a call.
type recording struct {
	new      call.NewRecording
	path     string
	started  time.Time
	recorder *record.Recorder
	failed   error // reason if there is no recorder

	suspended bool // the caller talks to no party: silence is written
	onHold    bool // a phone holds the call: silence is written
	paused    bool
	pauses    []call.Pause
	reason    string
	since     time.Time // start of the pause
	resume    *time.Timer
	stopped   bool
	dirty     bool
	isNew     bool // not written to the database yet
}

// recordByPolicy starts a recording if the organisation or the request wants it, after the notice if there is one.
// Emergency calls are recorded at once, without a notice and whatever the quota is.
func (c *liveCall) recordByPolicy(ctx context.Context) {
	switch {
	case !c.policy.Record || c.done:
	case !c.isEmergency() && c.recordingQuotaReached(ctx):
	case c.policy.Announce && !c.isEmergency():
		c.announceRecording(func(ctx context.Context) {
			if c.connectedNow() && c.recording == nil && len(c.recorded) == 0 {
				c.record("policy", "announced", 2)
				c.change(ctx)
			}
		})
	default:
		c.record("policy", c.policy.Consent, 2)
	}
}

// recordingQuotaReached reports whether the organisation has reached its limit of recordings, and adds that to the
// timeline. The call continues unrecorded.
func (c *liveCall) recordingQuotaReached(ctx context.Context) bool {
	err := c.checkRecordingQuota(ctx)
	var e *op.Error
	if errors.As(err, &e) {
		c.addEntry("recording.skipped", nil, detail{"reason": e.Code, "limit": e.Extra["limit"]})
		return true
	}
	if err != nil { // on an internal error the call is recorded
		c.sw.cfg.Log.Error("recording quota not checked; the call is recorded", "call", c.id, "org", c.new.Org, "err", err)
	}
	return false
}

func (c *liveCall) checkRecordingQuota(ctx context.Context) error {
	return c.sw.cfg.StorageQuota.CheckStorage(ctx, c.new.Org)
}

// record starts a recording of the two main sides. The call continues if it fails.
func (c *liveCall) record(trigger, consent string, channels int) {
	name := call.BlobName(c.new.Org, c.id, c.started)
	n := len(c.recorded)
	if c.interruption != nil { // the script runs again after a restart
		n += len(c.interruption.recordings)
	}
	if n > 0 {
		name = strings.TrimSuffix(name, ".wav") + "-" + strconv.Itoa(n+1) + ".wav"
	}
	r := &recording{started: c.sw.now(), dirty: true, isNew: true,
		new: call.NewRecording{ID: db.NewID("rec"), Name: name, Consent: consent, Trigger: trigger, Retention: c.policy.Retention,
			Channels: channels}}
	c.recording = r
	r.failed = c.openRecorder(r, false)
	if r.failed != nil {
		c.sw.cfg.Log.Error("recording not started", "call", c.id, "org", c.new.Org, "err", r.failed)
	}
	c.holdRecording(c.isHeldByPhone())
	c.addEntry("recording.started", nil, detail{"recording_id": r.new.ID, "trigger": trigger})
}

func (c *liveCall) openRecorder(r *recording, again bool) (err error) {
	path, err := c.sw.cfg.Files.Path(r.new.Name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return err
	}
	r.path = path
	left, right := c.channelLegs()
	cfg := record.Config{Path: path, Left: left.stream.Recordable(), Right: right.stream.Recordable(),
		LeftSent: c.a == nil, RightSent: c.b == nil, Codec: c.recordingCodec(), Wideband: c.wideband(), Mono: r.new.Channels == 1,
		Append: again, OnError: func(err error) {
			c.sw.cfg.Log.Error("recording stopped", "call", c.id, "org", c.new.Org, "err", err)
		}}
	if c.sw.cfg.LiveTranscriber != nil && len(c.recorded) == 0 {
		cfg.Tap = c.sw.cfg.LiveTranscriber.Listen(RecordedCall{c.new.Org, c.id, path, c.new.Direction == call.Outbound}, cfg)
	}
	r.recorder, err = c.sw.cfg.Media.Record(cfg)
	return err
}

// recordingCodec returns the G.711 codec of the file: the one of the called side.
func (c *liveCall) recordingCodec() codec.Codec {
	if _, right := c.channelLegs(); right.codec() == codec.PCMA {
		return codec.PCMA
	}
	return codec.PCMU
}

// wideband reports whether either side uses a codec above telephone quality.
func (c *liveCall) wideband() bool {
	left, right := c.channelLegs()
	return left.codec() > codec.PCMA || right.codec() > codec.PCMA
}

// channelLegs returns the legs of the two channels. If only one party is connected to a script, the second channel
// has the audio sent to it.
func (c *liveCall) channelLegs() (left, right *leg) {
	switch {
	case c.a == nil:
		return c.b, c.b
	case c.b == nil:
		return c.a, c.a
	}
	return c.a, c.b
}

// updateRecordingSides sets the connected legs as channels of the recording.
func (c *liveCall) updateRecordingSides() {
	r := c.recording
	if r == nil || r.recorder == nil || c.a == nil && c.b == nil {
		return
	}
	left, right := c.channelLegs()
	setLeft, setRight := r.recorder.SetLeft, r.recorder.SetRight
	if c.a == nil {
		setLeft = r.recorder.SetLeftSent
	}
	if c.b == nil {
		setRight = r.recorder.SetRightSent
	}
	for _, err := range []error{r.recorder.SetLeft(nil), r.recorder.SetRight(nil),
		setLeft(left.stream.Recordable()), setRight(right.stream.Recordable())} {
		if err != nil {
			c.sw.cfg.Log.Error("recording channel not set", "call", c.id, "org", c.new.Org, "err", err)
		}
	}
}

// suspendRecording replaces audio by silence while the caller talks to no party, until it is called with false.
func (c *liveCall) suspendRecording(is bool) {
	r := c.recording
	if r == nil || r.recorder == nil || r.suspended == is {
		return
	}
	r.suspended = is
	r.updatePause()
}

// holdRecording replaces audio by silence while a phone holds the call, until it is called with false. The held party may go on speaking.
func (c *liveCall) holdRecording(is bool) {
	r := c.recording
	if r == nil || r.recorder == nil || r.onHold == is {
		return
	}
	r.onHold = is
	r.updatePause()
}

// updatePause pauses or resumes the recorder.
func (r *recording) updatePause() {
	if r.paused || r.suspended || r.onHold {
		r.recorder.Pause()
		return
	}
	r.recorder.Resume()
}

// lastRecording returns the running recording, otherwise the last stopped one, otherwise nil.
func (c *liveCall) lastRecording() *recording {
	switch {
	case c.recording != nil:
		return c.recording
	case len(c.recorded) > 0:
		return c.recorded[len(c.recorded)-1]
	}
	return nil
}

// status returns the state of the recording for the call's row.
func (r *recording) status() string {
	switch {
	case r.stopped:
		return "stopped"
	case r.paused:
		return "paused"
	}
	return "recording"
}

func (c *liveCall) recordingID() string {
	switch {
	case c.recording != nil:
		return c.recording.new.ID
	case c.interruption != nil && len(c.interruption.recordings) > 0:
		return c.interruption.recordings[len(c.interruption.recordings)-1].ID
	}
	return ""
}

func (c *liveCall) changedRecordings() []call.RecordingChange {
	var all []call.RecordingChange
	for _, r := range append(c.recorded[:len(c.recorded):len(c.recorded)], c.recording) {
		if r == nil || !r.dirty {
			continue
		}
		f := call.RecordingChange{ID: r.new.ID, Status: r.status(), Pauses: r.pausesNow()}
		if r.stopped {
			f.Status = "processing"
		}
		if r.isNew {
			n := r.new
			f.New = &n
		}
		r.dirty, r.isNew = false, false
		all = append(all, f)
	}
	return all
}

// pausesNow returns the pauses. A pause that still lasts has no end; the end of the recording closes it.
func (r *recording) pausesNow() []call.Pause {
	all := append([]call.Pause(nil), r.pauses...)
	if r.paused {
		all = append(all, r.pause(r.started))
	}
	return all
}

func (r *recording) pause(until time.Time) call.Pause {
	return call.Pause{FromMS: int(r.since.Sub(r.started) / time.Millisecond), ToMS: int(until.Sub(r.started) / time.Millisecond),
		Reason: r.reason}
}

// closeTimeout limits the wait for a finished file.
const closeTimeout = 30 * time.Second

// closeRecordings finishes the files of an ended call and writes the result.
func (c *liveCall) closeRecordings(ctx context.Context) {
	c.recoverRecordings(ctx)
	r := c.recording
	var audio call.Audio
	if r != nil {
		audio = c.closeRecording(ctx, r)
	}
	if c.sw.cfg.LiveTranscriber != nil && c.lastRecording() != nil {
		c.sw.cfg.LiveTranscriber.End(c.new.Org, c.id)
	}
	if r != nil {
		c.writeRecording(ctx, r, audio)
	}
}

func (c *liveCall) writeRecording(ctx context.Context, r *recording, audio call.Audio) {
	c.writes.Write(ctx, "recording", func(ctx context.Context) error {
		return c.sw.cfg.Recordings.Recorded(ctx, c.new.Org, c.id, r.new.ID, audio, c.sw.cfg.OnRecorded)
	})
}

// closeRecording finishes a file.
func (c *liveCall) closeRecording(ctx context.Context, r *recording) call.Audio {
	if r.recorder == nil {
		return call.Audio{Err: r.failed}
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	result, err := r.recorder.Close(ctx)
	if n := r.recorder.Stats().Dropped; n > 0 {
		c.sw.cfg.Log.Warn("recording has gaps: the disk was too slow", "call", c.id, "org", c.new.Org, "packets", n)
	}
	return audioOf(result, err)
}

// audioOf describes a finished file. A file cut short by an error is available, and tells what is missing.
func audioOf(r record.Result, err error) call.Audio {
	if r.SHA256 == "" && err != nil {
		return call.Audio{Err: err}
	}
	a := call.Audio{Duration: r.Duration, Size: r.Size, SHA256: r.SHA256, SampleRate: r.SampleRate,
		Channels: r.Channels, Missing: r.Missing}
	if a.Missing > 0 {
		a.Cut = diskFault(err)
	}
	return a
}

// diskFault returns the reason why audio is missing, without the names of files.
func diskFault(err error) string {
	var system syscall.Errno
	switch {
	case err == nil:
		return "the disk was too slow"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the disk is full"
	case errors.As(err, &system):
		return "the disk failed: " + system.Error()
	}
	return "the disk failed"
}
