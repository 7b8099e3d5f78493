package eventstream

import (
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/event"
)

// needs says which scope shows a kind, by the beginning of its name.
var needs = []struct {
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

// anyOf is what opens a stream: a scope that shows something on it.
var anyOf = access.Either(access.CallsRead, access.SMSRead, access.ContactsRead, access.UsersAdmin, access.NumbersAdmin, access.QueuesRead)

// need is what shows a kind; nobody sees one that is not listed.
func need(k event.Kind) access.Need {
	for _, n := range needs {
		if strings.HasPrefix(string(k), n.prefix) {
			return n.need
		}
	}
	return access.Need{}
}

// kinds lists every kind there is.
func kinds() []event.Kind {
	all := event.Kinds()
	for _, p := range event.StreamPayloads {
		all = append(all, p.Kind())
	}
	return all
}

// shown are the kinds a credential sees, of those asked for (none: all).
func shown(scopes []access.Scope, asked []string) map[event.Kind]bool {
	all := map[event.Kind]bool{}
	for _, k := range kinds() {
		all[k] = need(k).MetBy(scopes)
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
