package media

import (
	"testing"
	"unsafe"

	"soniq/internal/protocol/media/sdp"
)

// Each call has two of these for its whole duration. The allocator rounds up to a size class, and adds a word to
// objects larger than 512 bytes. One more field may therefore cost 256 bytes.
func TestStreamAndSession_SizeClass(t *testing.T) {
	for name, x := range map[string]struct{ size, class uintptr }{
		"Stream":  {unsafe.Sizeof(Stream{}), 1536},
		"Session": {unsafe.Sizeof(sdp.Session{}), 576},
	} {
		if x.size+8 > x.class {
			t.Errorf("a %s is %d bytes: %d too many for its class", name, x.size, x.size+8-x.class)
		}
	}
}
