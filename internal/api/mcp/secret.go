package mcp

import (
	"slices"

	"soniq/internal/platform/op"
)

// Assistants never receive secrets: invitation links, SIP passwords, keys. The declaration of an operation marks them, and they are removed
// from the answer of every operation before a tool or a resource sees it.

// secretPath is the path of a secret in an answer. anyMember stands for every element of a list, and every member of an object.
type secretPath []string

const anyMember = "*"

// secretPaths returns the paths of all secrets in a schema.
func (d *document) secretPaths(s schema) []secretPath {
	var all []secretPath
	d.walkSecrets(s, nil, func(p secretPath) { all = append(all, slices.Clone(p)) })
	return all
}

func (d *document) walkSecrets(s schema, at secretPath, found func(secretPath)) {
	if len(at) > maxDepth {
		return
	}
	s = d.resolve(s)
	if isSecret(s) {
		found(at)
		return
	}
	properties, _ := s["properties"].(schema)
	for name, v := range properties {
		d.walkMember(v, append(slices.Clone(at), name), found)
	}
	for _, name := range []string{"items", "additionalProperties"} {
		d.walkMember(s[name], append(slices.Clone(at), anyMember), found)
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		options, _ := s[name].([]any)
		for _, v := range options {
			d.walkMember(v, at, found)
		}
	}
}

func (d *document) walkMember(v any, at secretPath, found func(secretPath)) {
	if s, ok := v.(schema); ok {
		d.walkSecrets(s, at, found)
	}
}

func isSecret(s schema) bool {
	marked, _ := s[op.SecretMark].(bool)
	return marked
}

// remove deletes the secret from an answer.
func (p secretPath) remove(v any) {
	if len(p) == 0 {
		return
	}
	switch v := v.(type) {
	case schema:
		if p[0] != anyMember {
			p.removeMember(v, p[0])
			return
		}
		for name := range v {
			p.removeMember(v, name)
		}
	case []any:
		for _, element := range v {
			if p[0] == anyMember {
				p[1:].remove(element)
			}
		}
	}
}

func (p secretPath) removeMember(of schema, name string) {
	if len(p) == 1 {
		delete(of, name)
		return
	}
	p[1:].remove(of[name])
}

// withoutSecrets returns a schema of a result without the members that are secrets.
func (d *document) withoutSecrets(s schema) schema {
	properties, ok := s["properties"].(schema)
	if !ok {
		return s
	}
	out, kept := schema{}, schema{}
	for name, v := range s {
		out[name] = v
	}
	for name, v := range properties {
		if member, _ := v.(schema); !isSecret(member) {
			kept[name] = v
		}
	}
	out["properties"] = kept
	if required, ok := s["required"].([]any); ok {
		out["required"] = slices.DeleteFunc(slices.Clone(required), func(name any) bool { _, ok := kept[name.(string)]; return !ok })
	}
	return out
}
