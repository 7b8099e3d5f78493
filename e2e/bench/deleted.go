package main

import (
	"os"
	"path/filepath"
	"time"
)

// Each time a file is made, ext4 walks over the inodes deleted within the last minute. It is five minutes if the deletion is not on the
// disk yet. A run after one with thousands of deleted recordings measures that: a tenth of a recorded call, and a fifth of the calls
// refused at 1,000 a second.
const passedBy = 6 * time.Minute

// deletion returns the path of a file whose modification time is the last deletion of a run's recordings.
func deletion() string { return filepath.Join(os.TempDir(), "soniq-bench-deleted") }

// clear deletes the data of the run.
func (b *bench) clear() {
	_ = os.RemoveAll(b.dir)
	if b.recordings {
		_ = os.WriteFile(deletion(), nil, 0o600)
	}
}

// sayDeleted warns that recorded calls cost more than usual after a recent deletion.
func (b *bench) sayDeleted() {
	info, err := os.Stat(deletion())
	if err != nil {
		return
	}
	if ago := time.Since(info.ModTime()); ago < passedBy {
		b.say("recordings of another run were deleted %s ago: recorded calls cost more until %s after that (-keep leaves them)",
			ago.Round(time.Second), passedBy)
	}
}
