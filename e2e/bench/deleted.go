package main

import (
	"os"
	"path/filepath"
	"time"
)

// ext4 passes by the inodes that were deleted within the last minute, or the last five where the deletion is not on the disk yet, one after the other each time
// that a file is made. A run that follows one whose thousands of recordings were deleted measures that: a tenth of a recorded call, and
// a fifth of the calls refused at 1,000 a second.
const passedBy = 6 * time.Minute

// deletion is a file whose time is when recordings of a run were last deleted.
func deletion() string { return filepath.Join(os.TempDir(), "soniq-bench-deleted") }

// clear deletes the data of the run.
func (b *bench) clear() {
	_ = os.RemoveAll(b.dir)
	if b.recordings {
		_ = os.WriteFile(deletion(), nil, 0o600)
	}
}

// sayDeleted warns that recorded calls cost more than they would.
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
