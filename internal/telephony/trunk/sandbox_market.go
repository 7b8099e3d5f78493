package trunk

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nyaruka/phonenumbers"

	"soniq/internal/telephony/number"
)

// SandboxMarket sells numbers that do not exist to sandboxes. Three of them simulate how real orders end (api-surface
// 10).
type SandboxMarket struct {
	now func() time.Time

	mu     sync.Mutex           // guards orders
	orders map[string]time.Time // due times of pending orders, by reference
}

// NewSandboxMarket returns a market without orders.
func NewSandboxMarket(now func() time.Time) *SandboxMarket {
	return &SandboxMarket{now: now, orders: map[string]time.Time{}}
}

// The numbers with a simulated order: active at once, active after a delay, and unavailable.
const (
	immediateNumber   = "+12025550121"
	delayedNumber     = "+12025550122"
	unavailableNumber = "+12025550123"
	delayedOrderTime  = 10 * time.Second
)

// maxOrders bounds the pending orders in memory. When it is reached all are dropped, and a dropped order counts as
// complete.
const maxOrders = 10_000

var sandboxCost = &number.Cost{Amount: 0, Currency: "USD"}

// Search returns generated numbers of a country. For the US these are the three special ones and the block 555-01xx,
// which is reserved for fiction. For other countries they are derived from an example number.
func (m *SandboxMarket) Search(_ context.Context, w number.SearchCriteria) ([]number.Available, error) {
	var all []number.Available
	add := func(e164, kind string) {
		fits := w.Matches(e164) && w.Locality == "" && (len(w.Types) == 0 || slices.Contains(w.Types, kind))
		if fits && len(all) < w.Limit {
			all = append(all, number.Available{Number: e164, Country: w.Country, Type: kind, Capabilities: []string{"voice", "sms"},
				MonthlyCost: sandboxCost, SetupCost: sandboxCost})
		}
	}
	if slices.Contains(w.Capabilities, "mms") || slices.Contains(w.Capabilities, "fax") {
		return nil, nil
	}
	if w.Country == "US" {
		for _, e164 := range []string{immediateNumber, delayedNumber, unavailableNumber} {
			add(e164, "local")
		}
		area := w.AreaCode
		if len(area) != 3 {
			area = "202"
		}
		for n := 140; n < 200; n++ { // 555-0100 to 555-0199 are assigned to no subscriber in any area code
			add(fmt.Sprintf("+1%s5550%03d", area, n), "local")
		}
		return all, nil
	}
	for kind, of := range map[string]phonenumbers.PhoneNumberType{"local": phonenumbers.FIXED_LINE, "mobile": phonenumbers.MOBILE} {
		if x := phonenumbers.GetExampleNumberForType(w.Country, of); x != nil {
			e164 := phonenumbers.Format(x, phonenumbers.E164)
			for n := range 50 {
				add(fmt.Sprintf("%s%02d", e164[:len(e164)-2], n), kind)
			}
		}
	}
	return all, nil
}

// OrderNow starts an order.
func (m *SandboxMarket) OrderNow(d number.OrderRequest) (number.OrderStatus, error) {
	switch d.Number {
	case unavailableNumber:
		return number.OrderStatus{}, number.ErrUnavailable
	case delayedNumber:
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.orders) >= maxOrders {
			clear(m.orders)
		}
		m.orders[d.Ref] = m.now().Add(delayedOrderTime)
		return number.OrderStatus{After: delayedOrderTime, MonthlyCost: sandboxCost}, nil
	}
	return number.OrderStatus{Active: true, MonthlyCost: sandboxCost}, nil
}

// Order returns the state of an order. An order from before a restart is complete.
func (m *SandboxMarket) Order(_ context.Context, d number.OrderRequest) (number.OrderStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if left := m.orders[d.Ref].Sub(m.now()); left > 0 {
		return number.OrderStatus{After: left}, nil
	}
	delete(m.orders, d.Ref)
	return number.OrderStatus{Active: true, MonthlyCost: sandboxCost}, nil
}

// Release does nothing.
func (m *SandboxMarket) Release(context.Context, number.OrderRequest) error { return nil }
