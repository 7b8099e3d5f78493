package auth

import (
	"net/http"
	"slices"
	"strings"

	"soniq/internal/platform/access"
)

// serverMetadata is the metadata of the authorization server (RFC 8414).
type serverMetadata struct {
	Issuer            string         `json:"issuer"`
	Authorize         string         `json:"authorization_endpoint"`
	Token             string         `json:"token_endpoint"`
	Register          string         `json:"registration_endpoint,omitempty"`
	Revoke            string         `json:"revocation_endpoint"`
	Introspect        string         `json:"introspection_endpoint"`
	Scopes            []access.Scope `json:"scopes_supported"`
	ResponseTypes     []string       `json:"response_types_supported"`
	ResponseModes     []string       `json:"response_modes_supported"`
	GrantTypes        []string       `json:"grant_types_supported"`
	Methods           []string       `json:"token_endpoint_auth_methods_supported"`
	RevokeMethods     []string       `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectMethods []string       `json:"introspection_endpoint_auth_methods_supported"`
	Challenges        []string       `json:"code_challenge_methods_supported"`
	Identified        bool           `json:"authorization_response_iss_parameter_supported"`
	Documents         bool           `json:"client_id_metadata_document_supported"`
	Resources         []string       `json:"protected_resources"`
	Documentation     string         `json:"service_documentation"`
}

func (o *OAuth) metadata(w http.ResponseWriter, _ *http.Request) {
	m := serverMetadata{Issuer: o.Issuer(), Authorize: o.cfg.BaseURL + AuthorizePath, Token: o.cfg.BaseURL + tokenPath,
		Revoke:     o.cfg.BaseURL + revokePath,
		Introspect: o.cfg.BaseURL + introspectPath, Scopes: access.All(), ResponseTypes: []string{"code"}, ResponseModes: []string{"query"},
		GrantTypes: []string{"authorization_code", "refresh_token"}, Methods: []string{"none"}, RevokeMethods: []string{"none"},
		IntrospectMethods: []string{"Bearer"},
		Challenges:        []string{"S256"}, Identified: true, Documents: true,
		Resources:     []string{o.cfg.BaseURL, o.cfg.BaseURL + toolPaths[0]},
		Documentation: o.cfg.BaseURL + "/docs"}
	if o.cfg.Register {
		m.Register = o.cfg.BaseURL + registerPath
	}
	writeJSON(w, http.StatusOK, m)
}

// resourceMetadata is the metadata of a protected resource (RFC 9728).
type resourceMetadata struct {
	Resource string         `json:"resource"`
	Servers  []string       `json:"authorization_servers"`
	Scopes   []access.Scope `json:"scopes_supported"`
	Methods  []string       `json:"bearer_methods_supported"`
	Name     string         `json:"resource_name"`
	Docs     string         `json:"resource_documentation"`
}

func (o *OAuth) resource(path, name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, resourceMetadata{Resource: o.cfg.BaseURL + path, Servers: []string{o.Issuer()}, Scopes: access.All(),
			Methods: []string{"header"}, Name: name, Docs: o.cfg.BaseURL + "/docs"})
	}
}

const (
	serverMetadataPath   = "/.well-known/oauth-authorization-server"
	resourceMetadataPath = "/.well-known/oauth-protected-resource"
)

// mountMetadata serves the metadata at the published paths and at the well-known paths that clients try first. Clients of MCP revision
// 2025-03-26 read the metadata of the authorization server only at the root of the tool server's host.
func (o *OAuth) mountMetadata(mux *http.ServeMux) {
	for _, path := range []string{"/auth" + serverMetadataPath, serverMetadataPath + "/auth", serverMetadataPath} {
		handleCORS(mux, "GET", path, o.metadata)
	}
	for _, path := range apiPaths {
		handleCORS(mux, "GET", resourceMetadataPath+path, o.resource(path, "API"))
	}
	for _, path := range toolPaths {
		handleCORS(mux, "GET", resourceMetadataPath+path, o.resource(path, "Tools"))
	}
	handleCORS(mux, "GET", toolPaths[0]+resourceMetadataPath, o.resource(toolPaths[0], "Tools"))
}

// mountDefaults serves the endpoints at the paths that MCP revision 2025-03-26 prescribes for clients that find no metadata.
func (o *OAuth) mountDefaults(mux *http.ServeMux) {
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, AuthorizePath+"?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
	})
	handleCORS(mux, "POST", "/token", o.token)
	if o.cfg.Register {
		handleCORS(mux, "POST", "/register", o.register)
	}
}

// ResourceMetadata returns the URL of the metadata of the resource at a path, such as /mcp/sse.
func (o *OAuth) ResourceMetadata(path string) string {
	return o.cfg.BaseURL + resourceMetadataPath + path
}

// defaultScopes are the scopes that a challenge suggests to a client without scopes. They only read. A client
// requests others when it needs them.
var defaultScopes = []access.Scope{access.CallsRead, access.ContactsRead, access.MemoryRead}

// Challenge returns the WWW-Authenticate header of a 401 response at a path (RFC 6750 §3, RFC 9728 §5.1). invalid
// is true if the request carried a credential.
func (o *OAuth) Challenge(path string, invalid bool) string {
	words := []string{`resource_metadata="` + o.ResourceMetadata(path) + `"`, `scope="` + joinScopes(defaultScopes) + `"`}
	if invalid {
		words = append([]string{`error="invalid_token"`}, words...)
	}
	return "Bearer " + strings.Join(words, ", ")
}

// ScopeChallenge returns the WWW-Authenticate header of a 403 response at a path: the granted scopes and the missing
// ones.
func (o *OAuth) ScopeChallenge(path string, held, needed []access.Scope) string {
	all := slices.DeleteFunc(access.All(), func(s access.Scope) bool { return !slices.Contains(held, s) && !slices.Contains(needed, s) })
	return `Bearer error="insufficient_scope", scope="` + joinScopes(all) + `", resource_metadata="` + o.ResourceMetadata(path) + `"`
}

func joinScopes(scopes []access.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, " ")
}
