package eventstream

import (
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/event"
)

// kindScopes are the scopes that make kinds visible, by the prefix of their names.
var kindScopes = []struct {
	prefix string
	need   access.Need
}{
	{"call.", access.One(access.CallsRead)},
	{"voicemail.", access.One(access.CallsRead)},
	{"sms.", access.One(access.SMSRead)},
	{"screen_pop", access.One(access.ContactsRead)},
	{"user.", access.One(access.UsersAdmin)},
	{"device.", access.One(access.UsersAdmin)},
	{"webhook.", access.One(access.UsersAdmin)},
	{"emergency.", access.One(access.UsersAdmin)},
	{"number.", access.One(access.NumbersAdmin)},
	{"queue.", access.Either(access.QueuesRead, access.CallsRead)},
	{"agent.", access.Either(access.QueuesRead, access.CallsRead)},
}

// streamScope is required to open a stream: any scope that makes a kind visible.
var streamScope = access.Either(access.CallsRead, access.SMSRead, access.ContactsRead, access.UsersAdmin, access.NumbersAdmin, access.QueuesRead)

// scopeFor returns the scope that makes a kind visible. A kind that is not listed is visible to no credential.
func scopeFor(k event.Kind) access.Need {
	for _, n := range kindScopes {
		if strings.HasPrefix(string(k), n.prefix) {
			return n.need
		}
	}
	return access.Need{}
}

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
	for _, k := range kinds() {
		all[k] = scopeFor(k).MetBy(scopes)
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
