package cli

import (
	"fmt"
	"time"
)

// stir checks the root certificates with which calls from trunks are verified (STIR/SHAKEN).
func (d *doctor) stir() {
	all, err := d.config.ReadSTIRRoots()
	if err != nil || len(all) == 0 {
		return // wrong settings were reported when they were loaded
	}
	d.title("who calls")
	over := 0
	for _, root := range all {
		if time.Now().After(root.NotAfter) {
			over++
		}
	}
	if over > 0 {
		d.hint(fmt.Sprintf("%d of %d authorities in %s have expired", over, len(all), d.config.STIRRoots),
			"fetch the list again from your country's policy administrator")
		return
	}
	d.ok("calls from trunks are verified with %d authorities", len(all))
}
