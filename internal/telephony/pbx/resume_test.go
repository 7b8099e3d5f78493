package pbx

import (
	"slices"
	"testing"
	"time"

	"soniq/internal/telephony/call"
)

func TestRestoredRecording_PauseContinues(t *testing.T) {
	t.Parallel()
	began := time.Now()
	first, second := call.Pause{FromMS: 1000, ToMS: 2000, Reason: "payment"}, call.Pause{FromMS: 5000, Reason: "sensitive"}
	o := call.OpenRecording{ID: "rec_1", Status: "paused", StartedAt: began, Pauses: []call.Pause{first, second}}
	r := (&interruption{}).restoredRecording(o)
	if got := r.pausesNow(); !r.paused || !slices.Equal(got, []call.Pause{first, second}) {
		t.Errorf("paused %v, pauses %+v", r.paused, got)
	}
	second.ToMS = 9000
	if got := append(r.pauses, r.pause(began.Add(9*time.Second))); !slices.Equal(got, []call.Pause{first, second}) {
		t.Errorf("afterwards the pauses are %+v", got)
	}
	o.Status = "recording"
	if r = (&interruption{}).restoredRecording(o); r.paused || len(r.pauses) != 2 {
		t.Errorf("recording again: %+v", r)
	}
}
