package pbx

import (
	"context"
	"time"

	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/writequeue"
)

// recordByCommand starts or resumes a recording by API command.
func (c *liveCall) recordByCommand(ctx context.Context, x call.StartRecording, done commandReply) {
	switch {
	case !c.connectedNow():
		done.state(c, "the call is not connected")
	case c.recording != nil && c.recording.paused:
		c.resumeRecording(ctx, done)
	case c.recording != nil:
		done.ok()
	case c.policy.Never:
		done.fail(op.Fail("recording_disabled", "the organisation does not allow calls to be recorded"))
	default:
		c.recordAnnounced(ctx, x, done)
	}
}

func (c *liveCall) recordAnnounced(ctx context.Context, x call.StartRecording, done commandReply) {
	if err := c.checkRecordingQuota(ctx); err != nil {
		done.fail(err)
		return
	}
	if x.Announce != nil && !*x.Announce && c.policy.noticeRequired() && !c.isEmergency() {
		done.fail(op.Invalid(op.Field("announce", "announcement_required",
			"the organisation may not record without a notice; leave announce out, or see recording.silent_acknowledged of the organisation")))
		return
	}
	if !c.isEmergency() && (x.Announce != nil && *x.Announce || x.Announce == nil && c.policy.Announce) {
		c.announceRecording(func(ctx context.Context) { c.startByCommand(ctx, x, "announced", done) })
		return
	}
	c.startByCommand(ctx, x, c.policy.Consent, done)
}

// startByCommand starts the recording of a command.
func (c *liveCall) startByCommand(ctx context.Context, x call.StartRecording, consent string, done commandReply) {
	if !c.connectedNow() || c.recording != nil {
		done.ok()
		return
	}
	trigger := x.Trigger
	if trigger == "" {
		trigger = "api"
	}
	c.record(trigger, consent, x.Channels)
	if err := c.recording.failed; err != nil {
		c.recording = nil
		done.fail(err)
		return
	}
	c.change(ctx)
	done.ok()
}

// stopRecording finishes the file while the call continues.
func (c *liveCall) stopRecording(ctx context.Context, done commandReply) {
	r := c.recording
	if r == nil {
		if len(c.recorded) > 0 {
			done.ok()
			return
		}
		done.state(c, "the call is not recorded")
		return
	}
	c.unpause(r)
	r.stopped, r.dirty = true, true
	c.recording, c.recorded = nil, append(c.recorded, r)
	if r.recorder != nil {
		r.recorder.Stop()
	}
	c.addEntry("recording.stopped", nil, detail{"recording_id": r.new.ID})
	c.change(ctx)
	done.ok()
	c.sw.running.Add(1)
	go func() {
		defer c.sw.running.Done()
		audio := c.closeRecording(context.Background(), r)
		c.inbox.Push(message{run: func(ctx context.Context) { c.writeRecording(ctx, r, audio) },
			ifEnded: func() { c.writeRecordingLate(r, audio) }})
	}()
}

// writeRecordingLate writes the result of a file that was finished after the end of the call.
func (c *liveCall) writeRecordingLate(r *recording, audio call.Audio) {
	l := writequeue.New(c.sw.cfg.Log, &c.id)
	l.Write(context.Background(), "recording", func(ctx context.Context) error {
		return c.sw.cfg.Recordings.Recorded(ctx, c.new.Org, c.id, r.new.ID, audio, c.sw.cfg.OnRecorded)
	})
	l.Drain(c.sw.writing)
}

// pauseRecording replaces audio by silence.
func (c *liveCall) pauseRecording(ctx context.Context, x call.PauseRecording, done commandReply) {
	r := c.recording
	switch {
	case r == nil || r.recorder == nil:
		done.state(c, "the call is not recorded")
		return
	case !r.paused:
		r.paused, r.since, r.dirty, r.reason = true, c.sw.now(), true, x.Reason
		r.updatePause()
		c.addEntry("recording.paused", nil, detail{"reason": x.Reason})
		c.change(ctx)
	}
	c.autoResume(r, x.AutoResume)
	done.ok()
}

func (c *liveCall) autoResume(r *recording, after time.Duration) {
	if after <= 0 {
		return
	}
	if r.resume != nil {
		r.resume.Stop()
	}
	r.resume = c.afterWhileActive(after, func(ctx context.Context) {
		if c.recording == r {
			c.resumeRecording(ctx, commandReply{})
		}
	})
}

// resumeRecording ends a pause.
func (c *liveCall) resumeRecording(ctx context.Context, done commandReply) {
	r := c.recording
	if r == nil {
		done.state(c, "the call is not recorded")
		return
	}
	if r.paused {
		c.unpause(r)
		r.updatePause()
		c.addEntry("recording.resumed", nil, nil)
		c.change(ctx)
	}
	done.ok()
}

func (c *liveCall) unpause(r *recording) {
	if r.resume != nil {
		r.resume.Stop()
	}
	if r.paused {
		r.pauses = append(r.pauses, r.pause(c.sw.now()))
		r.paused, r.dirty = false, true
	}
}
