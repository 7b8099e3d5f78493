package pbx

import (
	"testing"
	"unsafe"
)

// These are kept as long as a call lasts. The allocator rounds up to a class, and adds a word to what is larger than 512 bytes: one
// field more may cost 256 bytes.
func TestWhatACallKeepsFitsItsClass(t *testing.T) {
	for name, x := range map[string]struct{ size, class uintptr }{
		"call": {unsafe.Sizeof(liveCall{}), 1536},
		"leg":  {unsafe.Sizeof(leg{}), 896},
	} {
		if x.size+8 > x.class {
			t.Errorf("a %s is %d bytes: %d too many for its class", name, x.size, x.size+8-x.class)
		}
	}
}
