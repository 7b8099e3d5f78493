package internal_test

import (
	"encoding/json"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// settings are the members of one merge patch of the API.
type settings struct {
	pkg, patch, resource string            // the package, its merge patch, and the struct that holds the members
	idle                 []string          // files of the package that only check, store and show them
	renamed              map[string]string // member → field of the resource
	sites                map[string]string // member → "file: text" that has the effect, if it is no read of a field
	shown                []string          // members that only describe, such as labels
}

// engines are refused: the test would not see that.
const engines = "identity/org/ops.go: p.AI.V.check()"

// settingsOf has the settings by operation. Operations with the value nil change records and not settings.
var settingsOf = map[string]*settings{
	"agents.presence.set": nil, "agents.queues.set": nil, "calls.disposition": nil, "calls.monitor.update": nil, "me.preferences.set": nil,
	"queues.calls.update": nil, "recordings.update": nil, "sms.conversations.update": nil, "tags.update": nil, "users.dnd": nil,
	"voicemail.update": nil,
	"organization.update": {pkg: "identity/org", patch: "Patch", resource: "Organization", idle: []string{"check.go", "ops.go", "store.go"},
		sites: map[string]string{"ai": engines,
			"recording.silent_acknowledged": `identity/org/ops.go: yes, given := r["silent_acknowledged"]`,
			"emergency.acknowledged":        `identity/org/ops.go: yes, given := e["acknowledged"]`}},
	"users.update": {pkg: "identity/user", patch: "Patch", resource: "User", idle: usersIdle,
		shown: []string{"last_name"},
		sites: map[string]string{"outbound_number_id": "telephony/number/store.go: WHEN n.id = me.outbound_number_id THEN",
			"skills":        "contactcenter/queue/member.go: u.skills",
			"queue_ids":     "identity/user/change.go: s.setQueues(ctx, tx, u, n.QueueIDs",
			"voicemail.pin": "identity/user/pin.go: Mailboxes.SetPIN("}},
	"me.settings.update": {pkg: "identity/user", patch: "SettingsPatch", resource: "User", idle: usersIdle,
		sites: map[string]string{"outbound_number_id": "telephony/number/store.go: WHEN n.id = me.outbound_number_id THEN",
			"voicemail.pin": "identity/user/pin.go: Mailboxes.SetPIN("}},
	"queues.update": {pkg: "contactcenter/queue", patch: "Fields", resource: "Queue",
		idle: []string{"check.go", "ops.go", "patch.go", "store.go"}, shown: []string{"hours.exceptions.label"},
		sites: map[string]string{"extension": "telephony/directory/destination.go: org.ExtensionOwner("}},
	"queues.members.update": {pkg: "contactcenter/queue", patch: "MemberPatch", resource: "Member",
		idle: []string{"check.go", "member_ops.go", "store.go"}},
	"devices.update": {pkg: "telephony/device", patch: "Patch", resource: "Device", idle: []string{"ops.go", "store.go", "validate.go"},
		shown: []string{"model"},
		sites: map[string]string{"provisioning": "telephony/device/ops.go: s.applyProvisioningStatus("}},
	"numbers.update": {pkg: "telephony/number", patch: "Patch", resource: "Number", idle: []string{"ops.go", "store.go", "update.go"},
		shown: []string{"label"},
		sites: map[string]string{"flow_id": assignments, "user_id": assignments, "queue_id": assignments}},
	"numbers.providers.update": {pkg: "telephony/number", patch: "AccountPatch", resource: "Account",
		idle: []string{"account.go", "account_store.go"},
		sites: map[string]string{"status": "telephony/number/search.go: a.enabled", "api_key": "telephony/number/account.go: &a.credentials.Key",
			"connection_id": "telephony/number/account.go: &a.credentials.Connection", "url": "telephony/number/account.go: &a.credentials.URL",
			"trunk_id": "telephony/number/order.go: &p.account.TrunkID"}},
	"trunks.update": {pkg: "telephony/trunk", patch: "Patch", resource: "Trunk", idle: []string{"ops.go", "store.go", "update.go", "validate.go"},
		sites: map[string]string{"password": "telephony/trunk/ops.go: in.Body.Password", "priority": "telephony/trunk/store.go: ORDER BY priority",
			"inbound.password": "telephony/trunk/inbound_account.go: Unseal(t.inboundPassword"}},
	"webhooks.update": {pkg: "api/webhook", patch: "UpdateBody", resource: "endpoint",
		idle: []string{"endpoint.go", "ops.go", "ops_update.go", "validate.go"}, shown: []string{"description"},
		sites: map[string]string{"headers": "api/webhook/send.go: s.headers(e)"},
		renamed: map[string]string{"url": "URL", "events": "Events", "description": "Description", "status": "Status", "filters": "Filters",
			"ordered": "Ordered", "call_ended_timing": "Timing", "signed_recording_urls": "SignRecordingURLs",
			"timeout_seconds": "TimeoutSeconds"}},
	"sms.carriers.update": {pkg: "messaging/smscarrier", patch: "Patch", resource: "Carrier", idle: []string{"ops.go", "save.go", "store.go"},
		shown: []string{"name"},
		sites: map[string]string{"settings": "messaging/smscarrier/client.go: .build(",
			"priority": "messaging/smscarrier/store.go: ORDER BY priority"}},
	"sms.applications.update": {pkg: "messaging/smppserver", patch: "Patch", resource: "Application",
		idle: []string{"ops.go", "store.go", "update.go"}},
	"crm.connections.update": {pkg: "customer/crm", patch: "Patch", resource: "Connection", idle: []string{"ops.go", "store.go"},
		sites: map[string]string{"status": "customer/crm/service.go: !c.enabled"}},
	"flows.update": {pkg: "contactcenter/flow", patch: "Patch", resource: "Graph", idle: []string{"check.go", "ops.go", "ops_update.go", "store.go"},
		shown: []string{"name"}, sites: map[string]string{"ivr": forms, "hunt_group": forms, "ai_agent": forms}},
	"contacts.update": {pkg: "customer/contact", patch: "Patch", resource: "Contact", idle: []string{"ops.go", "store.go", "validate.go"},
		sites: map[string]string{"crm_sync": "customer/contact/ops.go: in.Body.CRMSync"}},
	"partners.update": {pkg: "identity/partner", patch: "Patch", resource: "Partner", idle: []string{"ops.go"}, sites: ofChildren},
	"partners.users.update": {pkg: "identity/partner", patch: "PersonPatch", resource: "Person", idle: []string{"people.go"},
		sites: map[string]string{"role": "identity/partner/people.go: in.Body.Role", "status": "identity/partner/people.go: in.Body.Status"}},
}

// usersIdle are the files of package user that only check, store and show settings.
var usersIdle = []string{"check.go", "change.go", "ops.go", "own_settings.go", "store.go"}

// Sites of several members.
const (
	assignments = "telephony/directory/destination.go: n.AssignedTo.Type"
	forms       = "contactcenter/flow/short_form.go: expand()"
)

// ofChildren are the sites of the settings that a partner changes: they are those of an organisation.
var ofChildren = map[string]string{"name": "identity/org/child.go: c.Name.Apply", "plan": "identity/org/child.go: c.Plan.Apply",
	"call_recording_enabled": "identity/org/child.go: c.Record.V", "external_reference": "identity/org/child.go: c.ExternalReference.V"}

// TestSettings_HaveAnEffect fails for a setting of the API that is only checked, stored and shown.
//
// https://github.com/OpenWhispr/openwhispr/issues/260
func TestSettings_HaveAnEffect(t *testing.T) {
	all := changingOperations(t)
	if known := slices.Sorted(maps.Keys(settingsOf)); !slices.Equal(all, known) {
		t.Errorf("the API has the operations\n%v, settingsOf has\n%v", all, known)
	}
	tree := newTypedTree(t)
	walk(t, func(path string) {
		if strings.HasPrefix(path, "internal/") && !strings.HasSuffix(path, "_test.go") {
			if _, err := tree.Import("soniq/" + filepath.ToSlash(filepath.Dir(path))); err != nil {
				t.Fatal(err)
			}
		}
	})
	for name, s := range settingsOf {
		if s == nil {
			continue
		}
		c := settingsCheck{T: t, tree: tree, settings: s, operation: name, unused: maps.Clone(s.sites)}
		c.check(c.structOf(s.patch), c.structOf(s.resource), "")
		for member := range c.unused {
			t.Errorf("%s has no member %s without a reader", name, member)
		}
	}
}

// changingOperations returns the operations of the API that replace or patch something.
func changingOperations(t *testing.T) (all []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("api", "rest", "testdata", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(b, &document); err != nil {
		t.Fatal(err)
	}
	for _, path := range document.Paths {
		for method, o := range path {
			if method == "patch" || method == "put" {
				all = append(all, o.OperationID)
			}
		}
	}
	slices.Sort(all)
	return all
}

// settingsCheck checks the settings of one operation.
type settingsCheck struct {
	*testing.T
	tree typedTree
	*settings
	operation string
	unused    map[string]string // sites that no member needed
}

func (c settingsCheck) structOf(name string) *types.Struct {
	c.Helper()
	p, err := c.tree.Import("soniq/internal/" + c.pkg)
	if err != nil {
		c.Fatal(err)
	}
	o := p.Scope().Lookup(name)
	if o == nil {
		c.Errorf("%s has no type %s", c.pkg, name)
		return types.NewStruct(nil, nil)
	}
	return o.Type().Underlying().(*types.Struct)
}

// check checks the members of a patch. Members that are objects are checked member by member.
func (c settingsCheck) check(patch, resource *types.Struct, prefix string) {
	c.Helper()
	for i := range patch.NumFields() {
		member := jsonName(patch.Tag(i))
		if member == "" {
			continue
		}
		path, inner := prefix+member, structIn(patch.Field(i).Type())
		field := c.fieldOf(resource, path, member)
		switch site, listed := c.sites[path]; {
		case slices.Contains(c.shown, path):
		case listed:
			delete(c.unused, path)
			c.checkSite(path, site)
		case field == nil:
			c.Errorf("%s: no field of %s holds %s; name the site that uses it", c.operation, c.resource, path)
		case inner != nil && structIn(field.Type()) != nil:
			c.check(inner, structIn(field.Type()), path+".")
		default:
			c.checkReads(path, field)
		}
	}
}

// fieldOf returns the field of a struct, or of a struct that it embeds, that holds a member; nil if there is none.
func (c settingsCheck) fieldOf(s *types.Struct, path, member string) *types.Var {
	for i := range s.NumFields() {
		f := s.Field(i)
		if f.Embedded() && jsonName(s.Tag(i)) == "" {
			if found := c.fieldOf(f.Type().Underlying().(*types.Struct), path, member); found != nil {
				return found
			}
		}
		if goName, ok := c.renamed[path]; ok && f.Name() == goName || !ok && jsonName(s.Tag(i)) == member {
			return f
		}
	}
	return nil
}

// checkReads reports a field that is read by idle files only.
func (c settingsCheck) checkReads(path string, field *types.Var) {
	c.Helper()
	for _, file := range c.tree.reads[field] {
		dir, name := filepath.Split(file)
		if filepath.Clean(dir) != filepath.Join("internal", c.pkg) || !slices.Contains(c.idle, name) {
			return
		}
	}
	c.Errorf("%s: %s has no effect: nothing but %v reads %s.%s", c.operation, path, c.tree.reads[field], c.resource, field.Name())
}

// checkSite reports a site that does not exist.
func (c settingsCheck) checkSite(path, site string) {
	c.Helper()
	file, text, _ := strings.Cut(site, ": ")
	b, err := os.ReadFile(filepath.Join("..", "internal", file))
	if err != nil || !strings.Contains(string(b), text) {
		c.Errorf("%s: %s has no effect: %s does not contain %q: %v", c.operation, path, file, text, err)
	}
}

func jsonName(tag string) string {
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return strings.TrimPrefix(name, "-")
}

// structIn returns the struct of our own in a type: in op.Change, behind pointers and in slices. Nil: there is none, or it
// is one value, such as a time.
func structIn(t types.Type) *types.Struct {
	switch t := t.(type) {
	case *types.Pointer:
		return structIn(t.Elem())
	case *types.Slice:
		return structIn(t.Elem())
	case *types.Named:
		if t.Obj().Name() == "Change" && t.TypeArgs().Len() == 1 {
			return structIn(t.TypeArgs().At(0))
		}
		s, ok := t.Underlying().(*types.Struct)
		for i := 0; ok && i < s.NumFields(); i++ {
			if jsonName(s.Tag(i)) != "" {
				return s
			}
		}
	}
	return nil
}

// readsOf calls found for every field that a file reads. Targets of assignments and operands of & are not read.
func readsOf(f *ast.File, info *types.Info, found func(*types.Var)) {
	written := map[ast.Expr]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				written[l] = true
			}
		case *ast.UnaryExpr:
			written[n.X] = n.Op.String() == "&"
		case *ast.SelectorExpr:
			if written[n] {
				written[n.X] = true
				return true
			}
			if v, ok := info.Uses[n.Sel].(*types.Var); ok && v.IsField() {
				found(v.Origin())
			}
		}
		return true
	})
}
