package server

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// described is the part of the API description that these tests read.
type described struct {
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]schemaDoc `json:"schemas"`
	} `json:"components"`
}

type schemaDoc struct {
	Ref        string               `json:"$ref"`
	Properties map[string]schemaDoc `json:"properties"`
	Secret     bool                 `json:"x-secret"`
}

type grantDoc struct {
	ID          string    `json:"operationId"`
	Grants      *[]string `json:"x-grants"`
	RequestBody struct {
		Content map[string]struct{ Schema schemaDoc } `json:"content"`
	} `json:"requestBody"`
}

func readDescription(t *testing.T) (d described, all []grantDoc) {
	t.Helper()
	if err := json.Unmarshal(describe(t), &d); err != nil {
		t.Fatal(err)
	}
	for _, methods := range d.Paths {
		for method, raw := range methods {
			var o grantDoc
			if slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) && json.Unmarshal(raw, &o) == nil {
				all = append(all, o)
			}
		}
	}
	return d, all
}

// An operation whose body can give a role or scopes declares that it grants, and so is checked by the rule about granting.
func TestGrants_Declared(t *testing.T) {
	t.Parallel()
	d, all := readDescription(t)
	found := 0
	for _, o := range all {
		for _, content := range o.RequestBody.Content {
			body := d.Components.Schemas[strings.TrimPrefix(content.Schema.Ref, "#/components/schemas/")]
			for _, member := range []string{"role", "scopes"} {
				if _, ok := body.Properties[member]; !ok {
					continue
				}
				if found++; o.Grants == nil || !slices.Contains(*o.Grants, member) {
					t.Errorf("%s takes %s and does not declare that it grants it: add Grants(%q), and check it with op.CheckGrant", o.ID, member, member)
				}
			}
		}
	}
	if found < 6 {
		t.Errorf("only %d members that grant were found", found)
	}
}

var (
	secretName = regexp.MustCompile(`^(password|secret|key|api_key|token|credential|.*_secret|.*_token|.*_password|provisioning_url|authorize_url|callback_url|notice_url|ws_url)$`)
	// plainNames are members with such a name that are no secrets.
	plainNames = []string{"CarrierFreshInbound.password", "AuditActor.credential", "QueueCallback.key", "AuthMe.credential"}
)

// A member of an answer that is named like a secret is declared as one, so that the tool server leaves it out.
func TestSecrets_Declared(t *testing.T) {
	t.Parallel()
	d, all := readDescription(t)
	asked := map[string]bool{}
	for _, o := range all {
		for _, content := range o.RequestBody.Content {
			asked[strings.TrimPrefix(content.Schema.Ref, "#/components/schemas/")] = true
		}
	}
	found := 0
	for name, s := range d.Components.Schemas {
		for member, m := range s.Properties {
			if m.Secret {
				found++
			}
			if secretName.MatchString(member) && !m.Secret && !asked[name] && !slices.Contains(plainNames, name+"."+member) {
				t.Errorf("%s.%s looks like a secret: declare it with the tag secret:\"true\"", name, member)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d secrets are declared", found)
	}
}
