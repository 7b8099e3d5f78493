package dsp

import (
	"math"
	"testing"
)

func TestDominantFrequency_Silence(t *testing.T) {
	t.Parallel()
	if hz, db := DominantFrequency(nil, 8000); hz != 0 || !math.IsInf(db, -1) {
		t.Errorf("empty: %v %v", hz, db)
	}
	if hz, _ := DominantFrequency(make([]int16, 800), 8000); hz != 0 {
		t.Errorf("zeros: %v Hz", hz)
	}
}
