package main

import (
	"os"
	"strings"
)

// pageSetting is the setting of Linux that says who gets pages of 2 MB instead of 4 KB.
const pageSetting = "/sys/kernel/mm/transparent_hugepage/enabled"

// largePages gives all programs pages of 2 MB and returns the function that puts the setting back. On some virtual machines the first use
// of a page takes 16 µs. A server with the race detector uses 35,000 small pages before it is ready. Debian's own kernel has the same
// setting. Nothing changes without root, or if the setting is anything but "madvise", the default of other kernels.
func largePages(file string) (restore func()) {
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "[madvise]") {
		return func() {}
	}
	if err := os.WriteFile(file, []byte("always"), 0); err != nil {
		return func() {}
	}
	return func() { _ = os.WriteFile(file, []byte("madvise"), 0) }
}

// raceOptions lets the race detector use large pages too, and a process end without a wait of a second.
const raceOptions = "no_huge_pages_for_shadow=0 atexit_sleep_ms=0"
