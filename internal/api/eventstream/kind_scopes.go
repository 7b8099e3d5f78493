package eventstream

import (
	"soniq/internal/platform/access"
	"soniq/internal/platform/event"
)

// streamScope is required to open a stream: any scope that makes a kind visible.
var streamScope = access.Either(access.CallsRead, access.SMSRead, access.ContactsRead, access.UsersAdmin, access.NumbersAdmin,
	access.QueuesRead)

// kinds returns all kinds.
func kinds() []event.Kind {
	all := event.Kinds()
	for _, p := range event.StreamPayloads {
		all = append(all, p.Kind())
	}
	return all
}

// visibleKinds returns the kinds that a credential may see, limited to the requested ones; none requested means all.
func visibleKinds(scopes []access.Scope, asked []string) map[event.Kind]bool {
	all := map[event.Kind]bool{}
	for _, k := range event.Readable(kinds(), scopes) {
		all[k] = true
	}
	if len(asked) == 0 {
		return all
	}
	some := map[event.Kind]bool{}
	for _, name := range asked {
		some[event.Kind(name)] = all[event.Kind(name)]
	}
	return some
}
