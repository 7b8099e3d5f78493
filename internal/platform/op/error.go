package op

import (
	"errors"
	"io/fs"
	"net/http"
	"sort"

	"soniq/internal/platform/db"
)

// Error is the error of an operation. REST returns it as a problem body (RFC 9457), MCP as an isError result with the
// same code. Any other error is returned as "internal" and logged.
type Error struct {
	Code   string
	Detail string
	Fields []Violation
	Extra  map[string]any // additional members of the problem, such as current_status
	Header http.Header    // such as Retry-After
}

// Violation is one invalid part of a request.
type Violation struct {
	Field   string `json:"field" doc:"Where: a member of the body, a query parameter, a header"`
	Code    string `json:"code" doc:"What is wrong, for programs"`
	Message string `json:"message" doc:"What is wrong, for people"`
}

// Error returns code and detail.
func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// Status returns the HTTP status of the error's code.
func (e *Error) Status() int { return codes[e.Code].status }

// code is the definition of an error code.
type code struct {
	status int
	title  string
	help   string // remedy; shown at /errors/{code}
}

// codes defines all error codes.
var codes = map[string]code{
	"malformed_json": {400, "Request is not JSON", "Send a JSON object in UTF-8 with Content-Type: application/json."},
	"unknown_field": {400, "Request has an unknown field",
		"Remove or correct the fields listed in errors. Unknown fields are refused so that a typing error never silently changes a call."},
	"invalid_query": {400, "Query is not valid", "Correct the query parameters listed in errors; the API reference lists those an operation knows."},
	"invalid_cursor": {400, "Cursor is not valid",
		"Start the list again without a cursor. Cursors are valid for 24 hours and for the list they came from."},

	"unauthenticated": {401, "No valid credential",
		"Send Authorization: Bearer <API key>. Keys are made with soniq key create or POST /api-keys."},
	"key_expired": {401, "Key has expired", "Create or rotate a key."},
	"key_revoked": {401, "Key was revoked", "Create a key."}, "token_expired": {401, "Token has expired", "Refresh the token."},

	"insufficient_scope": {403, "Credential lacks a scope", "Use a key that holds the scopes in required_scopes."},
	"role_not_held": {403, "Grants more than the credential holds",
		"Nobody grants a role or scopes that they do not hold themselves. Use a credential with this role and the scopes in required_scopes."},
	"reauthentication_required": {403, "Password was entered too long ago",
		"Enter the password or a code at confirm_at, then repeat the request. Only browser sessions are asked, and only for sensitive changes."},
	"wrong_environment": {403, "Key belongs to the other environment",
		"Test keys work under /sandbox/v1 only, live keys under /api/v1 and /v1 only."},
	"ip_not_allowed":     {403, "Address is not allowed", "The key names the addresses it may be used from."},
	"org_suspended":      {403, "Organisation is suspended", "Ask your provider to resume it."},
	"plan_limit":         {403, "Plan does not allow this", "Remove something or change the plan."},
	"recording_disabled": {403, "Recording is switched off", "Switch it on in the organisation's settings."},
	"consent_required":   {403, "Consent is needed first", "Obtain the consent the organisation's settings ask for."},

	"not_found":           {404, "Not found", "Check the identifier. Identifiers of other organisations are not found."},
	"method_not_allowed":  {405, "Method not allowed", "Use one of the methods that Allow names."},
	"contact_not_found":   {404, "No contact found", "No connected source knows this number or address."},
	"recording_not_found": {404, "No recording", "See reason: the call was not recorded, or the recording is not ready yet."},

	"invalid_state":           {409, "Not possible in this state", "See current_status and allowed_actions."},
	"already_exists":          {409, "Already exists", "Use the existing one or choose another value."},
	"idempotency_in_progress": {409, "First request still running", "Repeat the request in a moment; it is not run twice."},
	"extension_taken":         {409, "Extension is taken", "Choose another extension or leave it out to get a free one."},
	"number_unavailable":      {409, "Number is not available", "It belongs to someone already."},
	"in_use":                  {409, "Still in use", "Detach what used_by names first."},

	"gone":              {410, "No longer there", "It was deleted or its retention has passed."},
	"version_conflict":  {412, "Changed meanwhile", "Read the record again and repeat the change on the new version."},
	"payload_too_large": {413, "Body is too large", "JSON bodies may have 1 MB, uploads 20 MB."},
	"unsupported_media_type": {415, "Content type is not supported",
		"Send application/json, or multipart/form-data where a file is uploaded."},

	"invalid_range": {416, "No such range", "Ask for bytes within the size that Content-Range names."},

	"validation_failed":       {422, "Request is not valid", "Correct the fields listed in errors."},
	"idempotency_key_reused":  {422, "Idempotency key was used for another request", "Use a new key for a new request."},
	"number_not_owned":        {422, "Number is not yours", "Use a number of your organisation."},
	"destination_not_allowed": {422, "Destination is not allowed", "The organisation's outbound settings do not allow this destination."},
	"flow_invalid":            {422, "Flow is not valid", "Correct the nodes listed in errors."},
	"opted_out":               {422, "Recipient opted out", "The recipient asked not to receive messages."},

	"rate_limited":      {429, "Too many requests", "Wait for Retry-After seconds."},
	"concurrency_limit": {429, "Too many at once", "Wait until one of them ends."},

	"internal":      {500, "Something went wrong on our side", "Repeat the request; if it stays, report the request_id."},
	"not_enabled":   {501, "Not enabled yet", "This operation is declared and will be built; see x-rollout in the API description."},
	"carrier_error": {502, "Carrier failed", "See detail."},
	"crm_error":     {502, "Connected system failed", "See detail."},
	"overloaded":    {503, "Overloaded", "Wait for Retry-After seconds."},
	"file_unavailable": {503, "File is not at this server",
		"Servers that share a database keep files on their own disks: ask the server that stored the file. If there is one server, the file is lost."},
	"draining":       {503, "Shutting down", "Repeat the request in a moment."},
	"action_timeout": {504, "No confirmation in time", "Read the call to see what happened."},
}

