package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func four(name string) slotPool { return slotPool{name: name, count: func() int { return 4 }} }

func TestSlots_WaitsForFreeOnes(t *testing.T) {
	name := fmt.Sprint("test-", os.Getpid())
	pool := four(name)
	all, err := pool.lock(4, false)
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan error)
	go func() {
		one, err := pool.lock(1, false)
		for _, f := range one {
			_ = f.Close()
		}
		next <- err
	}()
	select {
	case <-next:
		t.Error("a slot was given although all are taken")
	case <-time.After(200 * time.Millisecond):
	}
	_ = all[0].Close()
	if err := <-next; err != nil {
		t.Error(err)
	}
	removeSlots(t, name, all)
}

func TestHolders_ParentAdmitsItsSubtests(t *testing.T) {
	h := holders{names: map[string]time.Duration{}}
	if !h.add("TestA") || h.add("TestA/one") || h.add("TestA") || !h.add("TestB/one") || !h.add("TestB/two") {
		t.Errorf("admitted: %v", h.names)
	}
	h.used("TestA/one/deeper", time.Second)
	if got := h.remove("TestA"); got != time.Second {
		t.Errorf("servers of the test used %s", got)
	}
	if !h.add("TestA/one") {
		t.Error("a subtest of a test that has ended is not admitted")
	}
}

func TestSlots_SmallPassesLarge(t *testing.T) {
	name := fmt.Sprint("test-pass-", os.Getpid())
	pool := four(name)
	held, err := pool.lock(1, false)
	if err != nil {
		t.Fatal(err)
	}
	if large, err := pool.try(4); err != nil || large != nil {
		t.Errorf("%d of 3 free slots were locked for a test that needs four: %v", len(large), err)
	}
	small, err := pool.lock(2, false)
	if err != nil || len(small) != 2 {
		t.Errorf("%d slots, %v", len(small), err)
	}
	for _, f := range append(held, small...) {
		_ = f.Close()
	}
	large, err := pool.lock(4, false)
	if err != nil || len(large) != 4 {
		t.Errorf("%d slots, %v", len(large), err)
	}
	removeSlots(t, name, large)
}

func TestSlots_AllIfThereAreFewer(t *testing.T) {
	name := fmt.Sprint("test-all-", os.Getpid())
	all, err := four(name).lock(int(All), true)
	if err != nil || len(all) != 4 {
		t.Errorf("%d slots, %v", len(all), err)
	}
	removeSlots(t, name, all)
}

// removeSlots frees the slots and removes the files of a pool.
func removeSlots(t *testing.T, name string, slots []*os.File) {
	t.Helper()
	for _, f := range slots {
		_ = f.Close()
	}
	files, err := filepath.Glob("/tmp/soniq-e2e-*-" + name + "-*.lock")
	if err != nil || len(files) == 0 {
		t.Errorf("no files of %s: %v", name, err)
	}
	for _, f := range files {
		_ = os.Remove(f)
	}
}
