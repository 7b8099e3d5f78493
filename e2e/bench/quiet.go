package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// quietWithin is longer than the longest timer of SIP: calls whose peer vanished are over by then.
const quietWithin = 2 * time.Minute

// quiet waits until the platform has no calls and no dialogs left, so that those of one step do not affect the next.
func (p *platform) quiet() (err error) {
	var calls, dialogs float64
	late := until(quietWithin, "the end of earlier calls", func() bool {
		calls, dialogs, err = p.left()
		return err != nil || calls+dialogs == 0
	})
	if err == nil && late != nil {
		err = fmt.Errorf("%w: %v calls and %v dialogs are left", late, calls, dialogs)
	}
	return err
}

// left returns the calls and dialogs in the platform's Prometheus metrics.
func (p *platform) left() (calls, dialogs float64, err error) {
	a, err := http.Get("http://" + p.http + "/metrics")
	if err != nil {
		return 0, 0, err
	}
	defer a.Body.Close()
	want := map[string]*float64{"soniq_calls_active": &calls, "soniq_sip_dialogs": &dialogs}
	in := bufio.NewScanner(a.Body)
	for in.Scan() {
		name, value, _ := strings.Cut(in.Text(), " ")
		if to := want[name]; to != nil {
			if *to, err = strconv.ParseFloat(value, 64); err != nil {
				return 0, 0, err
			}
			delete(want, name)
		}
	}
	if len(want) > 0 {
		return 0, 0, fmt.Errorf("%d figures are missing at /metrics: %v", len(want), in.Err())
	}
	return calls, dialogs, nil
}
