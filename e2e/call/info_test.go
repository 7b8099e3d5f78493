package call

import (
	"strings"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestINFO_MediaControlRelayed(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	port := company.RegisterSipp(user.SIP)
	for status, from := range map[int]string{200: "+12125550101", 415: "+12125550102"} { // 415: a phone that does not know it
		callee := s.Sipp(rig.Script{Scenario: "answer_info", Status: status, Port: port, From: user.SIP.Username})
		s.Sipp(rig.Script{Scenario: "call_info", Picture: true, Status: status, IP: way.IP, From: from, Number: way.Number}).Wait()
		callee.Wait()
		if info := callee.Received("INFO ", 0); !strings.Contains(info, "picture_fast_update") || rig.Field(info, "Content-Type") != "application/media_control+xml" {
			t.Errorf("the phone got\n%s", info)
		}
		if r := company.CDR(from); r.String() != "inbound completed caller_hangup caller 0" {
			t.Errorf("record: %s", r)
		}
	}
}
