package partner

import (
	"net"
	"net/http"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/telephony/trunk/telnyxtest"
)

// TestNumberOrder_SurvivesKill kills the server while a provider has accepted an order but not answered yet.
func TestNumberOrder_SurvivesKill(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: fixture.NoSpeech, Upset: true}, func(t *testing.T, s *rig.Server) {
		market := telnyxtest.New(t)
		o := fixture.NewOrg(s)
		ada := o.AddUser("Ada")
		way := o.AddCarrier("", nil)
		o.Want(201, "POST", "/numbers/providers", map[string]any{"provider": "telnyx", "api_key": telnyxtest.Key, "trunk_id": way.Trunk, "url": market.API()}, nil)
		var found struct {
			Data     []struct{ Number, Provider string }
			Searched []struct{ Provider, Status string }
		}
		o.Want(200, "GET", "/numbers/search?country=US&area_code=202&contains=0141", nil, &found)
		if len(found.Data) != 1 || found.Data[0].Provider != "telnyx" || len(found.Searched) != 2 {
			t.Fatalf("found %+v", found)
		}
		taken := make(chan net.Conn, 1)
		market.Lock()
		market.Fail = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			order := &telnyxtest.Order{ID: "unheard", Number: found.Data[0].Number, Status: "success", RequirementsMet: true,
				Reference: telnyxtest.Reference(r)}
			market.Orders, market.Fail = append(market.Orders, order), nil
			market.Complete(order)
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
			}
			taken <- conn
			return true
		}
		market.Unlock()
		var n struct{ ID, Status string }
		o.Want(202, "POST", "/numbers", map[string]any{"number": found.Data[0].Number, "provider": "telnyx", "user_id": ada.ID}, &n)
		conn := <-taken
		s.Kill()
		_ = conn.Close()
		s.Start()
		status := func(want string) {
			rig.Until(t, "a number that is "+want, 90*time.Second, func() bool {
				o.Want(200, "GET", "/numbers/"+n.ID, nil, &n)
				return n.Status == want
			})
		}
		status("active")
		market.Lock()
		if len(market.Orders) != 1 || len(market.Owned) != 1 {
			t.Errorf("orders %v, numbers %v", market.Orders, market.Owned)
		}
		market.Unlock()
		o.Webhook.Wait("number.allocated", 30*time.Second, func(e rig.Event) bool { return e.Data["number"] == found.Data[0].Number })
		port := o.RegisterSipp(ada.SIP)
		phone := s.Sipp(rig.Script{Scenario: "answer", Port: port, From: ada.SIP.Username})
		s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12125550177", Number: found.Data[0].Number,
			Talk: 500 * time.Millisecond}).Wait()
		phone.Wait()
		o.Want(204, "DELETE", "/numbers/"+n.ID+"?confirm=%2B12025550141", nil, nil)
		status("released")
		market.Lock()
		defer market.Unlock()
		if len(market.Owned) != 0 {
			t.Errorf("the provider still has us pay for %v", market.Owned)
		}
	})
}
