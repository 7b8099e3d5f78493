package pbx

import "sync"

// maxKeys is how many keys are kept that were pressed before they were asked for.
const maxKeys = 64

// A keys are those a caller has pressed and nobody has read yet.
type keys struct {
	pressed chan struct{} // told of every key

	mu  sync.Mutex // guards all
	all []rune
}

func (k *keys) press(d rune) {
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

func (k *keys) take() (d rune, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) == 0 {
		return 0, false
	}
	d, k.all = k.all[0], k.all[1:]
	return d, true
}

func (k *keys) any() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all) > 0
}

func (k *keys) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = nil
}
