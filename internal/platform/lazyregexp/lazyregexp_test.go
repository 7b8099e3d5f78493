package lazyregexp

import (
	"slices"
	"testing"
)

func TestNew_CompilesOnFirstUse(t *testing.T) {
	inTest = false
	defer func() { inTest = true }()
	malformed := New(`(`) // no panic yet
	defer func() {
		if recover() == nil {
			t.Error("a malformed expression was used without a panic")
		}
	}()
	malformed.MatchString("")
}

func TestNew_MalformedFailsTestsAtOnce(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	New(`(`)
}

func TestRegexp_Methods(t *testing.T) {
	r := New(`(\d)(\d)`)
	if !r.MatchString("a12") || r.FindString("a12") != "12" || r.String() != `(\d)(\d)` {
		t.Error("match")
	}
	if got := r.FindStringSubmatch("a12"); !slices.Equal(got, []string{"12", "1", "2"}) {
		t.Errorf("groups %q", got)
	}
	if !slices.Equal(r.FindStringIndex("a12"), []int{1, 3}) || !slices.Equal(r.FindStringSubmatchIndex("12"), []int{0, 2, 0, 1, 1, 2}) {
		t.Error("positions")
	}
	if len(r.FindAllStringIndex("12 34", -1)) != 2 || len(r.FindAllStringSubmatch("12 34", 1)) != 1 {
		t.Error("all matches")
	}
	if got := r.ReplaceAllString("12", "$2$1"); got != "21" {
		t.Error(got)
	}
	if got := r.ReplaceAllStringFunc("12", func(s string) string { return s + s }); got != "1212" {
		t.Error(got)
	}
}
