package main

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Number of calls placed, their distance (an organisation may place five a second), and the time limit for an INVITE.
const (
	placed     = 100
	placeEvery = 260 * time.Millisecond
	placeLimit = 5 * time.Second
)

// measurePlace measures the time from a request that places a call to the INVITE at the user's phone, which refuses
// it.
func (b *bench) measurePlace() error {
	b.title("REST request to INVITE", "POST /calls, four a second; the phone of the user is busy; ms from sending the request to the INVITE at the phone")
	phone, err := newAgent(fmt.Sprintf("127.0.0.1:%d", calleePort), nil)
	if err != nil {
		return err
	}
	defer phone.close()
	phone.rung = make(chan time.Time, 100)
	var took []time.Duration
	failed := 0
	tick := time.NewTicker(placeEvery)
	defer tick.Stop()
	for i := range placed {
		<-tick.C
		in := map[string]any{"user_id": b.platform.user, "to": fmt.Sprintf("+1202555%04d", i)} // one call a second goes to each number
		began := time.Now()
		if err := b.platform.api(http.MethodPost, "/calls", in, nil); err != nil {
			return err
		}
		select {
		case at := <-phone.rung:
			took = append(took, at.Sub(began))
		case <-time.After(placeLimit):
			failed++
		}
	}
	if len(took) == 0 {
		return fmt.Errorf("no call rang")
	}
	slices.Sort(took)
	p50, p99 := milliseconds(took[len(took)/2]), milliseconds(took[(len(took)-1)*99/100])
	b.table([]string{"what", "requests", "failed", "p50", "p99", "load"},
		[][]string{{ours, fmt.Sprint(len(took) + failed), fmt.Sprint(failed),
			fmt.Sprintf("%.2f", p50), fmt.Sprintf("%.2f", p99), load()}})
	b.atMost("REST request → INVITE, p50", p50, 2, " ms")
	b.atMost("REST request → INVITE, p99", p99, 5, " ms")
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
