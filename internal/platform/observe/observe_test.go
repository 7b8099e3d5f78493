package observe

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestRequire_NoObserver(t *testing.T) {
	var readers []io.Reader
	var closers []io.Closer
	observe := func(o any) (cause any) {
		defer func() { cause = recover() }()
		Require("pkg", o, Add(&readers, o), Add(&closers, o))
		return nil
	}
	if got := observe(strings.NewReader("")); got != nil || len(readers) != 1 || len(closers) != 0 {
		t.Errorf("a reader: %v, %d readers and %d closers", got, len(readers), len(closers))
	}
	if got := observe(7); fmt.Sprint(got) != "pkg: int implements no observer" {
		t.Errorf("a number: %v", got)
	}
}

func TestEach_StopsAtError(t *testing.T) {
	sum := 0
	err := Each([]int{1, 2, 4}, func(n int) error {
		if sum += n; n == 2 {
			return errors.New("two")
		}
		return nil
	})
	if err == nil || sum != 3 {
		t.Errorf("%v after %d", err, sum)
	}
}
