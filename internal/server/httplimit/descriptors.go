package httplimit

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"
)

// Descriptors counts the file descriptors that the process may have, and those that it has. It is safe for concurrent use.
type Descriptors struct {
	mu      sync.Mutex // guards the fields below
	read    time.Time
	used    int
	allowed int
}

// readEvery is how long a count is used. A count reads a folder with an entry for each descriptor.
const readEvery = time.Second

// NewDescriptors raises the number of descriptors as far as the system allows.
func NewDescriptors() *Descriptors {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil && l.Cur < l.Max {
		l.Cur = l.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l) // a refusal leaves the present limit, which Count returns
	}
	return &Descriptors{}
}

// Count returns the descriptors in use, and how many the system allows. used is 0 if the system does not tell.
func (d *Descriptors) Count() (used, allowed int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.read) >= readEvery {
		d.read, d.used, d.allowed = now, open(), allowedDescriptors()
	}
	return d.used, d.allowed
}

// add corrects the count by connections that were accepted or closed since.
func (d *Descriptors) add(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used += n
}

func allowedDescriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || l.Cur > 1<<30 {
		return 1 << 30
	}
	return int(l.Cur)
}

// open returns the number of open descriptors of the process.
func open() int {
	f, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return 0
	}
	return len(names)
}

// Alarm thresholds in percent. The alarm ends well below the value at which it begins, so that it is not repeated.
const (
	alarmAt   = 80
	alarmEnds = 70
	watchTime = 5 * time.Second
)

// Watch logs an alarm when descriptors become few. It returns when the context ends.
func (d *Descriptors) Watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(watchTime)
	defer tick.Stop()
	for alarm := false; ; {
		used, allowed := d.Count()
		switch {
		case !alarm && used*100 >= allowed*alarmAt:
			alarm = true
			log.Error("file descriptors are nearly used up: new HTTP connections are refused, and calls and recordings will fail next; raise "+
				"the limit of open files (LimitNOFILE of systemd, ulimit -n)", "used", used, "allowed", allowed)
		case alarm && used*100 < allowed*alarmEnds:
			alarm = false
			log.Warn("file descriptors are enough again", "used", used, "allowed", allowed)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
