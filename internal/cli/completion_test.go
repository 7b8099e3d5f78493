package cli

import (
	"slices"
	"strings"
	"testing"

	"soniq/internal/cli/command"
	"soniq/internal/identity/user"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
)

// complete returns what a shell is offered for the last word.
func complete(t *testing.T, words ...string) []string {
	t.Helper()
	out, _, err := run(t, append([]string{"__completeNoDesc"}, words...)...)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSpace(out), "\n")
	return slices.DeleteFunc(all, func(s string) bool { return strings.HasPrefix(s, ":") })
}

// TestCompletion_Scripts prints the script of each shell.
func TestCompletion_Scripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		out, _, err := run(t, "completion", shell)
		if err != nil || !strings.Contains(out, "soniq") || len(out) < 2000 {
			t.Errorf("completion %s: %v, %d bytes", shell, err, len(out))
		}
	}
}

// TestCompletion_CommandsAndValues completes commands, flags and values. It offers no hidden command or flag.
func TestCompletion_CommandsAndValues(t *testing.T) {
	for line, want := range map[string][]string{
		"cal":                            {"calls"},
		"hear":                           {},
		"or":                             {},
		"admin ":                         {"clock", "keys", "orgs", "outbound", "trunks", "users"},
		"calls ":                         {"dial", "end", "get", "list", "watch"},
		"calls list --st":                {"--status"},
		"calls list --status on":         {"on_hold"},
		"calls list --status busy,can":   {"busy,canceled"},
		"calls list --direction ":        {"inbound", "outbound", "internal"},
		"calls list --phone ":            {},
		"events list --kind voicemail.":  {"voicemail.received"},
		"trigger call.m":                 {"call.missed"},
		"calls get ":                     {},
		"admin keys create --kind ":      {"standard", "partner"},
		"numbers port-status --status s": {"scheduled"},
		"serve --log-format ":            {"text", "json"},
		"serve --writ":                   {},
		"serve --summarizer ":            {"builtin", "off"},
		"completion z":                   {"zsh"},
		"help calls d":                   {"dial"},
	} {
		words := strings.Split(line, " ")
		got := complete(t, words...)
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) && (len(want) > 0 || strings.Join(got, "") != "") {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
	if all := complete(t, "admin", "keys", "create", "--scopes", ""); !slices.Contains(all, "calls:read") || !slices.Contains(all, "all") {
		t.Errorf("scopes: %v", all)
	}
}

// TestCompletion_ValuesAreTheAPIs compares values that are written down here with those of the packages that check them.
func TestCompletion_ValuesAreTheAPIs(t *testing.T) {
	var statuses []string
	for _, s := range call.Statuses {
		statuses = append(statuses, string(s))
	}
	if !slices.Equal(statuses, command.CallStatuses) {
		t.Errorf("statuses of calls: %v, want %v", command.CallStatuses, statuses)
	}
	if !slices.Equal(number.PortStatuses[1:], command.PortStatuses) { // the first is set by the organisation
		t.Errorf("statuses of ports: %v, want %v", command.PortStatuses, number.PortStatuses)
	}
	if !slices.Equal(user.Roles, command.Roles) {
		t.Errorf("roles: %v, want %v", command.Roles, user.Roles)
	}
}
