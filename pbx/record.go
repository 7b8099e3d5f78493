package pbx

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"soniq/call"
	"soniq/db"
	"soniq/media"
)

// A recording is being made of a call.
type recording struct {
	new      call.NewRecording
	path     string
	recorder *media.Recorder
	failed   error // why there is no recorder
}

// startRecording begins to record where the organisation wants it. A recording that cannot be made does not keep
// people from talking.
func (c *liveCall) startRecording() {
	p := c.plan.policy
	if !p.Record || c.done {
		return
	}
	name := call.BlobName(c.plan.new.Org, c.id, c.started)
	r := &recording{new: call.NewRecording{ID: db.NewID("rec"), Name: name, Consent: p.Consent, Trigger: "policy", Retention: p.Retention}}
	c.recording = r
	path, err := c.sw.Files.Path(name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		r.path = path
		r.recorder, err = c.sw.Media.Record(c.recordConfig(path))
	}
	if r.failed = err; err != nil {
		c.sw.Log.Error("recording not started", "call", c.id, "org", c.plan.new.Org, "err", err)
	}
}

func (c *liveCall) recordConfig(path string) media.RecordConfig {
	codec := c.codec()
	cfg := media.RecordConfig{Path: path, Left: c.streamA, Right: c.streamB, Codec: codec,
		OnError: func(err error) {
			c.sw.Log.Error("recording stopped", "call", c.id, "org", c.plan.new.Org, "err", err)
		}}
	if c.sw.Ears != nil {
		cfg.Tap = c.sw.Ears.Listen(c.plan.new.Org, c.id, path, codec)
	}
	return cfg
}

// closeTimeout bounds how long a finished recording is waited for.
const closeTimeout = 30 * time.Second

// closeRecording finishes the file and says so.
func (c *liveCall) closeRecording(ctx context.Context) {
	r := c.recording
	if r == nil {
		return
	}
	audio := call.Audio{Err: r.failed}
	if r.recorder != nil {
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		result, err := r.recorder.Close(ctx)
		cancel()
		audio = audioOf(result, err)
		if n := r.recorder.Stats().Dropped; n > 0 {
			c.sw.Log.Warn("recording has gaps: the disk was too slow", "call", c.id, "org", c.plan.new.Org, "packets", n)
		}
	}
	if c.sw.Ears != nil {
		c.sw.Ears.End(c.plan.new.Org, c.id)
	}
	c.ledger.write(ctx, "recording", func(ctx context.Context) error {
		return c.sw.Records.Recorded(ctx, c.plan.new.Org, c.id, r.new.ID, audio, c.sw.OnRecorded)
	})
}

// audioOf describes a finished file. One that was cut short by an error but is there counts as available.
func audioOf(r media.Result, err error) call.Audio {
	if r.SHA256 == "" && err != nil {
		return call.Audio{Err: err}
	}
	return call.Audio{Duration: r.Duration, Size: r.Size, SHA256: r.SHA256, SampleRate: r.SampleRate, Channels: r.Channels}
}
