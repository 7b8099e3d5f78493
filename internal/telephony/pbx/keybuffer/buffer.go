// Package keybuffer keeps the digits that a caller pressed until a script reads them.
package keybuffer

import "sync"

// maxKeys limits the digits kept before a script reads them.
const maxKeys = 64

// Buffer holds the digits that a caller pressed and no script has read yet.
type Buffer struct {
	Pressed chan struct{} // receives a value for every digit

	mu  sync.Mutex // guards all
	all []rune
}

// New returns an empty buffer.
func New() Buffer { return Buffer{Pressed: make(chan struct{}, 1)} }

// Press adds a digit. It is dropped if maxKeys wait.
func (k *Buffer) Press(d rune) {
	k.mu.Lock()
	if len(k.all) < maxKeys {
		k.all = append(k.all, d)
	}
	k.mu.Unlock()
	select {
	case k.Pressed <- struct{}{}:
	default:
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
	k.all = nil
}
