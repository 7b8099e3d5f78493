package bus_test

import (
	"strconv"
	"testing"
	"time"

	"soniq/internal/platform/bus"
)

func TestCache_ChangesAndExpiry(t *testing.T) {
	t.Parallel()
	b, now, reads := bus.New(), time.Unix(1000, 0), 0
	c := bus.NewCache[int](b, "changed", time.Second, func() time.Time { return now })
	get := func(key string) int {
		v, err := c.Get(key, func() (int, error) { reads++; return reads, nil })
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if a, again := get("a"), get("a"); a != 1 || again != 1 {
		t.Fatalf("got %d then %d, want 1 twice", a, again)
	}
	get("b")
	b.Publish("changed", "a")
	if a, other := get("a"), get("b"); a != 3 || other != 2 {
		t.Fatalf("after a change of a: a = %d, b = %d, want 3 and 2", a, other)
	}
	now = now.Add(time.Second)
	if got := get("b"); got != 4 {
		t.Fatalf("after its life: %d, want 4", got)
	}
	b.Publish("changed", nil)
	if got := get("b"); got != 5 {
		t.Fatalf("after everything changed: %d, want 5", got)
	}
}

func TestCache_ValueLoadedBeforeChange(t *testing.T) {
	t.Parallel()
	b := bus.New()
	c := bus.NewCache[string](b, "changed", time.Minute, time.Now)
	_, _ = c.Get("a", func() (string, error) { b.Publish("changed", "a"); return "old", nil })
	if got, _ := c.Get("a", func() (string, error) { return "new", nil }); got != "new" {
		t.Errorf("got %q, want what is true after the change", got)
	}
}

func TestCache_ClearedWhenMessagesLost(t *testing.T) {
	t.Parallel()
	b := bus.New()
	c := bus.NewCache[string](b, "changed", time.Minute, time.Now)
	_, _ = c.Get("a", func() (string, error) { return "old", nil })
	for i := range 300 {
		b.Publish("changed", strconv.Itoa(i))
	}
	b.Publish("changed", "a") // the buffer is full
	if got, _ := c.Get("a", func() (string, error) { return "new", nil }); got != "new" {
		t.Errorf("got %q, want new", got)
	}
}

func TestClearedCache_AnyMessageClears(t *testing.T) {
	t.Parallel()
	b := bus.New()
	c := bus.NewClearedCache[string](b, "changed", time.Minute, time.Now)
	_, _ = c.Get("org/a", func() (string, error) { return "old", nil })
	b.Publish("changed", "a")
	if got, _ := c.Get("org/a", func() (string, error) { return "new", nil }); got != "new" {
		t.Errorf("got %q, want new", got)
	}
}
