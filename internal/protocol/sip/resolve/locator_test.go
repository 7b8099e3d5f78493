package resolve

import "testing"

// RFC 2782: by priority, and within one priority randomly by weight.
func TestSRV_OrderByPriorityAndWeight(t *testing.T) {
	t.Parallel()
	first := map[string]int{}
	const runs = 4000
	for range runs {
		all := orderSRV([]SRV{{Target: "late", Priority: 2, Weight: 900}, {Target: "heavy", Priority: 1, Weight: 30}, {Target: "light", Priority: 1, Weight: 10}})
		if len(all) != 3 || all[2].Target != "late" || all[0].Target == all[1].Target {
			t.Fatalf("order %v", all)
		}
		first[all[0].Target]++
	}
	if share := float64(first["heavy"]) / runs; share < 0.68 || share > 0.80 {
		t.Errorf("the heavy one is first in %.2f of all cases, want about 0.74", share)
	}
	if all := orderSRV([]SRV{{Target: "a"}, {Target: "b"}}); len(all) != 2 || all[0] == all[1] {
		t.Errorf("servers without weight: %v", all)
	}
}
