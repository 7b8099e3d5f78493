// Package keybuffer keeps the digits that a caller pressed until a script reads them.
package keybuffer

import (
	"sync"
	"time"
)

// maxKeys limits the digits kept before a script reads them.
const maxKeys = 64

// closed is the channel of a buffer with digits.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Buffer holds the digits that a caller pressed and no script has read yet. It is safe for concurrent use.
type Buffer struct {
	mu    sync.Mutex // guards all other fields
	all   []rune
	drop  rune          // the digit that DropNext drops; 0: none
	until time.Time     // when that ends
	empty chan struct{} // closed by the next digit; nil: nobody has waited since the last digit
}

// Readable returns a channel that is closed while a digit waits, so that every receiver sees it. A receiver that finds
// no digit, because another one took it, calls Readable again.
func (k *Buffer) Readable() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) > 0 {
		return closed
	}
	if k.empty == nil {
		k.empty = make(chan struct{})
	}
	return k.empty
}

// DropNext drops the next digit that was or will be pressed if it is d, and not pressed after until. It is for the key that ends
// an input which was complete without it.
func (k *Buffer) DropNext(d rune, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case len(k.all) == 0:
		k.drop, k.until = d, until
	case k.all[0] == d:
		k.all = k.all[1:]
	}
}

// Press adds a digit. It is dropped if maxKeys wait.
func (k *Buffer) Press(d rune, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	dropped := k.drop == d && !now.After(k.until)
	if k.drop = 0; dropped {
		return
	}
	if len(k.all) < maxKeys {
		k.all = append(k.all, d)
	}
	if k.empty != nil {
		close(k.empty)
		k.empty = nil
	}
}

// Take removes the oldest digit; ok is false if there is none.
func (k *Buffer) Take() (d rune, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) == 0 {
		return 0, false
	}
	d, k.all = k.all[0], k.all[1:]
	return d, true
}

// Any reports whether a digit waits.
func (k *Buffer) Any() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all) > 0
}

// Discard removes all digits.
func (k *Buffer) Discard() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all, k.drop = nil, 0
}
