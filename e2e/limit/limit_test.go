package limit

import (
	"path/filepath"
	"testing"
	"time"
)

func TestBudget_OfTheNearestParent(t *testing.T) {
	Budget(t, time.Minute, "a test of budgets")
	t.Run("inner", func(t *testing.T) {
		if got := budget(t.Name()); got != time.Minute {
			t.Errorf("budget of a subtest: %s", got)
		}
		Budget(t, time.Hour, "a test of budgets")
		if got := budget(t.Name() + "/deeper"); got != time.Hour {
			t.Errorf("budget of a subtest's subtest: %s", got)
		}
	})
	if got := budget("TestOther/inner"); got != usualBudget {
		t.Errorf("budget of a test without one: %s", got)
	}
}

func TestWrite_IsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records")
	t.Setenv("SONIQ_TEST_RECORDS", path)
	for range 2 {
		if err := Write("TestX", true, time.Second, 2*time.Second, 3*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	want := Record{Test: "TestX", Waited: 1, Seconds: 2, CPU: 3, Failed: true, Budget: usualBudget.Seconds()}
	if got := Read(path); len(got) != 2 || got[1] != want {
		t.Errorf("read %+v, want twice %+v", got, want)
	}
}
