package pbx

import (
	"testing"
	"unsafe"
)

// These structs exist for the duration of a call. The allocator rounds up to size classes and adds a word above 512
// bytes, so one more field may cost 256 bytes.
func TestLiveCall_FitsSizeClass(t *testing.T) {
	for name, x := range map[string]struct{ size, class uintptr }{
		"call": {unsafe.Sizeof(liveCall{}), 1536},
		"leg":  {unsafe.Sizeof(leg{}), 896},
	} {
		if x.size+8 > x.class {
			t.Errorf("a %s is %d bytes: %d too many for its class", name, x.size, x.size+8-x.class)
		}
	}
}
