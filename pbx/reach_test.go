package pbx

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/sip"
)

func TestATelephoneIsRungByOneFlowAfterTheOther(t *testing.T) {
	t.Parallel()
	contact := func(device, name, instance string, age int) Phone {
		return Phone{DeviceID: device, SRTP: device, Binding: sip.Binding{Contact: name, Instance: instance,
			Registered: time.Unix(int64(1000-age), 0)}}
	}
	var got []string
	for _, p := range telephones([]Phone{contact("a", "old", "<urn:1>;1", 9), contact("b", "other", "<urn:1>;1", 3),
		contact("a", "new", "<urn:1>;2", 1), contact("a", "plain", "", 5), contact("a", "older", "<urn:1>;3", 20)}) {
		way := fmt.Sprint(p.DeviceID, p.SRTP, ":", p.Binding.Contact)
		for _, status := range []int{430, 408, 430} {
			if q := p.next(status); q != nil {
				p, way = *q, way+">"+q.Binding.Contact
			}
		}
		got = append(got, way)
	}
	if s := strings.Join(got, " "); s != "aa:new>old>older aa:plain bb:other" {
		t.Errorf("rung: %s", s)
	}
	busy := contact("a", "new", "", 0)
	busy.Flows = []sip.Binding{{Contact: "old"}}
	if q := busy.next(486); q != nil {
		t.Error("who is busy is rung by another flow")
	}
}
