package worktime_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"soniq/internal/telephony/pbx/worktime"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// timeline applies steps to a ledger and returns the seconds of all legs.
type timeline struct {
	worktime.Ledger
	now time.Time
}

func (x *timeline) after(d time.Duration, kind worktime.Kind, present ...string) {
	x.now = x.now.Add(d)
	x.Advance(x.now, kind, present)
}

func (x *timeline) wants(t *testing.T, id string, talk, hold int) {
	t.Helper()
	s, ok := x.Close(id)
	if !ok || s != (worktime.Seconds{Talk: talk, Hold: hold}) {
		t.Errorf("%s has %+v, %v; want %d and %d", id, s, ok, talk, hold)
	}
}

// https://github.com/asterisk/asterisk/issues/607
func TestTransfer_EachHasOwnSeconds(t *testing.T) {
	t.Parallel()
	x := &timeline{now: start}
	x.after(0, worktime.Talk, "ada")
	x.after(10*time.Second, worktime.Hold, "ada")
	x.after(4*time.Second, worktime.Talk, "ada", "carol") // a consultation
	x.after(2*time.Second, worktime.Talk, "carol")
	x.wants(t, "ada", 11, 4)
	x.after(20*time.Second, worktime.None)
	x.wants(t, "carol", 21, 0)
	x.wants(t, "carol", 21, 0) // the same again
}

func TestDrop_CountsForNobody(t *testing.T) {
	t.Parallel()
	x := &timeline{now: start}
	x.after(0, worktime.Talk, "ada", "carol")
	x.Drop("carol")
	x.after(10*time.Second, worktime.None)
	if _, ok := x.Close("carol"); ok {
		t.Error("the dropped leg has time")
	}
	x.wants(t, "ada", 10, 0)
}

// The people of a call together never have more talk time or hold time than the call, whatever happens in it. A ledger
// that was stored and read again in between counts the same.
func TestSum_NeverMoreThanCall(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 607))
		x := &timeline{now: start}
		var talk, hold time.Duration
		var sum worktime.Seconds
		kind, everyone, closed := worktime.None, 1+r.IntN(5), map[string]bool{}
		finish := func(id string) {
			if closed[id] {
				return
			}
			s, _ := x.Close(id)
			if s.Talk < 0 || s.Hold < 0 {
				t.Fatalf("seed %d: %s has %+v", seed, id, s)
			}
			sum.Talk, sum.Hold, closed[id] = sum.Talk+s.Talk, sum.Hold+s.Hold, true
		}
		for range 1 + r.IntN(20) {
			took := time.Duration(r.Int64N(int64(5 * time.Second)))
			if kind == worktime.Talk {
				talk += took
			} else if kind == worktime.Hold {
				hold += took
			}
			kind = worktime.Kind(r.IntN(3))
			var present []string
			for i := range everyone {
				if id := fmt.Sprint(i); r.IntN(2) == 0 && !closed[id] {
					present = append(present, id)
				}
			}
			x.after(took, kind, present...)
			if id := fmt.Sprint(r.IntN(everyone)); r.IntN(6) == 0 {
				x.after(0, kind, without(present, id)...)
				finish(id)
			}
			if id := fmt.Sprint(r.IntN(everyone)); r.IntN(8) == 0 && !closed[id] { // an attended transfer takes the leg to another call
				x.Drop(id)
				closed[id] = true
			}
			if r.IntN(5) == 0 {
				x.Ledger = stored(t, x.Ledger)
			}
		}
		for i := range everyone {
			finish(fmt.Sprint(i))
		}
		if sum.Talk > whole(talk) || sum.Hold > whole(hold) {
			t.Fatalf("seed %d: together %+v, the call has %s and %s", seed, sum, talk, hold)
		}
	}
}

func whole(d time.Duration) int { return int(d.Round(time.Second) / time.Second) }

func without(all []string, id string) (rest []string) {
	for _, x := range all {
		if x != id {
			rest = append(rest, x)
		}
	}
	return rest
}

// stored returns a ledger as a restart reads it.
func stored(t *testing.T, l worktime.Ledger) (out worktime.Ledger) {
	t.Helper()
	text, err := json.Marshal(l)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
