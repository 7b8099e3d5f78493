package cli

import (
	"fmt"

	"soniq/internal/telephony/trunk"
)

// emergency prints the organisations whose phones cannot make emergency calls. The operator can then add a trunk before
// such a call is needed.
func (d *doctor) emergency(without []trunk.OrgWithoutEmergencyCalls) {
	d.title("emergency calls")
	if len(without) == 0 {
		d.ok("every organisation has a trunk that takes them")
	}
	for i, o := range without {
		if i == maxNamed {
			d.hint(fmt.Sprintf("and %d more organisations", len(without)-i), "GET /organization tells each emergency_calling")
			break
		}
		known := "; nobody has acknowledged that, so no other calls go out either"
		if o.Acknowledged {
			known = "; an administrator has acknowledged that"
		}
		d.hint(fmt.Sprintf("phones of %q (%s) cannot call for help%s", o.Name, o.ID, known),
			"give it a trunk with emergency_capable whose carrier routes emergency calls, and say so on every phone until then")
	}
}

// extensions prints the extensions that reach an emergency service or a crisis line instead of their owners.
func (d *doctor) extensions(all []trunk.UnreachableExtension) {
	for i, e := range all {
		if i == maxNamed {
			d.hint(fmt.Sprintf("and %d more extensions that are emergency numbers", len(all)-i),
				"give their users and queues other extensions")
			return
		}
		d.hint(fmt.Sprintf("extension %s of %s in %q (%s) is an emergency number or a crisis line: calls to it leave the organisation",
			e.Extension, e.Owner, e.OrgName, e.OrgID), "give the user or the queue another extension")
	}
}
