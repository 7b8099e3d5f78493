package media

import (
	"errors"
	"testing"
)

// openAll opens streams under a claim until it is refused.
func openAll(t *testing.T, e *Engine, c Claim) (all []*Stream, err error) {
	t.Helper()
	for {
		s, err := e.For(c).Open()
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
}

// Each further party finds free streams, and each kind of use those that are kept back for it.
func TestShares_LeaveStreamsToOthers(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{PortMin: 22000, PortMax: 22199, Shares: Shares{Percent: 50, Continued: 12, Emergency: 8}}, newLoop)
	first, err := openAll(t, e, Claim{Owner: "org_1", Use: NewCall})
	if len(first) != 40 || !errors.Is(err, ErrShare) { // half of 100 less 20
		t.Errorf("the first party has %d streams: %v", len(first), err)
	}
	second, err := openAll(t, e, Claim{Owner: "org_2", Use: NewCall})
	if len(second) != 20 || !errors.Is(err, ErrShare) {
		t.Errorf("the second party has %d streams: %v", len(second), err)
	}
	alone, err := openAll(t, e, Claim{Owner: "org_3", Use: NewCall, Alone: true})
	if len(alone) != 20 || !errors.Is(err, ErrNoPorts) {
		t.Errorf("one that is alone has the other %d streams: %v", len(alone), err)
	}
	continued, err := openAll(t, e, Claim{Owner: "org_1", Use: Continued})
	if len(continued) != 12 || !errors.Is(err, ErrNoPorts) {
		t.Errorf("calls in progress have %d further streams: %v", len(continued), err)
	}
	urgent, err := openAll(t, e, Claim{Owner: "org_1", Use: Emergency})
	if len(urgent) != 8 || !errors.Is(err, ErrNoPorts) {
		t.Errorf("emergency calls have %d streams: %v", len(urgent), err)
	}
	urgent[0].Close()
	if _, err := e.For(Claim{Owner: "org_1", Use: Continued}).Open(); !errors.Is(err, ErrNoPorts) {
		t.Errorf("a stream kept for emergency calls was given away: %v", err)
	}
	if s, err := e.For(Claim{Use: Emergency}).Open(); err != nil {
		t.Errorf("it is not kept again: %v", err)
	} else {
		s.Close()
	}
	for _, s := range append(append(append(append(first, second...), alone...), continued...), urgent...) {
		s.Close()
	}
	if e.entered != 0 || len(e.owned) != 0 {
		t.Errorf("%d streams are still counted: %v", e.entered, e.owned)
	}
}

func TestShares_SmallEnginesKeepLess(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ pairs, files, streams, continued, emergency int }{
		{5000, 1 << 20, 5000, 64, 8}, {100, 1 << 20, 100, 12, 6}, {10, 1 << 20, 10, 1, 0}, {5000, 600, 230, 28, 8},
	} {
		s := DefaultShares(50, x.pairs, x.files)
		if s.Streams != x.streams || s.Continued != x.continued || s.Emergency != x.emergency {
			t.Errorf("%d pairs, %d files: %+v", x.pairs, x.files, s)
		}
	}
}
