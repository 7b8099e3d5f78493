package event

import (
	"fmt"
	"os"
	"testing"
)

func TestNewFault_NoPath(t *testing.T) {
	_, err := os.Open("/var/lib/soniq/recordings/org_1/call_1.wav")
	got := NewFault("recording_failed", fmt.Errorf("the audio file could not be recovered: %w", err))
	want := Fault{Code: "recording_failed", Message: "the audio file could not be recovered: open the file: no such file or directory"}
	if *got != want {
		t.Errorf("%+v, want %+v", *got, want)
	}
}
