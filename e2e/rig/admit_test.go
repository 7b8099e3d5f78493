package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLockSlots_WaitsForFreeOnes(t *testing.T) {
	name := fmt.Sprint("test-", os.Getpid())
	all, err := lockSlots(name, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan error)
	go func() {
		one, err := lockSlots(name, 4, 1)
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
	for _, f := range all {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	gates, _ := filepath.Glob("/tmp/soniq-e2e-*-" + name + "-gate.lock")
	for _, gate := range gates {
		_ = os.Remove(gate)
	}
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

func TestLockSlots_SmallPassesLarge(t *testing.T) {
	name := fmt.Sprint("test-pass-", os.Getpid())
	held, err := lockSlots(name, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	if large, err := tryLock(name, 4, 4); err != nil || large != nil {
		t.Errorf("%d of 3 free slots were locked for a test that needs four: %v", len(large), err)
	}
	small, err := lockSlots(name, 4, 2)
	if err != nil || len(small) != 2 {
		t.Errorf("%d slots, %v", len(small), err)
	}
	for _, f := range append(held, small...) {
		_ = f.Close()
	}
	large, err := lockSlots(name, 4, 4)
	if err != nil || len(large) != 4 {
		t.Errorf("%d slots, %v", len(large), err)
	}
	for _, f := range large {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	gates, _ := filepath.Glob("/tmp/soniq-e2e-*-" + name + "-gate.lock")
	for _, gate := range gates {
		_ = os.Remove(gate)
	}
}
