package op

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/platform/access"
)

// Grants marks an operation whose named body members give rights to a user or key. Without names, every use of the operation gives rights.
// The operation checks them with CheckGrant.
func (o Operation) Grants(members ...string) Operation {
	o.Granting, o.GrantMembers = true, members
	return o.Fails("role_not_held")
}

// CheckGrant returns an error if the principal of the context grants more than it holds: a role (or "") and scopes.
func CheckGrant(ctx context.Context, role string, scopes []access.Scope) error {
	p, _ := access.From(ctx)
	e := p.Excess(role, scopes)
	if e.None() {
		return nil
	}
	return &Error{Code: "role_not_held", Detail: excessText(p, role, e),
		Extra: map[string]any{"required_scopes": append([]access.Scope{}, e.Scopes...)}}
}

func excessText(p access.Principal, role string, e access.Excess) string {
	var words []string
	for _, s := range e.Scopes {
		words = append(words, string(s))
	}
	lacks := strings.Join(words, ", ")
	switch {
	case e.Role != "" && p.Role == "":
		return "this credential may not give or change the role " + role + "; an owner or administrator has to do it"
	case e.Role != "":
		return "the role " + role + " is above " + p.Role + ", that of this credential; somebody with the role " + role + " has to do it"
	case role != "":
		return "the role " + role + " has " + lacks + ", which this credential does not hold; use one that holds them"
	}
	return "this credential does not hold " + lacks + "; use one that holds them"
}

// grantExtension describes a granting operation in the OpenAPI document.
func (o Operation) grantExtension(to map[string]any) {
	if o.Granting {
		to["x-grants"] = slices.Clone(append([]string{}, o.GrantMembers...))
	}
}
