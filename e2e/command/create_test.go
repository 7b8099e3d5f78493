package command_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

var (
	orgLine = regexp.MustCompile(`^org_[0-9A-Z]{26}\n$`)
	keyLine = map[string]*regexp.Regexp{
		"live":    regexp.MustCompile(`^soniq_live_[0-9A-Za-z]{36}\n$`),
		"test":    regexp.MustCompile(`^soniq_test_[0-9A-Za-z]{36}\n$`),
		"partner": regexp.MustCompile(`^soniq_partner_[0-9A-Za-z]{36}\n$`),
	}
)

// TestCreate_OutputForScripts makes organisations and keys without a server, then beside a running one, which accepts
// them at once.
func TestCreate_OutputForScripts(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	alone := create(t, data)
	s := rig.Start(t, rig.Options{Data: data, Flags: []string{"--transcriber", "off"}})
	beside := create(t, data)
	if strings.Contains(s.Log(), "first start") {
		t.Error("a data folder with organisations got another one at the start")
	}
	for _, keys := range []map[string]string{alone, beside} {
		for kind, want := range map[string]string{"live": "/api/v1/me", "test": "/sandbox/v1/me", "partner": "/api/v1/me"} {
			me := whoami(t, s, want, keys[kind])
			if me.Organization.Name != "Harbor & Söhne" || me.Organization.Country != "DE" {
				t.Errorf("%s key: %+v", kind, me)
			}
			if kind == "live" && len(me.Scopes) != 13 || kind == "partner" && len(me.Scopes) != 15 {
				t.Errorf("%s key with scopes all has %v", kind, me.Scopes)
			}
			if kind == "test" && !slices.Equal(me.Scopes, []string{"calls:read", "memory:read"}) {
				t.Errorf("test key has %v", me.Scopes)
			}
		}
	}
}

func create(t *testing.T, data string) map[string]string {
	t.Helper()
	org := soniq(t, nil, "admin", "orgs", "create", "--name", "Harbor & Söhne", "--country", "DE", "--data", data)
	if org.code != 0 || !orgLine.MatchString(org.out) || org.wrong != "" {
		t.Fatalf("org create: %+v", org)
	}
	id := strings.TrimSpace(org.out)
	keys := map[string]string{}
	for kind, flags := range map[string][]string{
		"live":    {"--scopes", "all"},
		"test":    {"--scopes", "calls:read,memory:read", "--env", "test", "--name", "reports"},
		"partner": {"--scopes", "all", "--kind", "partner"},
	} {
		key := soniq(t, []string{"SONIQ_DATA=" + data}, append([]string{"admin", "keys", "create", "--org", id}, flags...)...)
		if key.code != 0 || !keyLine[kind].MatchString(key.out) || key.wrong != "" {
			t.Fatalf("key create (%s): %+v", kind, key)
		}
		keys[kind] = strings.TrimSpace(key.out)
	}
	return keys
}

type me struct {
	Organization struct{ Name, Country string }
	Scopes       []string
}

func whoami(t *testing.T, s *rig.Server, path, key string) (m me) {
	t.Helper()
	q, err := http.NewRequest("GET", "http://"+s.HTTP+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+key)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if err := json.NewDecoder(a.Body).Decode(&m); err != nil || a.StatusCode != 200 {
		t.Fatalf("GET %s: %d %v", path, a.StatusCode, err)
	}
	return m
}

// TestArguments_WrongExplained passes invalid arguments to commands, without a server and beside one.
func TestArguments_WrongExplained(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	org := strings.TrimSpace(soniq(t, nil, "admin", "orgs", "create", "--name", "A", "--data", data).out)
	wrongArguments(t, data, org)
	rig.Start(t, rig.Options{Data: data, Flags: []string{"--transcriber", "off"}})
	wrongArguments(t, data, org)
}

func wrongArguments(t *testing.T, data, org string) {
	t.Helper()
	for _, c := range []struct {
		args  string
		words []string
	}{
		{"nonsense", []string{`no command "nonsense"`, "soniq serve"}},
		{"org", []string{"soniq org create"}},
		{"org delete", []string{"soniq org create"}},
		{"org create", []string{"--name"}},
		{"org create --name X --country Germany", []string{"ISO 3166"}},
		{"org create --name X Y", []string{`"Y"`}},
		{"org create --nmae X", []string{"-nmae", "--name"}},
		{"key", []string{"soniq key create"}},
		{"admin keys create --scopes all", []string{"--org"}},
		{"admin keys create --org " + org, []string{"--scopes"}},
		{"admin keys create --scopes all --org org_00000000000000000000000000", []string{"no organisation org_00000000000000000000000000"}},
		{"admin keys create --scopes calls:raed --org " + org, []string{`"calls:raed"`}},
		{"admin keys create --scopes partners:read --org " + org, []string{"partner"}},
		{"admin keys create --scopes all --kind boss --org " + org, []string{"--kind", "standard", "partner"}},
		{"admin keys create --scopes all --env prod --org " + org, []string{"--env", "live", "test"}},
		{"backup", []string{"--to"}},
		{"backup --to " + data, []string{"exists"}},
		{"serve somewhere", []string{`"somewhere"`}},
		{"serve --http 8080 --sip x --rtp-ports 9-1 --public-ip here --allow-targets lan --drain soon --max-calls many --log-level loud",
			[]string{"--http", "--sip", "--rtp-ports", "--public-ip", "--allow-targets", "--drain", "--max-calls", "--log-level"}},
		{"serve --config /none/such", []string{"/none/such"}},
		{"serve --db mysql://x", []string{"--db", "postgres://"}},
		{"serve --sip phone.example.org:5060", []string{"--sip", "IP address"}},
		{"serve --transcriber loudly", []string{"--transcriber", "builtin"}},
		{"serve --transcriber sherpa:", []string{"--transcriber", "folder"}},
		{"serve --summarizer sherpa:/models/one", []string{"--summarizer", "builtin"}},
		{"serve --writer sherpa:/models/one", []string{"--summarizer", "builtin"}},
		{"serve -http 8080", []string{"--http"}},
		{"admin", []string{"soniq admin orgs"}},
		{"serve --base-url ftp://x", []string{"--base-url"}},
	} {
		soniq(t, []string{"SONIQ_DATA=" + data}, strings.Fields(c.args)...).refused(t, c.words...)
	}
}