// Codes returns all error codes, sorted.
func Codes() []string {
	all := make([]string, 0, len(codes))
	for c := range codes {
		all = append(all, c)
	}
	sort.Strings(all)
	return all
}

// Help returns status, title and advice of a code; ok is false for an unknown one.
func Help(name string) (status int, title, help string, ok bool) {
	c, ok := codes[name]
	return c.status, c.title, c.help, ok
}

// Fail returns an error with a defined code.
func Fail(code, detail string) *Error { return &Error{Code: code, Detail: detail} }

// NotFound returns the error that a record does not exist in the caller's organisation.
func NotFound(what string) *Error { return Fail("not_found", "no such "+what) }

// Invalid returns the error for invalid fields. Pass all violations at once.
func Invalid(fields ...Violation) *Error {
	return &Error{Code: "validation_failed", Detail: fields[0].Field + ": " + fields[0].Message, Fields: fields}
}

// Field returns a violation.
func Field(field, code, message string) Violation { return Violation{field, code, message} }

// State returns the error that the state of a record does not allow the action.
func State(detail, current string, allowed ...string) *Error {
	if allowed == nil {
		allowed = []string{}
	}
	return &Error{Code: "invalid_state", Detail: detail,
		Extra: map[string]any{"current_status": current, "allowed_actions": allowed}}
}

// InUse returns the error that other records still refer to a record.
func InUse(detail string, usedBy ...string) *Error {
	return &Error{Code: "in_use", Detail: detail, Extra: map[string]any{"used_by": usedBy}}
}

// Unavailable returns an error with Retry-After.
func Unavailable(code, detail string, retryAfter string) *Error {
	return &Error{Code: code, Detail: detail, Header: http.Header{"Retry-After": {retryAfter}}}
}

// Unexpected returns the Error for any other error: overloaded for a full disk or an unreachable database, otherwise
// internal without details.
func Unexpected(err error) *Error {
	switch {
	case db.IsFull(err):
		return Unavailable("overloaded", "the server's disk is full; nothing was changed", "60")
	case db.IsUnavailable(err): // a commit with a lost response may have taken effect
		return Unavailable("overloaded", "the database cannot be reached; repeat the request, with its Idempotency-Key where it had one",
			"5")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Unavailable("file_unavailable", "the file is not on the disk of this server; another server that uses the same database may have it", "30")
	}
	return Fail("internal", "")
}
