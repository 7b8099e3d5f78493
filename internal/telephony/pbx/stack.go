package pbx

// growStack grows the goroutine's stack once to the size that a call needs. Otherwise the stack would grow in steps,
// with a copy each time.
//
//go:noinline
func growStack() {
	var room [6 << 10]byte
	touch(&room)
}

//go:noinline
func touch(*[6 << 10]byte) {}
