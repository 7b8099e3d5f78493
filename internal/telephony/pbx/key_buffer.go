package pbx

import "sync"

// maxKeys limits the digits kept before a script reads them.
const maxKeys = 64

// keyBuffer holds the digits that a caller pressed and no script has read yet.
type keyBuffer struct {
	pressed chan struct{} // receives a value for every digit

	mu  sync.Mutex // guards all
	all []rune
}

func (k *keyBuffer) press(d rune) {
	k.mu.Lock()
	if len(k.all) < maxKeys {
		k.all = append(k.all, d)
	}
	k.mu.Unlock()
	select {
	case k.pressed <- struct{}{}:
	default:
	}
}

func (k *keyBuffer) take() (d rune, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) == 0 {
		return 0, false
	}
	d, k.all = k.all[0], k.all[1:]
	return d, true
}

func (k *keyBuffer) any() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all) > 0
}

func (k *keyBuffer) discard() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = nil
}
